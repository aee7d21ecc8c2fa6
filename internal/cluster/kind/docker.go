package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// docker runs Docker's client, which finds its engine as usual (DOCKER_HOST, contexts), and returns
// its output. kind's package does the same. The client has a process group of its own: Ctrl-C is
// for us to handle.
func docker(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	cmd := dockerCommand(ctx, args...)
	var out, printed bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &printed
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return out.Bytes(), nil
	}
	var exit *exec.ExitError
	if text := strings.TrimSpace(printed.String()); text != "" && errors.As(err, &exit) {
		err = fmt.Errorf("%s", text)
	}
	return out.Bytes(), fmt.Errorf("docker %s: %w", strings.Join(args[:min(len(args), 3)], " "), err)
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
	out, err := docker(ctx, nil, args...)
	return strings.Fields(string(out)), err
}

func inNode(ctx context.Context, node string, args ...string) ([]byte, error) {
	return docker(ctx, nil, append([]string{"exec", "--privileged", node}, args...)...)
}

// script runs a few lines of bash in a node, which gets args as $1 and following.
func script(ctx context.Context, node, lines string, args ...string) ([]byte, error) {
	return inNode(ctx, node, append([]string{"bash", "-euc", lines, "bash"}, args...)...)
}

// write puts a file into a node atomically. The name of the unfinished file begins with a dot: a
// kubelet would take any other file among its manifests for one more pod, and let the pod that is
// meant wait for the end of that one.
// Source: produceWatchEvent in k8s.io/kubernetes/pkg/kubelet/config.
func write(ctx context.Context, node, path string, content []byte) error {
	const lines = `dir=$(dirname "$1") new=$(dirname "$1")/.$(basename "$1").new; mkdir -p "$dir"; cat >"$new"; chmod 600 "$new"; mv "$new" "$1"`
	_, err := docker(ctx, bytes.NewReader(content), "exec", "-i", node, "bash", "-euc", lines, "bash", path)
	return err
}
