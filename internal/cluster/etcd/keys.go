package etcd

import (
	"context"
	"fmt"
	"strings"
)

// events are the prefixes of the keys of events, which expire by themselves.
var events = []string{objects + "events/", objects + "events.k8s.io/"}

// Keys returns all keys that servers keep in etcd, sorted, without those of events.
func (g Gateway) Keys(ctx context.Context) ([]string, error) {
	found, _, err := g.page(ctx, objects, rangeRequest{KeysOnly: true})
	if err != nil {
		return nil, fmt.Errorf("list the keys in etcd: %w", err)
	}
	var keys []string
	for _, kv := range found {
		if key := string(kv.Key); !strings.HasPrefix(key, events[0]) && !strings.HasPrefix(key, events[1]) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Remove removes keys. It is not an error if a key does not exist.
func (g Gateway) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		body, err := g.post(ctx, "/v3/kv/deleterange", rangeRequest{Key: []byte(key)})
		if err != nil {
			return fmt.Errorf("remove %s from etcd: %w", key, err)
		}
		_ = body.Close()
	}
	return nil
}
