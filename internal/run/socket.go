package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketName is the name of the socket in the directory of a run. A held cluster takes steps there.
const socketName = "step.sock"

// socket calls do with a path of the socket. The path leads through an open directory, because the
// address of a UNIX socket has room for only 107 bytes and the path of a run's directory may be
// longer.
func (d Dir) socket(do func(path string) error) error {
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName))
}

// listen listens at the socket. At no time can anybody but the user connect to it. The caller
// removes the socket with [Dir.unlink].
func (d Dir) listen() (listener *net.UnixListener, err error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error // the bound socket gets the mode of this file (unix_bind in Linux)
		err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	err = d.socket(func(path string) error {
		l, err := private.Listen(context.Background(), "unix", path)
		if err == nil {
			listener = l.(*net.UnixListener)
			listener.SetUnlinkOnClose(false) // the path is no longer valid by then
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen for 'skewproof step' in %s: %w", d, err)
	}
	return listener, nil
}

func (d Dir) unlink() { _ = os.Remove(d.File(socketName)) }

// dial connects to the run that holds its cluster.
func (d Dir) dial(ctx context.Context) (conn net.Conn, err error) {
	err = d.socket(func(path string) error {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%s holds no cluster: start a run with --keep, and act on it once it says that the cluster stays up", d)
	}
	return nil, fmt.Errorf("reach the run in %s: %w", d, err)
}
