package local

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
)

func TestTheEndOfEtcdIsTold(t *testing.T) {
	lost := make(chan string, 1)
	c := &Cluster{config: Config{Lost: func(part string, err error) { lost <- part + ": " + err.Error() }}}
	c.need(fault.Etcd, unitOf(shell(t, "echo 'panic: tocommit is out of range'; exit 2")))
	if got := <-lost; !strings.HasPrefix(got, "etcd: etcd ended though nobody had asked it to: exit status 2") || !strings.Contains(got, "panic: tocommit") {
		t.Errorf("told: %s", got)
	}
}

func TestAnEndOfEtcdThatWasAskedForIsNotTold(t *testing.T) {
	ended := make(chan string, 2)
	c := &Cluster{config: Config{Lost: func(part string, _ error) { ended <- part }}}
	asked, other := unitOf(shell(t, "exec sleep 1000")), unitOf(shell(t, "exec sleep 1000"))
	c.etcd, c.release = asked, c.need(fault.Etcd, asked)
	c.Close()
	c.need("another", other) // told after the first would have been
	if err := kill(other); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != "another" {
		t.Errorf("told of the end of %s", got)
	}
}
