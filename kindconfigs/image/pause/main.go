// Command pause holds the namespaces of a pod, like the program of that name in Kubernetes'
// build/pause. It does nothing until it gets a signal. If the pod shares its PID namespace, it
// reaps orphaned processes of other containers.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	reap() // those that ended before
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap takes in every child that has ended: several may share one SIGCHLD.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
