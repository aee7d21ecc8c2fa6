package kind

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
)

// process is one running program of a server in its node, with its output in a log of ours.
type process struct {
	node, name string
	pid        string // in the node
	log        lifecycle.Log
	done       chan struct{}
}

// Name and the others implement [lifecycle.Process].
func (p *process) Name() string          { return p.name }
func (p *process) Done() <-chan struct{} { return p.done }
func (p *process) Log() lifecycle.Log    { return p.log }

// Exit implements [lifecycle.Process]. Only the kubelet knows the exit status.
func (p *process) Exit() (how string, ok bool) { return "ended", true }

// awaitProcess waits until the kubelet of a node has started the server, and returns its PID.
func awaitProcess(ctx context.Context, node string) (string, error) {
	const lines = `for i in $(seq "$2"); do pgrep -xo "$1" && exit; sleep 0.1; done; exit 1`
	out, err := script(ctx, node, lines, apiserverPod, fmt.Sprint(startTimeout.Milliseconds()/100))
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", fmt.Errorf("the kubelet of node %s has not started %s within %s", node, apiserverPod, startTimeout)
	}
	return out, nil
}

// follow copies the output of a process into a log of ours, since kubelets remove logs with their
// pods, and notices its end; tail(1) does both. It ends with ctx too.
func follow(ctx context.Context, node, name, pid, logPath string) (*process, error) {
	file, log, err := lifecycle.OpenLog(logPath)
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", name, err)
	}
	p := &process{node: node, name: name, pid: pid, log: log, done: make(chan struct{})}
	go func() {
		defer func() { _ = file.Close() }()
		p.tail(ctx, &unwrapped{w: file})
		if ctx.Err() == nil {
			close(p.done)
		}
	}()
	return p, nil
}

// The container's ID is the last part of the process's cgroup, and of the name of its log.
const tailLines = `
id=$(grep -oE '[0-9a-f]{64}' "/proc/$1/cgroup" | tail -n 1)
log=/dev/null
for i in $(seq 50); do for f in /var/log/containers/*-"$id".log; do [ -e "$f" ] && log=$f && break 2; done; sleep 0.1; done
exec tail -s 0.1 -n +1 -F --pid="$1" "$log" 2>/dev/null`

// Docker's client may fail for reasons of its own, for example on an overloaded machine.
const (
	retryInterval = 500 * time.Millisecond
	// nodeTimeout is how long a node may give no answer before its processes count as ended.
	nodeTimeout = 15 * time.Second
)

// tail returns when the process has ended, or ctx. The rest of the log is lost if Docker's client
// ends before.
func (p *process) tail(ctx context.Context, out io.Writer) {
	lines := tailLines
	for ctx.Err() == nil {
		cmd := dockerCommand(ctx, "exec", p.node, "bash", "-euc", lines, "bash", p.pid)
		cmd.Stdout = out
		_ = cmd.Run()
		if !p.runs(ctx, nodeTimeout) {
			return
		}
		lines = `exec tail -s 0.1 -f --pid="$1" /dev/null`
	}
}

// runs asks the node if the process exists, not as a zombie. It asks again until a node answers or
// the time is over.
func (p *process) runs(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil {
		said, err := script(ctx, p.node, `if readlink "/proc/$1/exe" >/dev/null; then echo runs; else echo ended; fi`, p.pid)
		if err == nil {
			return said == "runs"
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
	return false
}

// unwrapped writes the lines of a container's log as the program wrote them. Each line has the form
// "TIME STREAM TAG TEXT". The tag P means that the line continues in the next one. Source: the CRI
// logging format, kubernetes/design-proposals-archive, node/kubelet-cri-logging.md.
type unwrapped struct {
	w    io.Writer
	rest []byte // the beginning of a line
}

// Write implements io.Writer.
func (u *unwrapped) Write(b []byte) (int, error) {
	u.rest = append(u.rest, b...)
	for {
		line, rest, whole := bytes.Cut(u.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		if _, err := u.w.Write(text(line)); err != nil {
			return 0, err
		}
		u.rest = append([]byte(nil), rest...)
	}
}

func text(line []byte) []byte {
	fields := bytes.SplitN(line, []byte(" "), 4)
	switch {
	case len(fields) < 4:
		return append(bytes.Clone(line), '\n')
	case string(fields[2]) == "P":
		return fields[3]
	default:
		return append(bytes.Clone(fields[3]), '\n')
	}
}
