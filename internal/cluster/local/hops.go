package local

import (
	"time"

	"github.com/skewproof/skewproof/internal/cluster/account"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Hops reads the logs of all servers: see [account.Hops].
func (c *Cluster) Hops(epoch time.Time) ([]history.Hop, error) {
	var accounts []account.Logs
	for _, p := range c.places {
		a := account.Logs{Server: p.Name, ID: p.ID, Audit: c.config.Files.audit(p.Name)}
		if c.config.Subject == scenario.SubjectReference {
			a.Access = c.config.Files.access(p.Name)
		}
		accounts = append(accounts, a)
	}
	return account.Hops(accounts, epoch)
}
