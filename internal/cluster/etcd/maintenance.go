package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Compact removes all revisions before the newest one, also from etcd's file, and returns the
// newest one.
func (g Gateway) Compact(ctx context.Context) (revision int64, err error) {
	if revision, err = g.revision(ctx); err != nil {
		return 0, fmt.Errorf("compact etcd: %w", err)
	}
	err = g.command(ctx, "/v3/kv/compaction", struct {
		Revision int64 `json:"revision,string"`
		Physical bool  `json:"physical"`
	}{revision, true})
	if err != nil {
		return 0, fmt.Errorf("compact etcd at revision %d: %w", revision, err)
	}
	return revision, nil
}

// Defragment makes etcd rewrite its file. It returns the sizes of the file in bytes before and
// after. Etcd answers no other request in the meantime.
func (g Gateway) Defragment(ctx context.Context) (before, after int64, err error) {
	if before, err = g.size(ctx); err == nil {
		err = g.command(ctx, "/v3/maintenance/defragment", struct{}{})
	}
	if err == nil {
		after, err = g.size(ctx)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("defragment etcd: %w", err)
	}
	return before, after, nil
}

// size returns the size of etcd's file in bytes.
func (g Gateway) size(ctx context.Context) (int64, error) {
	body, err := g.post(ctx, "/v3/maintenance/status", struct{}{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	var status struct {
		Size int64 `json:"dbSize,string"`
	}
	if err := json.NewDecoder(body).Decode(&status); err != nil {
		return 0, fmt.Errorf("read the status of etcd at %s: %w", g.Address, err)
	}
	return status.Size, nil
}

// command posts a request and ignores the content of the answer.
func (g Gateway) command(ctx context.Context, path string, what any) error {
	body, err := g.post(ctx, path, what)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	_, err = io.Copy(io.Discard, body)
	return err
}
