package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/skewproof/skewproof/internal/cluster/account"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Hops reads the logs of all servers: every server's own account of every request it handled. They are fetched from the nodes now rather than
// mounted from the start, since in there they belong to root. epoch is the wall time of the run's start. A cluster that never was up has none.
func (c *Cluster) Hops(epoch time.Time) ([]history.Hop, error) {
	if !c.Up() {
		return nil, nil
	}
	var accounts []account.Logs
	var errs []error
	for _, p := range c.places {
		a := account.Logs{Server: p.Name, ID: p.ID, Audit: c.config.Files.audit(p.Name)}
		errs = append(errs, fetch(c.ctx, p.Node, auditLog, a.Audit))
		if c.config.Subject == scenario.SubjectReference {
			a.Access = c.config.Files.access(p.Name)
			errs = append(errs, fetch(c.ctx, p.Node, accessLog, a.Access))
		}
		accounts = append(accounts, a)
	}
	hops, err := account.Hops(accounts, epoch)
	return hops, errors.Join(append(errs, err)...)
}

// fetch copies a file out of a node. One that is not there leaves an empty one.
func fetch(ctx context.Context, node, from, to string) error {
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copy %s out of node %s: %w", from, node, err)
	}
	defer func() { _ = file.Close() }()
	cmd := dockerCommand(ctx, "exec", node, "bash", "-c", `if [ -e "$1" ]; then exec cat "$1"; fi`, "bash", from)
	cmd.Stdout = file
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("copy %s out of node %s: %w", from, node, err)
	}
	return nil
}

// Collect saves, for the report, what the nodes tell of themselves: as much of 'kind export logs' as the nodes' programs allow, and in every node the
// static pods' manifests and kubeadm's configuration. What cannot be had is missing.
func (c *Cluster) Collect(ctx context.Context) {
	dir := filepath.Join(c.config.Files.Logs, "nodes")
	_ = cluster.NewProvider(cluster.ProviderWithDocker()).CollectLogs(c.name, dir) // an error for each of many; crictl is missing in images made offline
	for _, p := range c.places {
		into := filepath.Join(dir, p.Node, "kubeadm")
		if err := os.MkdirAll(into, 0o755); err != nil {
			continue
		}
		files, err := script(ctx, p.Node, `ls /kind/kubeadm.conf `+manifestsDir+`/*.yaml /var/lib/kubelet/config.yaml`)
		if err != nil {
			continue
		}
		for _, from := range strings.Fields(string(files)) {
			_ = fetch(ctx, p.Node, from, filepath.Join(into, filepath.Base(from)))
		}
	}
}
