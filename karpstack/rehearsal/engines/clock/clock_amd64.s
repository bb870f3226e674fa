//go:build linux

#include "textflag.h"

// scaled is called as C calls clock_gettime: clock in DI, timespec in SI, result in AX. It may change AX, CX, DX, DI, SI
// and R8 to R11, and runs on the stack of g0.
TEXT ·scaled(SB), NOSPLIT|NOFRAME, $0-0
ask:
	PUSHQ	DI
	PUSHQ	SI
	SUBQ	$8, SP			// C wants the stack aligned
	MOVL	$1, DI			// CLOCK_MONOTONIC, whatever was asked: nobody sets it
	MOVQ	·original(SB), AX
	CALL	AX
	ADDQ	$8, SP
	POPQ	SI
	POPQ	DI
	MOVQ	0(SI), R11
	IMULQ	$1000000000, R11
	ADDQ	8(SI), R11		// the machine's time
again:
	MOVQ	·page(SB), R8
	MOVQ	16(R8), R9
	MOVQ	40(R8), R10
	CMPQ	R11, R9
	JLT	second
	CMPQ	R11, R10
	JLT	first
	CMPQ	R10, R9
	JGT	second
first:
	ADDQ	$16, R8
	JMP	scale
second:
	ADDQ	$40, R8
	MOVQ	R10, R9
scale:
	MOVQ	R11, AX
	SUBQ	R9, AX
	JLT	ask			// both began after the question: it waited for long
	MOVQ	16(R8), CX
	MULQ	CX			// DX:AX
	SHRQ	$16, DX, AX
	ADDQ	8(R8), AX
	CMPQ	R9, 0(R8)		// written anew meanwhile
	JNE	again
	CMPL	DI, $0			// CLOCK_REALTIME
	JNE	split
	MOVQ	·page(SB), R8
	ADDQ	8(R8), AX
split:
	XORL	DX, DX
	MOVQ	$1000000000, CX
	DIVQ	CX
	MOVQ	AX, 0(SI)
	MOVQ	DX, 8(SI)
	XORL	AX, AX
	RET

// call is the system call, called as C calls clock_gettime.
TEXT ·call(SB), NOSPLIT|NOFRAME, $0-0
	MOVL	$228, AX		// SYS_clock_gettime
	SYSCALL
	RET

// func callAddress() uintptr
TEXT ·callAddress(SB), NOSPLIT, $0-8
	MOVQ	$·call(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func scaledAddress() uintptr
TEXT ·scaledAddress(SB), NOSPLIT, $0-8
	MOVQ	$·scaled(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
