package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/etcd"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
)

var _ cluster.Administrator = (*Cluster)(nil)

// administrationTimeout bounds each action of the administrator.
const administrationTimeout = 30 * time.Second

func (c *Cluster) gateway() (etcd.Gateway, error) {
	client, err := c.askEtcd()
	return etcd.Gateway{Client: client, Address: etcdReal.String()}, err
}

// CompactEtcd implements [cluster.Administrator].
func (c *Cluster) CompactEtcd(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, administrationTimeout)
	defer cancel()
	of, err := c.gateway()
	if err != nil {
		return "", err
	}
	revision, err := of.Compact(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("etcd compacted at revision %d", revision), nil
}

// DefragmentEtcd implements [cluster.Administrator].
func (c *Cluster) DefragmentEtcd(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, administrationTimeout)
	defer cancel()
	of, err := c.gateway()
	if err != nil {
		return "", err
	}
	began := time.Now()
	before, after, err := of.Defragment(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("etcd rewrote %d bytes as %d in %s", before, after, time.Since(began).Round(time.Millisecond)), nil
}

// DeleteLease implements [cluster.Administrator]. It asks any server that is ready.
func (c *Cluster) DeleteLease(ctx context.Context, server string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, administrationTimeout)
	defer cancel()
	of, err := c.Find(server)
	if err != nil {
		return "", err
	}
	name := lifecycle.Identity(cmp.Or(of.withSetup().setup().HostnameOf, server))
	all, err := c.ready()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, s := range all {
		err = s.client.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{})
		switch {
		case err == nil:
			return "the lease " + name + " was deleted", nil
		case apierrors.IsNotFound(err):
			return "there was no lease " + name, nil
		}
		errs = append(errs, fmt.Errorf("through %s: %w", s.name, err))
	}
	return "", fmt.Errorf("delete the lease of %s: %w", server, errors.Join(errs...))
}

// readyServer is a server that is ready, with a client of the administrator.
type readyServer struct {
	name   string
	client *kubernetes.Clientset
}

// ready returns the servers that are ready. It is an error if there is none.
func (c *Cluster) ready() (all []readyServer, err error) {
	for _, s := range c.Servers {
		if s.Ready() == nil {
			continue
		}
		config, err := c.Direct(s.Name)
		if err != nil {
			return nil, err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		all = append(all, readyServer{s.Name, client})
	}
	if len(all) == 0 {
		return nil, errors.New("no server is ready")
	}
	return all, nil
}
