package kind

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/etcd"
	"github.com/skewproof/skewproof/internal/cluster/requestlog"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
)

var _ cluster.Witness = (*Cluster)(nil) // the engine only asks whether it is one

// Objects implements [cluster.Witness]. It reads the first node's etcd member, which lives as long
// as the node.
func (c *Cluster) Objects(ctx context.Context, now func() history.Time, emit func(history.Object)) error {
	client, err := c.etcdClient(ctx)
	if err != nil {
		return err
	}
	return c.Servers[0].member(client).Watch(ctx, now, emit)
}

// Requests implements [cluster.Witness]. The controllers and kubelets of the nodes are among the
// senders.
func (c *Cluster) Requests(epoch time.Time, load func(id string) bool) ([]history.Request, error) {
	records, err := c.records(epoch)
	return records.Requests(load, users.AdminRequest.CommonName), err
}

// Hops reads the logs of all servers: see [requestlog.Records.Hops].
func (c *Cluster) Hops(epoch time.Time) ([]history.Hop, error) {
	records, err := c.records(epoch)
	return records.Hops(), err
}

// records reads the logs of all servers. They are copied out of the nodes, where they belong to
// root. A cluster that never was up has none.
func (c *Cluster) records(epoch time.Time) (requestlog.Records, error) {
	if !c.Up() {
		return requestlog.Records{}, nil
	}
	var logs []requestlog.Logs
	var errs []error
	for _, s := range c.Servers {
		l := requestlog.Logs{Server: s.Name, ID: s.place.ID, Audit: c.config.Files.audit(s.Name)}
		errs = append(errs, fetch(c.ctx, s.place.Node, auditLog, l.Audit))
		logs = append(logs, l)
	}
	records, err := requestlog.Read(logs, epoch)
	return records, errors.Join(append(errs, err)...)
}

// member is the etcd member of the server's node, reached around all links.
func (s *server) member(client *http.Client) etcd.Gateway {
	return etcd.Gateway{Client: client, Address: netip.AddrPortFrom(s.address, etcdPort).String()}
}
