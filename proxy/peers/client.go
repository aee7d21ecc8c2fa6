package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// maxVersion bounds the part of an answer to /version that is read, in bytes.
const maxVersion = 64 << 10

// discoveryClient asks servers what they serve. It is immutable and safe for concurrent use.
type discoveryClient struct {
	// Transport sends the requests. Redirects are not followed, because they could lead to any
	// host.
	Transport http.RoundTripper
	// Identity names the headers for the client's identity, system:apiserver.
	Identity proxy.IdentityHeaders
	// Privileged is [proxy.FetchingPolicy].Privileged.
	Privileged bool
	// Hop adds the hop header, which keeps a peer from asking its own peers.
	Hop bool
	// Accept is the Accept header for aggregated discovery.
	Accept string
	// EmptyIsDocument is the switch EmptyIsDocument of [proxy.Quirks].
	EmptyIsDocument bool
	// Timeout bounds the fetch of one document; zero: the transport's limits.
	Timeout time.Duration
	// Together fetches the documents at the same time. Otherwise they are fetched in turn in the
	// caller's goroutine.
	Together bool
	// Answered is called with the status code of each answer; nil: none.
	Answered func(code int)
}

// answer is the result of asking a server. It is immutable.
type answer struct {
	Version string // the version at /version ("v1.37.1"), "" if it could not be fetched
	Roots   [2]proxy.RootResult
	// Broken: the connection failed or broke (without a timeout), so the server may have restarted.
	Broken bool
	// Refused: a connection was refused or reset. So no process listens at the address, or none
	// behind the balancer that does.
	Refused bool

	kept [2]kept
}

// kept is the last good document of a root, for conditional requests.
type kept struct {
	etag   string
	groups discovery.Groups
}

// ask asks a server. It uses the scheme, host and path prefix of the server's URL. before is an
// earlier answer of the same process, nil if there is none. With it, the server does not send
// unchanged documents again (RFC 9110, 13.1.2), and the new answer has the same [discovery.Groups].
func (c *discoveryClient) ask(ctx context.Context, server url.URL, before *answer) *answer {
	if before == nil {
		before = &answer{}
	}
	a := &answer{kept: before.kept}
	var errs [3]error
	tasks := []func(){
		func() { errs[0] = c.root(ctx, server, proxy.RootCore, a) },
		func() { errs[1] = c.root(ctx, server, proxy.RootGroups, a) },
		func() { a.Version, errs[2] = c.version(ctx, server) },
	}
	if c.Together {
		var wg sync.WaitGroup
		for _, task := range tasks {
			wg.Go(task)
		}
		wg.Wait()
	} else {
		for i, task := range tasks {
			if i == 2 && errs[0] != nil && errs[1] != nil {
				break // the version will not come either
			}
			task()
		}
	}
	for _, err := range errs {
		a.Broken = a.Broken || broken(err)
		a.Refused = a.Refused || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
	}
	if a.Version == "" && !a.Broken {
		a.Version = before.Version
	}
	return a
}

// root fetches one document and stores it in an answer.
func (c *discoveryClient) root(ctx context.Context, server url.URL, root proxy.Root, a *answer) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	document, err := c.document(ctx, server, root.Path(), a.kept[root])
	if err != nil {
		a.Roots[root].Failed = trouble(err)
		return err
	}
	if before := a.kept[root].groups; equality.Semantic.DeepEqual(before, document.groups) {
		document.groups = before // the same document, without an ETag or with another one
	}
	a.kept[root] = document
	a.Roots[root].Groups = document.groups
	return nil
}

func (c *discoveryClient) document(ctx context.Context, server url.URL, path string, before kept) (kept, error) {
	r, err := c.get(ctx, server, path, c.Accept, before.etag, discovery.MaxBody)
	if c.EmptyIsDocument && r.code == http.StatusOK && ctx.Err() == nil {
		if len(r.body) == 0 {
			return kept{}, nil // no ETag: the next request gets the whole document
		}
		err = nil
	}
	if err != nil {
		return kept{}, err
	}
	if r.code == http.StatusNotModified {
		return before, nil
	}
	groups, err := discovery.Decode(r.contentType, r.body)
	if err != nil {
		return kept{}, documentError{err}
	}
	return kept{etag: r.etag, groups: groups}, nil
}

func (c *discoveryClient) version(ctx context.Context, server url.URL) (string, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	r, err := c.get(ctx, server, "/version", "application/json", "", maxVersion)
	if err != nil {
		return "", err
	}
	var info version.Info
	if err := json.Unmarshal(r.body, &info); err != nil {
		return "", documentError{err}
	}
	return info.GitVersion, nil
}

func (c *discoveryClient) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.Timeout)
}

// reply is an answer with status 200, or 304 if the request had an ETag.
type reply struct {
	code              int
	contentType, etag string
	body              []byte
}

// get sends one request. A status other than 200 or 304 is a statusError. If the body breaks off,
// get returns its beginning together with the error.
func (c *discoveryClient) get(ctx context.Context, server url.URL, path, accept, etag string, limit int64) (reply, error) {
	server.Path, server.RawPath, server.RawQuery = server.JoinPath(path).Path, "", ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.String(), nil)
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Accept", accept)
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	c.identify(request.Header)
	response, err := c.Transport.RoundTrip(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }() // the needed part of the body was read
	if c.Answered != nil {
		c.Answered(response.StatusCode)
	}
	r := reply{code: response.StatusCode, contentType: response.Header.Get("Content-Type"), etag: response.Header.Get("ETag")}
	switch {
	case r.code == http.StatusNotModified && etag != "":
	case r.code != http.StatusOK:
		return reply{}, statusError(r.code)
	case response.Header.Get("Content-Encoding") != "":
		return reply{}, documentError{errors.New("it has an encoding that was not requested")}
	}
	r.body, err = io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return r, err
	}
	if int64(len(r.body)) > limit {
		return reply{}, documentError{fmt.Errorf("it is longer than %d bytes", limit)}
	}
	return r, nil
}

// identify adds the headers that a kube-apiserver adds (upstream: aggregateDiscovery,
// peer_discovery.go).
func (c *discoveryClient) identify(h http.Header) {
	names := c.Identity.WithDefaults()
	h.Set(names.User, user.APIServerUser)
	h.Set(proxy.UIDHeader, user.APIServerUser)
	h.Set(names.Group, user.AllAuthenticated)
	if c.Privileged {
		h.Add(names.Group, user.SystemPrivilegedGroup)
	}
	if c.Hop {
		h.Set(proxy.HopHeader, "true")
	}
}

// broken reports whether an error means that the connection failed or broke.
func broken(err error) bool {
	return err != nil && !timedOut(err) && !errors.Is(err, context.Canceled) && !wire.Is[statusError](err) && !wire.Is[documentError](err)
}
