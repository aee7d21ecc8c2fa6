package proxy

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// askAgainAfter is how long a peer's index of OpenAPI descriptions is used. It is also how long
	// the handler waits before it fetches a document again after a failed fetch.
	askAgainAfter = 10 * time.Second
	// maxPeerDocuments bounds the documents of all peers in memory, in bytes.
	maxPeerDocuments = 64 << 20
	// documentCost is how much a document counts in addition to its body, so that the number of
	// empty documents is bounded too.
	documentCost = 1 << 10
)

// peerDocuments are documents that the handler has fetched from peers: OpenAPI descriptions and
// lists with hashes of storage versions. Aggregated discovery does not have their content. The last
// good document of a peer stays when a later fetch fails. The zero value is empty. It is safe for
// concurrent use.
type peerDocuments struct {
	fetches singleflight.Group // by key: requests that need the same document share a fetch

	mu   sync.Mutex
	kept map[documentKey]*peerDocument
	size int
	uses uint64
}

type documentKey struct {
	peer ServerID
	path string
}

// peerDocument is immutable except for used.
type peerDocument struct {
	state string // of the peer, when it was fetched
	body  []byte // nil: none was ever fetched
	tag   string // changes with the body
	at    time.Time
	tried time.Time // the last fetch that failed
	used  uint64
}

var errNotAskedAgain = errors.New("its last fetch failed less than 10s ago, and it is not asked again yet")

// peerDocument returns a document of a peer. It fetches the document if it knows none for this
// state, or if the known one is older than most. If most is zero, documents do not age. state is
// any text that changes when the document may have changed.
func (h *Handler) peerDocument(p PeerView, path, state string, most time.Duration) (*peerDocument, error) {
	shared := strings.Join([]string{string(p.ID), p.Address, path, state}, " ")
	got, err, _ := h.peerDocuments.fetches.Do(shared, func() (any, error) { return h.freshDocument(p, path, state, most) })
	document, _ := got.(*peerDocument)
	return document, err
}

func (h *Handler) freshDocument(p PeerView, path, state string, most time.Duration) (*peerDocument, error) {
	key, now := documentKey{p.ID, path}, h.now()
	known := h.peerDocuments.get(key)
	switch {
	case known == nil:
		known = &peerDocument{}
	case known.body != nil && known.state == state && (most == 0 || now.Sub(known.at) < most):
		return known, nil
	}
	body, tag, err := h.fetchDocument(p, path, known, now)
	if err == nil {
		fresh := &peerDocument{state: state, body: body, tag: tag, at: now}
		h.peerDocuments.put(key, fresh)
		return fresh, nil
	}
	if !errors.Is(err, errNotAskedAgain) {
		h.leftOut(p, path, err)
		h.peerDocuments.put(key, &peerDocument{state: known.state, body: known.body, tag: known.tag, at: known.at, tried: now})
	}
	if known.body != nil {
		return known, nil
	}
	return nil, err
}

func (h *Handler) fetchDocument(p PeerView, path string, known *peerDocument, now time.Time) (body []byte, tag string, err error) {
	switch {
	case !known.tried.IsZero() && now.Sub(known.tried) < askAgainAfter, now.Before(p.EjectedUntil):
		return nil, "", errNotAskedAgain
	case p.Address == "":
		return nil, "", errors.New("its address is not known")
	}
	body, tag, err = h.config.Document(context.Background(), p, path)
	if err != nil {
		return nil, "", err
	}
	if body == nil {
		body = []byte{}
	}
	return body, contentTag(tag, body), nil
}

// contentTag returns the entity tag without quotes. If there is no strong tag, it returns a hash of
// the body: only a strong tag changes with every byte (RFC 9110, 8.8.1).
func contentTag(etag string, body []byte) string {
	if tag := strings.Trim(etag, `"`); tag != "" && !strings.HasPrefix(etag, "W/") {
		return tag
	}
	return fmt.Sprintf("%X", sha512.Sum512(body))
}

// spoilt forgets a document that cannot be used. The document is not fetched again for a while.
func (h *Handler) spoilt(p PeerView, path string, err error) {
	h.leftOut(p, path, err)
	h.peerDocuments.put(documentKey{p.ID, path}, &peerDocument{tried: h.now()})
}

func (h *Handler) leftOut(p PeerView, path string, err error) {
	h.log.LogAttrs(context.Background(), slog.LevelWarn, "a peer's document is left out of the merged one",
		slog.String("peer", string(p.ID)), slog.String("path", path), slog.Any("err", err))
}

func (d *peerDocuments) get(key documentKey) *peerDocument {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.kept[key]
	if known != nil {
		d.uses++
		known.used = d.uses
	}
	return known
}

// put stores a document. If there are too many, it deletes the documents that were not used for the
// longest time.
func (d *peerDocuments) put(key documentKey, document *peerDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = map[documentKey]*peerDocument{}
	}
	d.forget(key)
	d.uses++
	document.used = d.uses
	d.kept[key] = document
	d.size += documentCost + len(document.body)
	for d.size > maxPeerDocuments && len(d.kept) > 1 {
		oldest, least := documentKey{}, d.uses
		for k, known := range d.kept { // in any order: no two documents have the same value of used
			if known.used < least {
				oldest, least = k, known.used
			}
		}
		d.forget(oldest)
	}
}

func (d *peerDocuments) forget(key documentKey) {
	if known, ok := d.kept[key]; ok {
		d.size -= documentCost + len(known.body)
		delete(d.kept, key)
	}
}
