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

// Docker runs Docker's client and returns its output without surrounding spaces. The client finds
// its engine in the usual way (DOCKER_HOST, contexts), as kind's package does. The client has its
// own process group, so that Ctrl-C does not reach it. An error contains the last lines of the
// output.
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

// Tail returns the last ten lines of the output of a program.
func Tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// waitDelay is how long the children of a killed client may keep its output open.
const waitDelay = 10 * time.Second

func dockerCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = waitDelay
	return cmd
}

// dockerLines returns the lines in the output of a command of Docker's client.
func dockerLines(ctx context.Context, args ...string) ([]string, error) {
	out, err := Docker(ctx, nil, args...)
	return strings.Fields(out), err
}

func inNode(ctx context.Context, node string, args ...string) (string, error) {
	return Docker(ctx, nil, append([]string{"exec", "--privileged", node}, args...)...)
}

// script runs lines of bash in a node, with args as $1 and so on.
func script(ctx context.Context, node, lines string, args ...string) (string, error) {
	return inNode(ctx, node, append([]string{"bash", "-euc", lines, "bash"}, args...)...)
}

// write writes a file in a node atomically. The name of the unfinished file begins with a dot,
// because a kubelet takes any other file among its manifests for a further pod. The real pod would
// then wait until that pod ends.
// Source: produceWatchEvent in k8s.io/kubernetes/pkg/kubelet/config.
func write(ctx context.Context, node, path string, content []byte) error {
	const lines = `dir=$(dirname "$1") new=$(dirname "$1")/.$(basename "$1").new; mkdir -p "$dir"; cat >"$new"; chmod 600 "$new"; mv "$new" "$1"`
	_, err := Docker(ctx, bytes.NewReader(content), "exec", "-i", node, "bash", "-euc", lines, "bash", path)
	return err
}
