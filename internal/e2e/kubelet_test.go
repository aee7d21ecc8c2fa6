package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// kubelet serves the requests that kube-apiservers send to kubelets for clients of pods: exec,
// attach, portForward and containerLogs. The protocols are those of container runtimes
// (k8s.io/cri-streaming). The commands are processes of this machine, in the directory of the
// kubelet.
//
// It is not safe for other uses: it answers for any pod and does not authenticate its clients,
// because it listens only in the sandbox of one test.
type kubelet struct {
	address netip.AddrPort
	dir     string
	running atomic.Int64 // exec, attach, logs and forwarded connections
	logs    logs
}

const (
	streamIdle     = 4 * time.Hour // a kubelet's --streaming-connection-idle-timeout
	streamCreation = 30 * time.Second
)

// sizesCommand writes a line for each size that its terminal gets. It ends with its input.
const sizesCommand = "sizes"

func startKubelet(t *testing.T, at netip.Addr) *kubelet {
	t.Helper()
	k := &kubelet{dir: t.TempDir()}
	k.logs.lines = make(chan string)
	serving, err := tls.LoadX509KeyPair(insideKeys("serving-"+anyServer+".crt"), insideKeys("serving-"+anyServer+".key"))
	must(t, err)
	listener, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	must(t, err)
	k.address = listener.Addr().(*net.TCPAddr).AddrPort()
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		k.serve(w, r, func(options *remotecommand.Options) {
			remotecommand.ServeExec(w, r, k, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], options,
				streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
		})
	})
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		k.serve(w, r, func(options *remotecommand.Options) {
			remotecommand.ServeAttach(w, r, k, r.PathValue("pod"), "", r.PathValue("container"), options,
				streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
		})
	})
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, k, r.PathValue("pod"), "", options, streamIdle, streamCreation, portforward.SupportedProtocols)
	})
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	server := &http.Server{
		Handler: mux, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving}},
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return k
}

func (k *kubelet) serve(w http.ResponseWriter, r *http.Request, with func(*remotecommand.Options)) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	with(options)
}

// ExecInContainer implements [remotecommand.Executor].
func (k *kubelet) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser,
	_ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	k.running.Add(1)
	defer k.running.Add(-1)
	if command[0] == sizesCommand {
		return writeSizes(in, out, resize)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = k.dir
	if out != nil {
		cmd.Stdout = out
	}
	if errOut != nil {
		cmd.Stderr = errOut
	}
	if in != nil {
		// Do not set cmd.Stdin, because Wait would then wait for the client to close it.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(stdin, in) // ends with the stream, because a command may not read all its input
			_ = stdin.Close()
		}()
	}
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

func writeSizes(in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	for {
		select {
		case size, ok := <-resize:
			if !ok {
				resize = nil
				continue
			}
			if _, err := fmt.Fprintf(out, "%dx%d\n", size.Width, size.Height); err != nil {
				return err
			}
		case <-ended:
			return nil
		}
	}
}

// AttachContainer implements [remotecommand.Attacher]. The container's process sends its input
// back.
func (k *kubelet) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize,
) error {
	k.running.Add(1)
	defer k.running.Add(-1)
	if errOut != nil {
		if _, err := io.WriteString(errOut, "attached"); err != nil {
			return err
		}
	}
	_, err := io.Copy(out, in)
	return err
}

// PortForward implements [portforward.PortForwarder]. It forwards to a port of this machine's
// loopback.
func (k *kubelet) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	k.running.Add(1)
	defer k.running.Add(-1)
	dialed, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	conn := dialed.(*net.TCPConn)
	defer func() { _ = conn.Close() }()
	var in sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.CloseWrite()
	})
	_, err = io.Copy(stream, conn)
	_ = stream.Close()
	in.Wait()
	return err
}

// logs is the log of the container. Each value sent to it is one line.
type logs struct {
	mu    sync.Mutex
	lines chan string
}

// write passes a line to the client that follows the log, and returns when that client has taken
// it.
func (l *logs) write(t *testing.T, line string) {
	t.Helper()
	select {
	case l.current() <- line:
	case <-time.After(time.Minute):
		t.Fatal("nobody follows the logs")
	}
}

func (l *logs) current() chan string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// end ends the container. Then the client that follows the log has read everything.
func (l *logs) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.lines)
	l.lines = make(chan string)
}

func (k *kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	k.running.Add(1)
	defer k.running.Add(-1)
	w.Header().Set("Transfer-Encoding", "chunked") // as kubelets do
	lines := k.logs.current()
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	for r.URL.Query().Get("follow") == "true" {
		select {
		case line, more := <-lines:
			if !more {
				return
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
