package apiserver

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnacknowledged makes the kernel end a connection if the other host has not acknowledged
// sent bytes for a time. The kernel's own time is about a quarter of an hour.
func giveUpUnacknowledged(fd uintptr, after time.Duration) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
}
