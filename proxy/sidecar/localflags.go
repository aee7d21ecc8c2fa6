package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// flagsEvery is how often the sidecar checks the local server's flags while they are known: a
	// server reads an AuthenticationConfiguration again without a restart. flagsRetry is how often
	// it checks until they are known.
	flagsEvery   = 5 * time.Minute
	flagsRetry   = time.Second
	flagsTimeout = 5 * time.Second
)

// anonymousPath is a path for requests without credentials. Nothing is at this path, so no server
// has it in anonymous.conditions. A server that does not answer 401 there lets anonymous requests
// in at all paths.
const anonymousPath = "/skewproof-proxy/anonymous-auth"

// builtInProxy are the names of the post-start hooks that a kube-apiserver has only if its own
// Mixed Version Proxy works. With the feature gate alone, without --peer-ca-file, it has none of
// them (pkg/controlplane/apiserver, server.go, from v1.34; pkg/controlplane, instance.go, before).
var builtInProxy = []string{"poststarthook/mixed-version-proxy-handler", "poststarthook/unknown-version-proxy-filter"}

// These are the compared flags, as labels of a metric.
const (
	flagAnonymous = "anonymous-auth"
	flagBuiltIn   = "UnknownVersionInteroperabilityProxy"
)

// localFlags watches whether flags of the local server fit to the sidecar's flags. It is safe for
// concurrent use.
type localFlags struct {
	upstream  *url.URL
	anonymous http.RoundTripper // without credentials
	asSelf    http.RoundTripper
	allowed   bool     // --anonymous-auth
	paths     []string // --anonymous-auth-paths
	log       *slog.Logger
	differ    *prometheus.GaugeVec

	state     atomic.Int32 // an acceptance: whether the server accepts callers whom the sidecar takes for anonymous
	suspected atomic.Bool

	mu       sync.Mutex
	findings map[string]string // by flag: what is wrong
}

func newLocalFlags(o *Options, upstream *url.URL, anonymous, asSelf http.RoundTripper, log *slog.Logger) *localFlags {
	f := &localFlags{
		upstream: upstream, anonymous: anonymous, asSelf: asSelf, allowed: o.AnonymousAuth, paths: o.AnonymousAuthPaths, log: log,
		findings: map[string]string{},
		differ: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "skewproof_proxy_local_flag_mismatch",
			Help: "1 if a flag or feature gate of the local kube-apiserver does not fit to the proxy, 0 if it does.",
		}, []string{"flag"}),
	}
	if !f.allowed {
		f.state.Store(int32(accepted)) // the sidecar treats no caller as anonymous
	}
	return f
}

// Run checks the flags until ctx ends: at the start, after suspect, and every flagsEvery.
func (f *localFlags) Run(ctx context.Context) {
	var looked time.Time
	_ = wait.PollUntilContextCancel(ctx, flagsRetry, true, func(ctx context.Context) (bool, error) {
		if now := time.Now(); f.suspected.Swap(false) || looked.IsZero() || now.Sub(looked) >= flagsEvery {
			if looked = now; !f.look(ctx) {
				looked = time.Time{} // again soon
			}
		}
		return false, nil
	})
}

// suspect discards the known flags. It is called when the local server has a new process, which may
// have other flags.
func (f *localFlags) suspect() {
	if f.allowed {
		f.state.Store(int32(acceptanceUnknown))
	}
	f.suspected.Store(true)
}

// known reports whether the sidecar knows if the local server accepts anonymous requests.
func (f *localFlags) known() bool { return acceptance(f.state.Load()) != acceptanceUnknown }

// trouble returns descriptions of the flags that do not fit, sorted.
func (f *localFlags) trouble() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, what := range f.findings {
		all = append(all, what)
	}
	slices.Sort(all)
	return all
}

// look asks the local server once, and reports whether it has learnt all flags.
func (f *localFlags) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, flagsTimeout)
	defer cancel()
	anonymous := f.lookAnonymous(ctx)
	builtIn, err := f.hasBuiltInProxy(ctx)
	if err != nil {
		f.log.Debug("could not find out whether the local kube-apiserver's own Mixed Version Proxy is on", "error", err)
		return false
	}
	what := ""
	if builtIn {
		what = "the local kube-apiserver's own Mixed Version Proxy is on, so it passes on requests that a peer has passed on, and reports the " +
			"discovery of its peers as its own: start it with --feature-gates=" + flagBuiltIn + "=false, or without --peer-ca-file"
	}
	f.found(flagBuiltIn, what)
	return anonymous
}

// lookAnonymous compares --anonymous-auth and --anonymous-auth-paths.
func (f *localFlags) lookAnonymous(ctx context.Context) bool {
	asserted := f.paths // where the sidecar asserts system:anonymous
	if len(asserted) == 0 {
		asserted = []string{anonymousPath}
	}
	if !f.allowed {
		asserted = nil
	}
	for _, path := range asserted {
		switch answer, err := f.askAnonymously(ctx, path); answer {
		case acceptanceUnknown:
			f.log.Debug("could not find out whether the local kube-apiserver accepts anonymous requests", "path", path, "error", err)
			return false
		case refused:
			f.state.Store(int32(refused))
			f.found(flagAnonymous, fmt.Sprintf("the local kube-apiserver answers an anonymous request at %s with 401, "+
				"and the proxy would not: anonymous requests are answered with 401 until the proxy has the same --anonymous-auth, "+
				"and as --anonymous-auth-paths the paths of the server's anonymous.conditions", path))
			return true
		}
	}
	f.state.Store(int32(accepted))
	if f.allowed && len(f.paths) == 0 {
		f.found(flagAnonymous, "")
		return true
	}
	elsewhere, _ := f.askAnonymously(ctx, anonymousPath)
	if elsewhere == acceptanceUnknown {
		return false
	}
	what := ""
	if elsewhere == accepted {
		what = "the local kube-apiserver accepts anonymous requests that the proxy answers with 401: give both the same --anonymous-auth, " +
			"and the proxy no --anonymous-auth-paths unless the server has anonymous.conditions"
	}
	f.found(flagAnonymous, what)
	return true
}

func (f *localFlags) askAnonymously(ctx context.Context, path string) (acceptance, error) {
	answer, err := f.get(ctx, f.anonymous, path)
	if err != nil {
		return acceptanceUnknown, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBuffered)) // so that the connection can be used again
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized:
		return refused, nil
	case code == http.StatusInternalServerError && path != anonymousPath: // a failed check of health
	case code == http.StatusTooManyRequests, code >= 500:
		return acceptanceUnknown, errors.New(answer.Status)
	}
	return accepted, nil // 403, 404, or the answer of the path
}

// hasBuiltInProxy reports whether the server's list of health checks has a check of its own proxy.
func (f *localFlags) hasBuiltInProxy(ctx context.Context) (bool, error) {
	answer, err := f.get(ctx, f.asSelf, "/livez?verbose")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusInternalServerError { // 500: a check fails
		return false, errors.New(answer.Status)
	}
	found := false
	lines := bufio.NewScanner(io.LimitReader(answer.Body, maxBuffered))
	for lines.Scan() {
		_, check, _ := bytes.Cut(lines.Bytes(), []byte("]"))
		name, _, _ := strings.Cut(string(check), " ")
		found = found || slices.Contains(builtInProxy, name)
	}
	return found, lines.Err()
}

func (f *localFlags) get(ctx context.Context, by http.RoundTripper, target string) (*http.Response, error) {
	path, query, _ := strings.Cut(target, "?")
	u := f.upstream.JoinPath(path)
	u.RawQuery = query
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	return by.RoundTrip(r)
}

// found stores the problem of a flag, "" if there is none, and logs a change.
func (f *localFlags) found(flag, what string) {
	f.mu.Lock()
	before := f.findings[flag]
	f.findings[flag] = what
	if what == "" {
		delete(f.findings, flag)
	}
	f.mu.Unlock()
	value := 0.0
	if what != "" {
		value = 1
	}
	f.differ.WithLabelValues(flag).Set(value)
	switch {
	case what == before:
	case what == "":
		f.log.Info("a flag of the local kube-apiserver fits now", "flag", flag)
	default:
		f.log.Error("a flag of the local kube-apiserver does not fit", "flag", flag, "error", what)
	}
}

// anonymousAsLocal refuses callers without credentials if the local server would refuse them. The
// local server itself does not refuse them: because of the front-proxy certificate, it trusts the
// identity that the sidecar asserts. Callers of a peer pass, because the peer has already decided
// which callers are anonymous.
func anonymousAsLocal(f *localFlags, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !callerFrom(r.Context()).nobody() || fromPeer(r) {
			next.ServeHTTP(w, r)
			return
		}
		switch acceptance(f.state.Load()) {
		case accepted:
			next.ServeHTTP(w, r)
		case refused:
			accessedFrom(r.Context()).Decision = decisionRefused
			answerError(w, r, apierrors.NewUnauthorized("Unauthorized"))
		default:
			w.Header().Set("Retry-After", "1") // safe: the request was not carried out
			answerError(w, r, apierrors.NewServiceUnavailable("it is not known yet whether the local kube-apiserver accepts anonymous requests"))
		}
	})
}
