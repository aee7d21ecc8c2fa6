package existing

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Seen is what the servers say before the load.
type Seen struct {
	// Versions are the versions, by server.
	Versions map[string]string
	// Proxies says whether the kube-apiserver's own proxy is on, by server. A server that does not
	// say so is missing.
	Proxies map[string]bool
	// Unnamed are the servers of the cluster to which no context leads.
	Unnamed []string
	// Unknown says for people what could not be found out, and why.
	Unknown []string
}

// UnansweredError is the error about a server that gives no answer, or not that of a
// kube-apiserver.
type UnansweredError struct {
	Server, Host, What string
	Err                error
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("ask server %q at %s for %s: %v", e.Server, e.Host, e.What, e.Err)
}

// Unwrap returns the error without the server.
func (e *UnansweredError) Unwrap() error { return e.Err }

// Look asks the servers who they are, and as whom they see the user. It refuses contexts that do
// not lead to one server each, of one cluster and with one user. An [UnansweredError] is not the
// fault of the contexts. Any other error is wrong usage, and says what to change.
func Look(ctx context.Context, endpoints []Endpoint) (Seen, error) {
	seen := Seen{Versions: map[string]string{}, Proxies: map[string]bool{}}
	var doors []*door
	for _, e := range endpoints {
		doors = append(doors, &door{server: e.Name, config: e.Direct})
		if e.Direct != e.FrontDoor {
			doors = append(doors, &door{server: e.Name, config: e.FrontDoor})
		}
	}
	for _, d := range doors {
		if err := d.look(ctx); err != nil {
			return seen, err
		}
	}
	if err := checkOneServerEach(doors); err != nil {
		return seen, err
	}
	if err := checkOneUser(ctx, doors); err != nil {
		return seen, err
	}
	for _, d := range doors {
		if d.cluster != "" && doors[0].cluster != "" && d.cluster != doors[0].cluster {
			return seen, fmt.Errorf("contexts %q and %q lead to different clusters: name the contexts of one", doors[0].server, d.server)
		}
		if seen.Versions[d.server] != "" { // the kube-apiserver behind this door has said it all
			continue
		}
		seen.Versions[d.server] = d.version
		if d.on == nil {
			seen.Unknown = append(seen.Unknown, fmt.Sprintf("whether %s has its own proxy on: its metrics cannot be read (%s)", d.server, d.mute))
		} else {
			seen.Proxies[d.server] = *d.on
		}
	}
	var err error
	if seen.Unnamed, err = unnamed(ctx, doors); err != nil {
		seen.Unknown = append(seen.Unknown, fmt.Sprintf("whether the cluster has more servers: %v", err))
	}
	return seen, nil
}

// door is one address of one server, with what answers there.
type door struct {
	server string
	config *rest.Config
	identity
	version string
	on      *bool    // whether the kube-apiserver's own proxy is on; nil if the metrics do not say so
	mute    string   // why there are no metrics
	cluster string   // the UID of the namespace kube-system; empty if it cannot be read
	names   []string // the names in the serving certificate
}

// identity distinguishes processes of kube-apiservers. Empty fields are unknown.
type identity struct {
	address     string // host:port that the server says clients reach it by
	certificate string // the beginning of the serving certificate's SHA-256
	started     string // the start time of the process, in seconds
}

func (i identity) String() string {
	said := fmt.Sprintf("%q (certificate %s", i.address, i.certificate)
	if i.started != "" {
		said += ", started at " + i.started + " s"
	}
	return said + ")"
}

// is reports whether two doors lead to one process. Several servers may have one certificate, or
// the address of a load balancer.
func (i identity) is(other identity) bool {
	if i.started != "" && other.started != "" {
		return i.started == other.started && i.address == other.address
	}
	return i.address != "" && i.address == other.address && i.certificate == other.certificate
}

const (
	// tries is the number of connections to each door. A load balancer that chooses among three
	// servers at random gives all of them to one server once in two thousand times.
	tries = 8
	// heavyTries is the number of these connections that read the metrics, which are megabytes.
	heavyTries = 2
	// metricsTimeout is the limit for reading the metrics.
	metricsTimeout = 30 * time.Second
)

// look asks through several connections at once, so that a load balancer shows.
func (d *door) look(ctx context.Context) error {
	sights := make([]door, tries)
	var all errgroup.Group
	for i := range sights {
		sights[i] = *d
		all.Go(func() error { return sights[i].ask(ctx, i < heavyTries) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	*d = sights[0]
	for _, s := range sights[1:] {
		started := s.started != "" && d.started != "" && s.started != d.started
		if s.address != d.address || s.certificate != d.certificate || started {
			return fmt.Errorf("context %q leads to several servers: %s answers as %s and as %s, so it is a load balancer: "+
				"give each server a context of its own: %s", d.server, d.config.Host, d.identity, s.identity, howTo)
		}
	}
	return nil
}

// ask asks through a connection of its own.
func (d *door) ask(ctx context.Context, heavy bool) error {
	client, err := rest.HTTPClientFor(rest.CopyConfig(d.config)) // client-go shares no transport that has a Proxy function
	if err != nil {
		return fmt.Errorf("context %q: %w", d.server, err)
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	var versions metav1.APIVersions
	status, err := d.get(ctx, client, "/api", requestTimeout, func(r *http.Response) error {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			leaf := r.TLS.PeerCertificates[0]
			d.certificate, d.names = fmt.Sprintf("%x", sha256.Sum256(leaf.Raw))[:12], leaf.DNSNames
		}
		return json.NewDecoder(r.Body).Decode(&versions)
	})
	switch {
	case err != nil:
		return err
	case status == http.StatusUnauthorized:
		return fmt.Errorf("context %q: %s does not accept the user's credentials (401): renew them, or give those of another user", d.server,
			d.config.Host)
	case status == http.StatusForbidden:
		return fmt.Errorf("context %q: the user may not read /api at %s (403): bind the user the ClusterRole system:discovery, "+
			"and one with get, list and watch for all resources", d.server, d.config.Host)
	case status != http.StatusOK || versions.Kind != "APIVersions":
		return &UnansweredError{d.server, d.config.Host, "/api", fmt.Errorf("status %d, without the versions that a kube-apiserver lists", status)}
	}
	for _, at := range versions.ServerAddressByClientCIDRs {
		if at.ClientCIDR == "0.0.0.0/0" { // other ranges are of Services, whose address is that of all servers
			d.address = at.ServerAddress
		}
	}
	if !heavy {
		return nil
	}
	d.readMetrics(ctx, client)
	var info version.Info
	status, err = d.get(ctx, client, "/version", requestTimeout, func(r *http.Response) error { return json.NewDecoder(r.Body).Decode(&info) })
	if d.version = info.GitVersion; err == nil && d.version == "" {
		err = &UnansweredError{d.server, d.config.Host, "/version", fmt.Errorf("status %d, without a version", status)}
	}
	if err != nil {
		return err
	}
	var system metav1.PartialObjectMetadata
	if status, err := d.get(ctx, client, "/api/v1/namespaces/"+metav1.NamespaceSystem, requestTimeout, func(r *http.Response) error {
		return json.NewDecoder(r.Body).Decode(&system)
	}); err == nil && status == http.StatusOK {
		d.cluster = string(system.UID)
	}
	return nil
}

// get sends a GET. read gets the answer if its status is 200.
func (d *door) get(ctx context.Context, client *http.Client, path string, limit time.Duration, read func(*http.Response) error) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.config.Host+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "application/json, text/plain;q=0.5")
	response, err := client.Do(request)
	if err != nil {
		return 0, &UnansweredError{d.server, d.config.Host, path, err}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		if err := read(response); err != nil {
			return 0, &UnansweredError{d.server, d.config.Host, path, err}
		}
	}
	return response.StatusCode, nil
}

// readMetrics reads when the process started, and whether its proxy is on.
func (d *door) readMetrics(ctx context.Context, client *http.Client) {
	status, err := d.get(ctx, client, "/metrics", metricsTimeout, func(r *http.Response) error {
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case name == "process_start_time_seconds":
				d.started = value
			case strings.HasPrefix(name, "kubernetes_feature_enabled{") && strings.Contains(name, `name="`+scenario.Gate+`"`):
				d.on = new(value == "1")
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	switch {
	case err != nil:
		d.mute = err.Error()
	case status != http.StatusOK:
		d.mute = fmt.Sprintf("status %d", status)
	case d.on == nil: // a version without the gate
		d.on = new(false)
	}
}

// checkOneServerEach refuses doors of two contexts that lead to one process.
func checkOneServerEach(doors []*door) error {
	for i, d := range doors {
		for _, other := range doors[:i] {
			if other.server != d.server && d.is(other.identity) {
				return fmt.Errorf("contexts %q and %q lead to the same server, at %s and %s: it is %s. Give each server one context, "+
					"and not the load balancer's: %s", other.server, d.server, other.config.Host, d.config.Host, d.identity, howTo)
			}
		}
	}
	return nil
}

// checkOneUser refuses contexts of several users, so that only the servers differ. Each node of a
// control plane may have its own certificate for one user, so the servers say who the user is.
func checkOneUser(ctx context.Context, doors []*door) error {
	first := doors[0]
	differ := false
	for _, d := range doors {
		differ = differ || !sameCredentials(d.config, first.config)
	}
	if !differ {
		return nil
	}
	var whose string
	for _, d := range doors {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		client, err := kubernetes.NewForConfig(d.config)
		if err != nil {
			return fmt.Errorf("context %q: %w", d.server, err)
		}
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(attempt, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("contexts %q and %q have different credentials, and %q does not say whose they are (%w): give all contexts one user",
				first.server, d.server, d.server, err)
		}
		is := review.Status.UserInfo
		user := fmt.Sprintf("%q in the groups %q", is.Username, is.Groups)
		if whose == "" {
			whose = user
		}
		if user != whose {
			return fmt.Errorf("contexts %q and %q have different users, %s and %s: give contexts of one user, so that only the servers differ",
				first.server, d.server, whose, user)
		}
	}
	return nil
}
