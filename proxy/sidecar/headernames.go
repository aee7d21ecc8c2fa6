package sidecar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy/peers"
)

// authenticationConfig is the ConfigMap in kube-system in which every kube-apiserver publishes its
// --requestheader flags (pkg/controlplane/controller/clusterauthenticationtrust). It has the flags
// of all present and former servers: a server adds its own flags and removes none.
const authenticationConfig = "extension-apiserver-authentication"

// headerNames are the headers from which the sidecar, its local server or a peer may read an
// identity. If the sidecar does not remove a header that the local server reads, a client can
// choose any identity: the server trusts the header because of the sidecar's front-proxy
// certificate. So the sidecar serves nothing until it has compared its names with the names that
// the servers publish. If it lacks some of them, it refuses to start. Names that are published
// later are removed from requests at once. It is safe for concurrent use.
type headerNames struct {
	own       *identityNames
	published atomic.Pointer[identityNames] // by the servers; nil until it has been read and agrees with own
	present   atomic.Pointer[identityNames] // those of published that are published now
	grown     atomic.Bool                   // published has names that own lacks
	comparing sync.Mutex                    // held while published changes
	changed   func(*identityNames)          // called before published changes; nil: nothing is called
	client    kubernetes.Interface
	log       *slog.Logger
}

// compared reports whether the names have been compared and agree.
func (n *headerNames) compared() bool { return n.published.Load() != nil }

// everybodyKnows returns those of the own names of one kind that every other sidecar knows too: the
// standard names and those that are published now. So every sidecar removes headers with these
// names from the requests of its clients. A sidecar that has started since a name was last
// published does not know that name.
func (n *headerNames) everybodyKnows(of func(*identityNames) []string) []string {
	known := of(standardNames)
	if present := n.present.Load(); present != nil {
		known = slices.Concat(known, of(present))
	}
	var both []string
	for _, name := range of(n.own) {
		if slices.ContainsFunc(known, func(each string) bool { return strings.EqualFold(each, name) }) {
			both = append(both, name)
		}
	}
	return both
}

// drop deletes the headers with one of these names, or with a standard name, in every spelling. It
// returns the published names whose headers it deleted.
func (n *headerNames) drop(h http.Header) *identityNames {
	published := n.published.Load()
	maps.DeleteFunc(h, func(key string, _ []string) bool {
		return n.own.match(key) || standardNames.match(key) || published != nil && published.match(key)
	})
	return published
}

// Run watches the ConfigMap until ctx ends. It returns an error if the names disagree when they are
// first compared. While the ConfigMap cannot be read, Run tries again: the local server may not
// have started, or may not have written the ConfigMap.
func (n *headerNames) Run(ctx context.Context) error {
	informer := coreinformers.NewFilteredConfigMapInformer(n.client, peers.Namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, authenticationConfig).String()
	})
	failed := ""
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if err.Error() != failed && !n.compared() {
			failed = err.Error()
			n.log.Warn("could not read the ConfigMap with the servers' --requestheader flags; requests are answered with 503 until then",
				"configMap", peers.Namespace+"/"+authenticationConfig, "error", err)
		}
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed := func(o any) {
		if m, ok := o.(*corev1.ConfigMap); ok && m.Name == authenticationConfig {
			if err := n.compare(m.Data); err != nil {
				cancel(err)
			}
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) },
	}); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// read compares the names with the published ones.
func (n *headerNames) read(ctx context.Context) error {
	now, err := n.client.CoreV1().ConfigMaps(peers.Namespace).Get(ctx, authenticationConfig, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the ConfigMap %s/%s: %w", peers.Namespace, authenticationConfig, err)
	}
	return n.compare(now.Data)
}

// compare compares the names with published names. It returns an error if they disagree and never
// agreed before. Later, new published names are only added to the headers that are removed.
func (n *headerNames) compare(data map[string]string) error {
	n.comparing.Lock()
	defer n.comparing.Unlock()
	published, err := readNames(data)
	if err == nil {
		err = n.own.disagreement(published)
	}
	if err != nil {
		err = fmt.Errorf("compare the --requestheader flags with those in the ConfigMap %s/%s: %w", peers.Namespace, authenticationConfig, err)
		if !n.compared() {
			return err
		}
		n.log.Error(
			"the published --requestheader flags have changed: headers of all published names are removed, "+
				"but the proxy will not start again with its flags",
			"error", err)
	}
	n.present.Store(published)
	before := n.published.Load()
	published = published.with(cmp.Or(before, &identityNames{})) // a server may still read a name that it once read
	if before != nil && published.equal(before) {
		return nil
	}
	if n.changed != nil {
		n.changed(published)
	}
	n.published.Store(published)
	if err != nil {
		n.grown.Store(true)
	}
	return nil
}

// dropLater returns a request for a peer without the headers whose names were published after the
// client's headers were removed. It keeps those that the sidecar writes.
func (n *headerNames) dropLater(r *http.Request) *http.Request {
	if !n.grown.Load() {
		return r
	}
	published, clean := n.published.Load(), *r
	clean.Header = maps.Clone(r.Header)
	maps.DeleteFunc(clean.Header, func(key string, _ []string) bool {
		return published.match(key) && !n.own.match(key) && !standardNames.match(key)
	})
	return &clean
}

// withoutLater sends requests to peers without headers whose names were published meanwhile: a
// request may wait for its body, or for another peer.
type withoutLater struct {
	http.RoundTripper
	names *headerNames
}

func (t withoutLater) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.RoundTripper.RoundTrip(t.names.dropLater(r))
}

// readNames reads the data of the ConfigMap. After an error, the result still has the names that
// could be read.
func readNames(data map[string]string) (*identityNames, error) {
	names := &identityNames{}
	var wrong problems
	if data["requestheader-client-ca-file"] == "" {
		wrong.addf(
			"requestheader-client-ca-file is missing, so the local kube-apiserver trusts no identity headers: " +
				"start it with --requestheader-client-ca-file")
	}
	for key, list := range map[string]*[]string{
		"requestheader-username-headers": &names.user, "requestheader-uid-headers": &names.uid,
		"requestheader-group-headers": &names.group, "requestheader-extra-headers-prefix": &names.extra,
	} {
		if data[key] == "" {
			continue // UIDs are optional; for the others, the comparison reports what is missing
		}
		if err := json.Unmarshal([]byte(data[key]), list); err != nil {
			wrong.addf("%s: %w", key, err)
		}
	}
	return names, errors.Join(wrong...)
}

// disagreement returns the dangerous differences from the published names. It is dangerous if a
// server may read a name that n lacks, or if no server reads the name that n writes. A UID may get
// lost, because old servers remove the published names of UID headers.
func (n *identityNames) disagreement(published *identityNames) error {
	var wrong problems
	for _, list := range []struct {
		flag           string
		own, published []string
		optional       bool
	}{
		{"--requestheader-username-headers", n.user, published.user, false},
		{"--requestheader-uid-headers", n.uid, published.uid, true},
		{"--requestheader-group-headers", n.group, published.group, false},
		{"--requestheader-extra-headers-prefix", n.extra, published.extra, false},
	} {
		has := func(names []string, name string) bool {
			return slices.ContainsFunc(names, func(each string) bool { return strings.EqualFold(each, name) })
		}
		for _, name := range list.published {
			if !has(list.own, name) {
				wrong.addf("a kube-apiserver reads %q, and the proxy has no such name, so a client could pretend to be anybody: "+
					"add it to the proxy's %s (or remove it from the ConfigMap, if no server has this flag any more)", name, list.flag)
			}
		}
		if !list.optional && !has(list.published, list.own[0]) {
			wrong.addf("the proxy writes %q, which no kube-apiserver reads (they read %q): give the servers and the proxy the same %s",
				list.own[0], list.published, list.flag)
		}
	}
	return errors.Join(wrong...)
}

func (n *identityNames) equal(other *identityNames) bool {
	return slices.Equal(n.user, other.user) && slices.Equal(n.uid, other.uid) && slices.Equal(n.group, other.group) &&
		slices.Equal(n.extra, other.extra)
}

// with returns the names of both n and other, each once and sorted.
func (n *identityNames) with(other *identityNames) *identityNames {
	both := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return &identityNames{
		user: both(n.user, other.user), uid: both(n.uid, other.uid), group: both(n.group, other.group), extra: both(n.extra, other.extra),
	}
}

// afterComparison answers 503 until the names have been compared.
func afterComparison(names *headerNames, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !names.compared() {
			w.Header().Set("Retry-After", "1")
			answerError(w, r,
				apierrors.NewServiceUnavailable("the proxy does not know yet by which headers the local kube-apiserver reads identities"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
