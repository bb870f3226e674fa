//go:build linux

#include "textflag.h"

// scaled is called as C calls clock_gettime: clock in R0, timespec in R1, result in R0. It may change R0 to R17, and
// runs on the stack of g0.
TEXT ·scaled(SB), NOSPLIT|NOFRAME, $0-0
ask:
	SUB	$32, RSP
	MOVD	R30, 0(RSP)
	MOVD	R0, 8(RSP)
	MOVD	R1, 16(RSP)
	MOVD	$1, R0			// CLOCK_MONOTONIC, whatever was asked: nobody sets it
	MOVD	·original(SB), R2
	BL	(R2)
	MOVD	16(RSP), R1
	MOVD	8(RSP), R0
	MOVD	0(RSP), R30
	ADD	$32, RSP
	MOVD	0(R1), R2
	MOVD	8(R1), R3
	MOVD	$1000000000, R4
	MADD	R4, R3, R2, R2		// the machine's time
again:
	MOVD	·page(SB), R5
	MOVD	16(R5), R6
	MOVD	40(R5), R7
	CMP	R6, R2
	BLT	second
	CMP	R7, R2
	BLT	first
	CMP	R6, R7
	BGT	second
first:
	ADD	$16, R5, R8
	B	scale
second:
	ADD	$40, R5, R8
	MOVD	R7, R6
scale:
	SUBS	R6, R2, R9
	BLT	ask			// both began after the question: it waited for long
	MOVD	16(R8), R10
	UMULH	R10, R9, R11
	MUL	R10, R9, R9
	EXTR	$16, R9, R11, R9
	MOVD	8(R8), R10
	ADD	R10, R9
	MOVD	0(R8), R10
	CMP	R10, R6			// written anew meanwhile
	BNE	again
	CBNZW	R0, split		// CLOCK_REALTIME is 0
	MOVD	8(R5), R10
	ADD	R10, R9
split:
	UDIV	R4, R9, R2
	MSUB	R4, R9, R2, R3
	MOVD	R2, 0(R1)
	MOVD	R3, 8(R1)
	MOVD	ZR, R0
	RET

// call is the system call, called as C calls clock_gettime.
TEXT ·call(SB), NOSPLIT|NOFRAME, $0-0
	MOVD	$113, R8		// SYS_clock_gettime
	SVC
	RET

// func callAddress() uintptr
TEXT ·callAddress(SB), NOSPLIT, $0-8
	MOVD	$·call(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func scaledAddress() uintptr
TEXT ·scaledAddress(SB), NOSPLIT, $0-8
	MOVD	$·scaled(SB), R0
	MOVD	R0, ret+0(FP)
	RET
