package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// endOnSignal lets the first signal that is to end the command call cancel. A second one ends this
// process, and the sandbox with it.
//
// Signals that this process was started to ignore stay ignored, which [signal.Notify] would undo:
// with nohup, a run outlives its terminal, and the background jobs of a script outlive a Ctrl-C.
func endOnSignal(cancel context.CancelFunc) {
	ending := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	if len(ending) == 0 { // to Notify, none means all
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ending...)
	go func() {
		<-signals
		signal.Stop(signals)
		fmt.Fprintln(os.Stderr, "skewproof: stopping; a second Ctrl-C ends everything at once")
		cancel()
	}()
}
