// Command inpod is the one program in the pods that tests run on nodes; there is no shell beside
// it.
//
//	inpod                 write a numbered line to the log every half second, until SIGTERM
//	inpod work 20s        do the same for that long, and end with 0
//	inpod echo WORD…      write each word on a line, then copy the standard input
//	inpod ask PATH…       ask the kube-apiserver for the paths in turn, and write what it answers,
//	                      until SIGTERM; outside pods the cluster is that of $KUBECONFIG
//	inpod exit 42         end with that code
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// lineEvery is the time between two lines of the log.
const lineEvery = 500 * time.Millisecond

// Exit codes of the program itself.
const (
	exitFailed = 1
	exitUsage  = 64 // sysexits.h: "inpod exit" may end with any small one
)

var errUsage = errors.New("usage: inpod | inpod work DURATION | inpod echo WORD… | inpod ask PATH… | inpod exit CODE")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code, err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "inpod:", err)
	}
	os.Exit(code)
}

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (int, error) {
	switch {
	case len(args) == 0:
		return lines(ctx, out)
	case args[0] == "work" && len(args) == 2:
		limit, err := time.ParseDuration(args[1])
		if err != nil {
			return exitUsage, errors.Join(err, errUsage)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return lines(ctx, out)
	case args[0] == "echo":
		return echo(args[1:], in, out)
	case args[0] == "ask" && len(args) > 1:
		return ask(ctx, args[1:], out)
	case args[0] == "exit" && len(args) == 2:
		code, err := strconv.ParseUint(args[1], 10, 8)
		if err != nil {
			return exitUsage, errors.Join(err, errUsage)
		}
		return int(code), nil
	}
	return exitUsage, errUsage
}

// lines writes "line 1", "line 2" and so on until ctx ends.
func lines(ctx context.Context, out io.Writer) (int, error) {
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	for i := 1; ; i++ {
		if _, err := fmt.Fprintln(out, "line", i); err != nil {
			return exitFailed, err
		}
		select {
		case <-ctx.Done():
			return 0, nil
		case <-tick.C:
		}
	}
}

func echo(words []string, in io.Reader, out io.Writer) (int, error) {
	for _, word := range words {
		if _, err := fmt.Fprintln(out, word); err != nil {
			return exitFailed, err
		}
	}
	if _, err := io.Copy(out, in); err != nil {
		return exitFailed, err
	}
	return 0, nil
}
