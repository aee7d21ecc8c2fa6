package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// ending are the signals that end a command.
var ending = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// heeded are those of them that this process was not started to ignore: nohup means a run to outlive its terminal, and a shell its background jobs to
// outlive a Ctrl-C.
var heeded = slices.DeleteFunc(slices.Clone(ending), signal.Ignored)

// heed lets a channel have the signals that end a command. [signal.Notify] would undo that a signal is ignored, and without any signal means all.
func heed(signals chan os.Signal) {
	if len(heeded) > 0 {
		signal.Notify(signals, heeded...)
	}
}

// signalsKey is where a context has the channel to which its signals go.
type signalsKey struct{}

// withSignals lets the first signal call cancel. A second one ends this process, and the sandbox with it.
func withSignals(ctx context.Context, cancel context.CancelFunc) context.Context {
	signals := make(chan os.Signal, 1)
	heed(signals)
	go func() {
		<-signals
		signal.Stop(signals)
		fmt.Fprintln(os.Stderr, "skewproof: stopping; a second Ctrl-C ends everything at once")
		cancel()
	}()
	return context.WithValue(ctx, signalsKey{}, signals)
}

// ownSignals is a function that takes all signals away from whoever else has come to listen to them, such as a test framework. It is nil where the
// context has none of its own.
func ownSignals(ctx context.Context) func() {
	signals, ok := ctx.Value(signalsKey{}).(chan os.Signal)
	if !ok {
		return nil
	}
	return func() {
		if ctx.Err() == nil { // otherwise the one that counts has come already
			signal.Reset(ending...)
			heed(signals)
		}
	}
}
