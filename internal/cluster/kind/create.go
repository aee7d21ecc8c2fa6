package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/skewproof/skewproof/internal/scenario"
)

// create makes network and cluster. kind's package knows no contexts: when ctx ends its containers are removed under it.
func (c *Cluster) create(ctx context.Context) (err error) {
	if c.gateway, err = createNetwork(ctx, c.name, c.config.Files.Keys); err != nil {
		return err
	}
	configuration, err := c.writeFiles()
	if err != nil {
		return err
	}
	said, err := os.OpenFile(c.config.Files.log("kind"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open kind's log: %w", err)
	}
	defer func() { _ = said.Close() }()
	if err := os.Setenv(networkVariable, c.name); err != nil {
		return err
	}
	var prepared bool
	var failed error
	log := &logger{all: said, status: c.config.Status, stage: func() {
		if prepared || failed != nil || !c.allRun(ctx) {
			return
		}
		if failed = c.prepare(ctx); failed != nil {
			failed = errors.Join(failed, remove(context.WithoutCancel(ctx), c.name)) // kind's next stage finds nothing, and gives up
		}
		prepared = true
	}}
	done := make(chan error, 1)
	go func() {
		done <- cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(log)).Create(c.name,
			cluster.CreateWithRawConfig(configuration), cluster.CreateWithKubeconfigPath(c.config.Files.Kubeconfig()), cluster.CreateWithRetain(true))
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = remove(context.WithoutCancel(ctx), c.name) // Close does it again, and tells
		<-done
		return context.Cause(ctx)
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("make the kind cluster: %w; what kind and kubeadm said is in %s", err, c.config.Files.log("kind"))
	case !prepared:
		return errors.New("make the kind cluster: this version of kind never said that the nodes run, so faults could not be put between them")
	}
	return nil
}

// allRun reports whether every node has an address.
func (c *Cluster) allRun(ctx context.Context) bool {
	all, err := addresses(ctx, c.name)
	for _, p := range c.places {
		if !all[p.Node].IsValid() {
			return false
		}
	}
	return err == nil
}

// prepare does what has to be done between the nodes' start and kubeadm's.
func (c *Cluster) prepare(ctx context.Context) error {
	for _, p := range c.places {
		if err := booted(ctx, p.Node); err != nil {
			return err
		}
	}
	// kubeadm takes an authority that is there, and kind copies it to the other nodes. So this run knows its key from the start.
	for _, name := range []string{"ca.crt", "ca.key"} {
		content, err := os.ReadFile(c.config.Files.key(name))
		if err != nil {
			return err
		}
		if err := write(ctx, c.places[0].Node, pkiDir+"/"+name, content); err != nil {
			return err
		}
	}
	for _, p := range c.places {
		if c.servers[p.Name].subject() == scenario.SubjectReference {
			manifest, err := ProxyManifest(c.servers[p.Name].Version)
			if err != nil {
				return err
			}
			if err := write(ctx, p.Node, manifestsDir+"/"+proxyPod+".yaml", manifest); err != nil {
				return err
			}
		}
	}
	return c.interpose(ctx)
}

// booted waits until systemd has brought a node up. On cgroup v1 kind does not, and kubeadm fails if it comes first.
// Source: NodeReachedCgroupsReadyRegexp in sigs.k8s.io/kind/pkg/cluster/internal/providers/common/cgroups.go.
func booted(ctx context.Context, node string) error {
	const lines = `for i in $(seq "$1"); do systemctl is-active --quiet multi-user.target && exit; sleep 0.1; done; exit 1`
	if _, err := script(ctx, node, lines, fmt.Sprint(startTimeout.Milliseconds()/100)); err != nil {
		return fmt.Errorf("node %s has not come up within %s: %w", node, startTimeout, err)
	}
	return nil
}

// writeFiles writes what the nodes see, and the configuration of the cluster for kind and for the record.
func (c *Cluster) writeFiles() ([]byte, error) {
	configuration := Configuration{
		Name: c.name, Image: c.config.Image, Subject: c.config.Subject, Files: c.config.Files.Nodes, Names: []string{c.gateway.String()},
	}
	if c.config.Subject == scenario.SubjectReference {
		configuration.Proxy = c.config.Proxy
	}
	for _, s := range c.config.Servers {
		configuration.Nodes = append(configuration.Nodes, Node{Version: s.Version, Setup: c.servers[s.Name].setup.Load()})
	}
	c.oldest = configuration.Oldest()
	for path, content := range configuration.Tree() {
		path = filepath.Join(c.config.Files.Nodes, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("write the nodes' files: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, fmt.Errorf("write the nodes' files: %w", err)
		}
	}
	yaml, err := configuration.YAML()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(c.config.Files.Nodes, "cluster.yaml"), yaml, 0o644); err != nil {
		return nil, fmt.Errorf("write the configuration of the cluster: %w", err)
	}
	return yaml, nil
}
