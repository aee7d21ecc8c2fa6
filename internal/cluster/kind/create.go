package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kind/pkg/cluster"
)

// create makes the network and the cluster. When ctx ends, create removes the nodes, because kind
// takes no context.
func (c *Cluster) create(ctx context.Context) (err error) {
	if c.gateway, err = createNetwork(ctx, c.config.Name, c.config.Files.Keys); err != nil {
		return err
	}
	configuration, err := c.writeFiles()
	if err != nil {
		return err
	}
	kindLog, err := os.OpenFile(c.config.Files.log("kind"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open kind's log: %w", err)
	}
	defer func() { _ = kindLog.Close() }()
	if err := os.Setenv(networkVariable, c.config.Name); err != nil {
		return err
	}
	var prepared bool
	var failed error
	log := &logger{all: kindLog, status: c.config.Status, stage: func() {
		if prepared || failed != nil || !c.nodesRun(ctx) {
			return
		}
		if failed = c.prepare(ctx); failed != nil {
			failed = errors.Join(failed, remove(context.WithoutCancel(ctx), c.config.Name)) // kind's next stage finds nothing, and gives up
		}
		prepared = true
	}}
	done := make(chan error, 1)
	go func() {
		done <- cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(log)).Create(c.config.Name,
			cluster.CreateWithRawConfig(configuration), cluster.CreateWithKubeconfigPath(c.config.Files.Kubeconfig()),
			cluster.CreateWithRetain(true))
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = remove(context.WithoutCancel(ctx), c.config.Name) // Close does it again, and returns the error
		<-done
		return context.Cause(ctx)
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("make the kind cluster: %w; the output of kind and kubeadm is in %s", err, c.config.Files.log("kind"))
	case !prepared:
		return errors.New("make the kind cluster: this version of kind never said that the nodes run, so faults could not be put between them")
	}
	return nil
}

func (c *Cluster) nodesRun(ctx context.Context) bool {
	all, err := addresses(ctx, c.config.Name)
	for _, s := range c.Servers {
		if !all[s.place.Node].IsValid() {
			return false
		}
	}
	return err == nil
}

// prepare is called after the nodes have started and before kubeadm does.
func (c *Cluster) prepare(ctx context.Context) error {
	for _, s := range c.Servers {
		if err := awaitBoot(ctx, s.place.Node); err != nil {
			return err
		}
	}
	// kubeadm uses this authority, because it exists, and kind copies it to the other nodes.
	for _, name := range []string{"ca.crt", "ca.key"} {
		content, err := os.ReadFile(c.config.Files.key(name))
		if err != nil {
			return err
		}
		if err := write(ctx, c.Servers[0].place.Node, pkiDir+"/"+name, content); err != nil {
			return err
		}
	}
	return c.interpose(ctx)
}

// awaitBoot waits until systemd has started a node. On cgroup v1 kind does not wait, and kubeadm
// may start too early.
// Source: NodeReachedCgroupsReadyRegexp in
// sigs.k8s.io/kind/pkg/cluster/internal/providers/common/cgroups.go.
func awaitBoot(ctx context.Context, node string) error {
	const lines = `for i in $(seq "$1"); do systemctl is-active --quiet multi-user.target && exit; sleep 0.1; done; exit 1`
	if _, err := script(ctx, node, lines, fmt.Sprint(startTimeout.Milliseconds()/100)); err != nil {
		return fmt.Errorf("node %s has not come up within %s: %w", node, startTimeout, err)
	}
	return nil
}

// writeFiles writes the files of the nodes and the configuration of the cluster.
func (c *Cluster) writeFiles() ([]byte, error) {
	configuration := Configuration{
		Name: c.config.Name, Image: c.config.Image, Subject: c.config.Subject, Files: c.config.Files.Nodes, Names: []string{c.gateway.String()},
		Own: c.config.Own,
	}
	for _, s := range c.Servers {
		configuration.Nodes = append(configuration.Nodes, Node{Version: s.Version, Setup: s.Setup()})
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
