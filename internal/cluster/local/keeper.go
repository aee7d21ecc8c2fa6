package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/skewproof/skewproof/internal/cluster"
)

var _ cluster.Keeper = (*Cluster)(nil)

// Keys implements [cluster.Keeper].
func (c *Cluster) Keys(ctx context.Context) ([]string, error) {
	gateway, err := c.gateway()
	if err != nil {
		return nil, err
	}
	return gateway.Keys(ctx)
}

// RemoveKeys implements [cluster.Keeper].
func (c *Cluster) RemoveKeys(ctx context.Context, keys []string) error {
	gateway, err := c.gateway()
	if err != nil {
		return err
	}
	return gateway.Remove(ctx, keys)
}

// Forget implements [cluster.Keeper].
func (c *Cluster) Forget() error {
	c.ForgetIncarnations()
	for _, s := range c.Servers {
		if err := os.Truncate(c.config.Files.audit(s.Name), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("empty the log of requests of server %q: %w", s.Name, err)
		}
	}
	return nil
}
