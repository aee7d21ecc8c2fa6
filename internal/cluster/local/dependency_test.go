package local

import (
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

func dependencyOf(name string, p *process) *dependency {
	p.name = name
	return &dependency{process: p}
}

func TestTheEndOfEtcdIsReported(t *testing.T) {
	lost := make(chan string, 1)
	c := &Cluster{config: Config{Failed: func(part string, err error) { lost <- part + ": " + err.Error() }}}
	go dependencyOf(fault.Etcd, shell(t, "echo 'panic: tocommit is out of range'; exit 2")).watch(c.failed)
	if got := <-lost; !strings.HasPrefix(got, "etcd: etcd ended although the run did not stop it: exit status 2") || !strings.Contains(got, "panic: tocommit") {
		t.Errorf("told: %s", got)
	}
}

func TestAnEndOfEtcdThatWasAskedForIsNotReported(t *testing.T) {
	ended := make(chan string, 2)
	c := &Cluster{config: Config{Failed: func(part string, _ error) { ended <- part }}}
	asked, other := dependencyOf(fault.Etcd, shell(t, "exec sleep 1000")), dependencyOf("another", shell(t, "exec sleep 1000"))
	c.etcd = asked
	c.Close()
	asked.watch(c.failed) // returns, because etcd has ended
	go other.watch(c.failed)
	if err := other.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != "another" {
		t.Errorf("reported the end of %s", got)
	}
}

// closing counts how often it was closed.
type closing int

func (c *closing) Close() error { *c++; return nil }

// A program that makes many clusters one after another must not run out of file descriptors.
func TestCloseClosesTheLogOfTheLinks(t *testing.T) {
	var log closing
	(&Cluster{log: &log}).Close()
	if log != 1 {
		t.Errorf("it was closed %d times, want once", log)
	}
}
