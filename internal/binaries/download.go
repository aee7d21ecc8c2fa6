package binaries

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// A host that does not answer is asked once, for a few seconds, because a build can replace a
// download.
const (
	dialTimeout   = 3 * time.Second // name lookup included
	headerTimeout = 5 * time.Second
	stallTimeout  = 30 * time.Second // without a byte

	// maxDownload bounds a download from a wrong address. It is ten times the size of a
	// kube-apiserver.
	maxDownload = 1 << 30
	// maxChecksums bounds a checksum file: a line for each of a few dozen files.
	maxChecksums = 1 << 20
)

// release says where one version of a component is published, and under which file name its
// checksum.
type release struct {
	url, file string
	sumsURL   string
}

func releaseOf(ref Ref, base string) release {
	if ref.Component == Etcd {
		file := fmt.Sprintf("etcd-%s-%s.tar.gz", ref.Version, platform())
		dir := fmt.Sprintf("%s/%s/", base, ref.Version)
		return release{url: dir + file, file: file, sumsURL: dir + "SHA256SUMS"}
	}
	url := fmt.Sprintf("%s/%s/bin/%s/%s/%s", base, ref.Version, runtime.GOOS, runtime.GOARCH, ref.Component)
	return release{url: url, file: string(ref.Component), sumsURL: url + ".sha256"}
}

func (s *Store) download(ctx context.Context, ref Ref, work workspace, p progress) (got Binary, err error) {
	base := cmp.Or(s.KubernetesURL, DefaultKubernetesURL)
	if ref.Component == Etcd {
		base = cmp.Or(s.EtcdURL, DefaultEtcdURL)
	}
	rel := releaseOf(ref, base)
	client := newClient(cmp.Or(s.limits.headers, headerTimeout))
	defer client.CloseIdleConnections()
	p.say("looking for the release at %s", rel.url)
	want, err := fetchChecksum(ctx, client, rel, cmp.Or(s.limits.checksum, stallTimeout))
	if err != nil {
		return got, err
	}

	to := work.binary()
	if ref.Component == Etcd {
		to = work.path("release.tar.gz")
	}
	var received atomic.Int64
	done := p.during("downloading "+rel.url, 0, func() string { return megabytes(received.Load()) })
	sum, err := fetchFile(ctx, client, rel.url, to, cmp.Or(s.limits.stall, stallTimeout), &received)
	done()
	if err != nil {
		return got, err
	}
	if sum != want {
		return got, fmt.Errorf("%w: %s has the SHA-256 %s, but %s says %s: it is not used, and may have been changed "+
			"on the way", errChecksum, rel.url, sum, rel.sumsURL, want)
	}
	if ref.Component == Etcd {
		entry := strings.TrimSuffix(rel.file, ".tar.gz") + "/etcd"
		if err := extractFile(to, entry, work.binary()); err != nil {
			return got, fmt.Errorf("unpack %s: %w", rel.url, err)
		}
	}
	if err := os.Chmod(work.binary(), 0o755); err != nil {
		return got, err
	}
	got.How = "downloaded from " + rel.url
	return got, nil
}

// newClient returns a client with a timeout for every phase except the body. fetchFile watches the
// body.
func newClient(headers time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   headers,
			ResponseHeaderTimeout: headers,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			// The checksum comes from the same host as the file, so only TLS protects it.
			if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
				return fmt.Errorf("redirected from https to %s", req.URL.Scheme)
			}
			if len(via) >= 10 {
				return errors.New("redirected ten times")
			}
			return nil
		},
	}
}

func get(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err // a *url.Error, which names the address
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return resp, nil
	case http.StatusNotFound, http.StatusGone:
		err = fmt.Errorf("%w: %s: %s", errNoRelease, url, resp.Status)
	default:
		err = fmt.Errorf("get %s: %s", url, resp.Status)
	}
	_ = resp.Body.Close()
	return nil, err
}

// fetchChecksum reads the SHA-256 of a release: the only word of the checksum file, or the first
// word of the line that ends with the name of the file (sha256sum(1)). limit bounds the download.
func fetchChecksum(ctx context.Context, client *http.Client, rel release, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not come within %s", limit))
	defer cancel()
	resp, err := get(ctx, client, rel.sumsURL)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxChecksums))
	if err != nil { // the last line may be cut short
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("read %s: %w", rel.sumsURL, err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(fields) > 1 && strings.TrimPrefix(fields[1], "*") != rel.file {
			continue
		}
		sum := strings.ToLower(fields[0])
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
			return "", fmt.Errorf("%s: %.80q is not a SHA-256", rel.sumsURL, strings.TrimSpace(line))
		}
		return sum, nil
	}
	return "", fmt.Errorf("%s has no checksum for %s", rel.sumsURL, rel.file)
}

// fetchFile downloads a URL to a new file and returns its SHA-256.
func fetchFile(ctx context.Context, client *http.Client, url, to string, stall time.Duration, received *atomic.Int64) (sum string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := get(ctx, client, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	watchdog := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no data arrived for %s", stall)) })
	defer watchdog.Stop()
	h := sha256.New()
	body := &meteredReader{r: io.LimitReader(resp.Body, maxDownload+1), n: received, alive: func() { watchdog.Reset(stall) }}
	n, err := io.Copy(io.MultiWriter(f, h), body)
	switch {
	case err != nil:
		return "", fmt.Errorf("get %s: broken off after %s: %w", url, megabytes(n), cmp.Or(context.Cause(ctx), err))
	case n > maxDownload:
		return "", fmt.Errorf("get %s: it is larger than %s", url, megabytes(maxDownload))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// meteredReader counts bytes, and calls alive whenever it has read some.
type meteredReader struct {
	r     io.Reader
	n     *atomic.Int64
	alive func()
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n > 0 {
		m.n.Add(int64(n))
		m.alive()
	}
	return n, err
}
