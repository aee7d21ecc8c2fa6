package suite

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
)

// holdACluster answers like a run that holds its cluster until it gets a signal.
func holdACluster(dir string) int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	if os.Mkdir(dir, 0o700) != nil || os.Chdir(dir) != nil { // chdir, because the path of a socket has room for only 107 bytes
		return 3
	}
	listener, err := net.Listen("unix", "step.sock")
	if err != nil {
		fmt.Fprintln(os.Stderr, "skewproof:", err)
		return 3
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, `{"said":["a v1.36.3 runs"]}`)
			_ = conn.Close()
		}
	}()
	<-ended
	if os.WriteFile("ended", nil, 0o600) != nil {
		return 3
	}
	return 2
}

func TestHeldCluster(t *testing.T) {
	t.Setenv(actVariable, "holds a cluster")
	spec := run.Spec{Scenario: "quiet", Keep: true, Out: filepath.Join(t.TempDir(), "held")}
	h, err := hold(t.Context(), "/proc/self/exe", spec)
	if err != nil {
		t.Fatal(err)
	}
	ended := filepath.Join(spec.Out, "ended")
	if _, err := os.Stat(ended); err == nil {
		t.Error("it is ended before it is stopped")
	}
	h.stop()
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("it was not told to end: %v", err)
	}
}

func TestAClusterThatCannotBeHeld(t *testing.T) {
	t.Setenv(actVariable, "cannot run")
	spec := run.Spec{Scenario: "quiet", Out: filepath.Join(t.TempDir(), "held")}
	const says = "the run ended before its cluster was up: start etcd: no space left"
	if _, err := hold(t.Context(), "/proc/self/exe", spec); err == nil || err.Error() != says {
		t.Errorf("error %v, want %q", err, says)
	}
	t.Setenv(actVariable, "holds a cluster")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spec.Out += "-interrupted"
	if _, err := hold(ctx, "/proc/self/exe", spec); err == nil || !strings.Contains(err.Error(), "interrupted") && !strings.Contains(err.Error(), "ended before its cluster was up") {
		t.Errorf("error %v of an interrupted run", err)
	}
}
