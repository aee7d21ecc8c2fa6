// Package etcd reads the etcd of a run: single keys, and every change of every API object. It
// connects to etcd directly, around all links and faults, so the ground truth does not depend on
// what servers answer.
package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Gateway is etcd's gateway for JSON (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway). It is
// safe for concurrent use.
type Gateway struct {
	// Client trusts etcd and has a certificate that etcd trusts. It must have no Timeout, which
	// would end watches.
	Client *http.Client
	// Address is the host:port of one of etcd's client URLs. The connection uses TLS.
	Address string
}

// keyValue is a key with its value and the revision of its last change. In the answers of the
// gateway, bytes are base64 and 64-bit numbers are strings (ProtoJSON).
type keyValue struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value"`
	ModRevision int64  `json:"mod_revision,string"`
}

// rangeRequest and rangeResponse have the fields of etcdserverpb.RangeRequest and RangeResponse
// that this package uses.
type rangeRequest struct {
	Key       []byte `json:"key"`
	RangeEnd  []byte `json:"range_end,omitempty"`
	Limit     int64  `json:"limit,string,omitempty"`
	Revision  int64  `json:"revision,string,omitempty"` // 0: the newest
	CountOnly bool   `json:"count_only,omitempty"`
	KeysOnly  bool   `json:"keys_only,omitempty"`
}

type rangeResponse struct {
	Header struct {
		Revision int64 `json:"revision,string"` // of etcd when it answered
	} `json:"header"`
	KVs  []keyValue `json:"kvs"`
	More bool       `json:"more"`
}

// Get returns the value of a key, or nil if etcd has no such key.
func (g Gateway) Get(ctx context.Context, key string) ([]byte, error) {
	answer, err := g.read(ctx, rangeRequest{Key: []byte(key)})
	if err != nil || len(answer.KVs) == 0 {
		return nil, err
	}
	return answer.KVs[0].Value, nil
}

// revision returns etcd's newest revision.
func (g Gateway) revision(ctx context.Context) (int64, error) {
	answer, err := g.read(ctx, rangeRequest{Key: []byte(objects), CountOnly: true})
	return answer.Header.Revision, err
}

// pageSize is the number of keys that are read at once.
const pageSize = 500

// list reads all keys with a prefix, in the order of keys, as they are at one revision. It returns
// that revision.
func (g Gateway) list(ctx context.Context, prefix string) (all []keyValue, revision int64, err error) {
	return g.page(ctx, prefix, rangeRequest{})
}

// page is list with other fields of its requests.
func (g Gateway) page(ctx context.Context, prefix string, r rangeRequest) (all []keyValue, revision int64, err error) {
	r.Key, r.RangeEnd, r.Limit = []byte(prefix), endOf(prefix), pageSize
	for {
		r.Revision = revision
		page, err := g.read(ctx, r)
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
		all = append(all, page.KVs...)
		if !page.More || len(page.KVs) == 0 {
			return all, revision, nil
		}
		r.Key = append(bytes.Clone(page.KVs[len(page.KVs)-1].Key), 0)
	}
}

// endOf returns the first key after all keys with a prefix.
func endOf(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++ // prefixes end with a slash
	return end
}

func (g Gateway) read(ctx context.Context, question rangeRequest) (rangeResponse, error) {
	var answer rangeResponse
	body, err := g.post(ctx, "/v3/kv/range", question)
	if err != nil {
		return answer, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("read the answer of etcd at %s: %w", g.Address, err)
	}
	return answer, nil
}

// post returns the body of an answer. The caller closes it.
func (g Gateway) post(ctx context.Context, path string, question any) (io.ReadCloser, error) {
	encoded, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+g.Address+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	response, err := g.Client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return nil, fmt.Errorf("etcd at %s answered %s: %s", g.Address, response.Status, strings.TrimSpace(string(text)))
	}
	return response.Body, nil
}
