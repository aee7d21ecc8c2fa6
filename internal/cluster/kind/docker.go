package kind

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Docker runs Docker's client and returns what it prints, without the spaces around it. The client
// finds its engine as usual (DOCKER_HOST, contexts); kind's package does the same. The client has a
// process group of its own, so that Ctrl-C does not reach it. The error has its last lines.
func Docker(ctx context.Context, input io.Reader, args ...string) (string, error) {
	cmd := dockerCommand(ctx, args...)
	var out, printed bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &printed
	err := cmd.Run()
	text := strings.TrimSpace(out.String())
	var exit *exec.ExitError
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &exit):
		if last := cmp.Or(Tail(printed.String()), Tail(text)); last != "" {
			err = errors.New(last)
		}
	}
	return text, fmt.Errorf("docker %s: %w", strings.Join(args[:min(len(args), 3)], " "), err)
}

// Tail is the last ten lines of what a program printed.
func Tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// waitDelay is how long children of a client that was killed may keep its output open.
const waitDelay = 10 * time.Second

func dockerCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = waitDelay
	return cmd
}

// dockerLines are the words in the output of a command of Docker's client, one a line.
func dockerLines(ctx context.Context, args ...string) ([]string, error) {
	out, err := Docker(ctx, nil, args...)
	return strings.Fields(out), err
}

func inNode(ctx context.Context, node string, args ...string) (string, error) {
	return Docker(ctx, nil, append([]string{"exec", "--privileged", node}, args...)...)
}

// script runs a few lines of bash in a node, which gets args as $1 and following.
func script(ctx context.Context, node, lines string, args ...string) (string, error) {
	return inNode(ctx, node, append([]string{"bash", "-euc", lines, "bash"}, args...)...)
}

// write puts a file into a node atomically. The name of the unfinished file begins with a dot: a
// kubelet would take any other file among its manifests for one more pod, and let the pod that is
// meant wait for the end of that one.
// Source: produceWatchEvent in k8s.io/kubernetes/pkg/kubelet/config.
func write(ctx context.Context, node, path string, content []byte) error {
	const lines = `dir=$(dirname "$1") new=$(dirname "$1")/.$(basename "$1").new; mkdir -p "$dir"; cat >"$new"; chmod 600 "$new"; mv "$new" "$1"`
	_, err := Docker(ctx, bytes.NewReader(content), "exec", "-i", node, "bash", "-euc", lines, "bash", path)
	return err
}
