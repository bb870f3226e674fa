//go:build linux && (amd64 || arm64)

// Package clock makes a program read the cluster's clock, which may run faster than the machine's.
//
// A blank import is enough. Without the variable KARPSTACK_CLOCK the program keeps real time. With it, the variable
// names a page that all programs of one rehearsal map. The page says how cluster time follows from the machine's
// monotonic clock:
//
//	offset  content, 64-bit integers of the machine's byte order
//	0       a number that marks the file, and its version
//	8       nanoseconds from cluster time to the time of day
//	16      phase 0: start in the machine's time, start in cluster time, speed times 65536
//	40      phase 1: the same
//	64      how many programs have taken a seat
//	72      one number for each seat: by how many nanoseconds of real time a timer was late at most
//	4080    what no speed may exceed, times 65536; 0 for no such limit
//	4088    the worst lateness in nanoseconds of cluster time, as the rehearsal has it
//
// The phase that started last counts. A new phase is written into the other one, and starts a little later: so that
// cluster time is the same pure function of the machine's time in every program, continuous, and never goes back.
//
// Go's runtime reads time through one variable, runtime.vdsoClockgettimeSym, which badlinkname_linux.go keeps open for
// other packages. This package puts a function of its own there. What the runtime waits for by itself (epoll, futex)
// would still be waited for in real time, so a timer of the kernel wakes the runtime every few milliseconds.
package clock

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Variable names the environment variable with the path of the page.
const Variable = "KARPSTACK_CLOCK"

const (
	size  = 4096
	mark  = 0x3130_6b63_6f6c_636b // "kclock01"
	seats = (size - 88) / 8
	// By how much cluster time a timer may be late because the runtime was not woken earlier.
	lateness = 32_000_000
	// The longest time between two looks, and what is enough at real time.
	longest = 20_000_000
)

//go:linkname vdsoClockgettimeSym runtime.vdsoClockgettimeSym
var vdsoClockgettimeSym uintptr

var (
	original uintptr
	page     unsafe.Pointer
)

// scaledAddress returns the address of the function that takes the place of the kernel's clock_gettime.
func scaledAddress() uintptr

// callAddress returns the address of a function that makes the system call clock_gettime.
func callAddress() uintptr

func init() {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	if err := follow(path); err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s: %v; the program would keep another time than the cluster\n", Variable, path, err)
		os.Exit(1)
	}
}

func follow(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	mapped, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	start := unsafe.Pointer(&mapped[0])
	if *field(start, 0) != mark {
		return fmt.Errorf("this is no page of a clock")
	}
	waker, err := newWaker()
	if err != nil {
		return err
	}
	seat := uint64(atomic.AddInt64(field(start, 64), 1)-1) % seats
	page, original = start, vdsoClockgettimeSym
	if original == 0 { // a kernel without a vDSO, as some emulators are
		original = callAddress()
	}
	vdsoClockgettimeSym = scaledAddress()
	go waker.run(field(start, 72+8*uintptr(seat)))
	return nil
}

func field(start unsafe.Pointer, offset uintptr) *int64 {
	return (*int64)(unsafe.Add(start, offset))
}

// speed returns the present speed times 65536.
func speed() int64 {
	first, second := atomic.LoadInt64(field(page, 16)), atomic.LoadInt64(field(page, 40))
	now := realTime()
	if now < first || (second <= now && second > first) {
		return atomic.LoadInt64(field(page, 56))
	}
	return atomic.LoadInt64(field(page, 32))
}

// realTime asks the kernel, past the function that scales.
func realTime() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

// waker is a timer of the kernel that the runtime's poller waits for, as for any other file: it ends the poller's own
// wait, and the scheduler looks at the timers.
type waker struct {
	file     *os.File
	raw      uintptr
	interval int64
	due      int64
}

func newWaker() (*waker, error) {
	const monotonic, nonBlocking, closeOnExec = 1, syscall.O_NONBLOCK, syscall.O_CLOEXEC
	descriptor, _, failed := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, monotonic, nonBlocking|closeOnExec, 0)
	if failed != 0 {
		return nil, failed
	}
	return &waker{file: os.NewFile(descriptor, "clock"), raw: descriptor}, nil
}

// run wakes the runtime for as long as the program lives, and writes down how late it was.
func (w *waker) run(late *int64) {
	count := make([]byte, 8)
	for {
		if wanted := min(lateness*65536/max(speed(), 1), longest); wanted != w.interval {
			w.set(wanted)
		}
		if _, err := w.file.Read(count); err != nil {
			fmt.Fprintf(os.Stderr, "the cluster's clock: %v\n", err)
			os.Exit(1)
		}
		now := realTime()
		if behind := now - w.due; behind > atomic.LoadInt64(late) {
			atomic.StoreInt64(late, behind)
		}
		w.due += w.interval * int64(*(*uint64)(unsafe.Pointer(&count[0])))
	}
}

func (w *waker) set(interval int64) {
	every := syscall.NsecToTimespec(interval)
	timer := [2]syscall.Timespec{every, every}
	syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, w.raw, 0, uintptr(unsafe.Pointer(&timer)), 0, 0, 0)
	w.interval, w.due = interval, realTime()+interval
}
