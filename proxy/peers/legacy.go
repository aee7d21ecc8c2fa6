package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

const (
	acceptLegacy = "application/json"
	// maxLegacyVersions bounds the requests that one answer can cause.
	maxLegacyVersions = 1000
	// legacyWorkers is how many of these requests are sent at the same time under Together.
	legacyWorkers = 8
)

// isLegacy reports whether an answer lists groups or versions without resources. Servers before
// 1.27 answer like this by default, for any Accept header.
func isLegacy(contentType string, body []byte) bool {
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != acceptLegacy {
		return false
	}
	var meta metav1.TypeMeta
	return json.Unmarshal(body, &meta) == nil && (meta.Kind == "APIGroupList" || meta.Kind == "APIVersions")
}

// legacy fetches a root and each of its group versions, and makes one document from them. A version
// whose aggregated API is down is listed without resources. Any other failure fails the document,
// because missing resources must not count as absent.
func (c *discoveryClient) legacy(ctx context.Context, server url.URL, root string) (discovery.Groups, error) {
	groups, err := c.legacyGroups(ctx, server, root)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, g := range groups {
		for _, v := range g.Versions {
			paths = append(paths, root+"/"+v.GroupVersion)
		}
	}
	if len(paths) > maxLegacyVersions {
		return nil, documentError{fmt.Errorf("it lists %d group versions, more than the %d that are asked for", len(paths), maxLegacyVersions)}
	}
	var left atomic.Int64 // how many bytes of the document may still be read
	left.Store(discovery.MaxBody)
	lists := make([]*metav1.APIResourceList, len(paths))
	errs := make([]error, len(paths))
	workers := 1
	if c.Together {
		workers = legacyWorkers
	}
	var wg sync.WaitGroup
	for w := range workers {
		work := func() {
			for i := w; i < len(paths); i += workers {
				if lists[i], errs[i] = c.legacyResources(ctx, server, paths[i], &left); errs[i] != nil {
					return // the document has failed
				}
			}
		}
		if workers == 1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	document, err := discovery.FromLegacy(groups, lists)
	if err != nil {
		return nil, documentError{err}
	}
	return document, nil
}

// legacyGroups returns a root's groups. For /api, this is only the core group.
func (c *discoveryClient) legacyGroups(ctx context.Context, server url.URL, root string) ([]metav1.APIGroup, error) {
	r, err := c.get(ctx, server, root, acceptLegacy, "", discovery.MaxBody)
	if err != nil {
		return nil, err
	}
	if root == proxy.RootCore.Path() {
		var versions metav1.APIVersions
		if err := json.Unmarshal(r.body, &versions); err != nil {
			return nil, documentError{err}
		}
		return discovery.LegacyCore(&versions), nil
	}
	var list metav1.APIGroupList
	if err := json.Unmarshal(r.body, &list); err != nil {
		return nil, documentError{err}
	}
	return list.Groups, nil
}

// legacyResources returns a version's resources. It returns nil on 404 and 503, because an
// aggregated API that is down must not hide all other APIs. left is how many bytes may still be
// read of all lists together.
func (c *discoveryClient) legacyResources(ctx context.Context, server url.URL, path string,
	left *atomic.Int64) (*metav1.APIResourceList, error) {
	limit := left.Load()
	if limit <= 0 {
		return nil, documentError{fmt.Errorf("its lists are together longer than %d bytes", discovery.MaxBody)}
	}
	r, err := c.get(ctx, server, path, acceptLegacy, "", limit)
	left.Add(-int64(len(r.body)))
	var status statusError
	if errors.As(err, &status) && (status == http.StatusNotFound || status == http.StatusServiceUnavailable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(r.body, &list); err != nil {
		return nil, documentError{err}
	}
	return &list, nil
}
