package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"
)

// fetch copies a file out of a node. The copy is empty if the file does not exist.
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

// Collect saves, for the report, the logs of 'kind export logs', and from every node the static
// pods' manifests and kubeadm's configuration. Files that cannot be had are missing.
func (c *Cluster) Collect(ctx context.Context) {
	dir := filepath.Join(c.config.Files.Logs, "nodes")
	// Many errors are expected: crictl is missing in images that were made offline.
	_ = cluster.NewProvider(cluster.ProviderWithDocker()).CollectLogs(c.config.Name, dir)
	for _, s := range c.Servers {
		node := s.place.Node
		into := filepath.Join(dir, node, "kubeadm")
		if err := os.MkdirAll(into, 0o755); err != nil {
			continue
		}
		files, err := script(ctx, node, `ls /kind/kubeadm.conf `+manifestsDir+`/*.yaml /var/lib/kubelet/config.yaml`)
		if err != nil {
			continue
		}
		for _, from := range strings.Fields(files) {
			_ = fetch(ctx, node, from, filepath.Join(into, filepath.Base(from)))
		}
	}
}
