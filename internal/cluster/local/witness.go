package local

import (
	"context"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/requestlog"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
)

// Objects implements [cluster.Witness].
func (c *Cluster) Objects(ctx context.Context, now func() history.Time, emit func(history.Object)) error {
	gateway, err := c.gateway()
	if err != nil {
		return err
	}
	return gateway.Watch(ctx, now, emit)
}

// Requests implements [cluster.Witness].
func (c *Cluster) Requests(epoch time.Time, load func(id string) bool) ([]history.Request, error) {
	records, err := c.records(epoch)
	return records.Requests(load, users.AdminRequest.CommonName), err
}

// Hops reads the logs of all servers: see [requestlog.Records.Hops].
func (c *Cluster) Hops(epoch time.Time) ([]history.Hop, error) {
	records, err := c.records(epoch)
	return records.Hops(), err
}

func (c *Cluster) records(epoch time.Time) (requestlog.Records, error) {
	var logs []requestlog.Logs
	for _, s := range c.Servers {
		logs = append(logs, requestlog.Logs{Server: s.Name, ID: s.place.ID, Audit: c.config.Files.audit(s.Name)})
	}
	return requestlog.Read(logs, epoch)
}
