package existing

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	Versions map[string]string // by server
	// On and Off are the servers whose own proxy is on or off, as far as they say so.
	On, Off []string
	// Before are the servers before which another process may stand, for people: what answers there is
	// not the kube-apiserver, or is not at the address that the kube-apiserver says it has.
	Before []string
	// Unnamed are the servers of the cluster to which no context leads.
	Unnamed []string
	// Unknown says for people what could not be found out, and why.
	Unknown []string
}

// Unanswered is an error about a server that gives no answer, or not that of a kube-apiserver.
type Unanswered struct{ error }

// Look asks the servers who they are, and as whom they see the user. It refuses contexts that do
// not lead to one server each, of one cluster and with one user. An [Unanswered] is not the fault
// of the contexts. Any other error is wrong usage, and says what to change.
func Look(ctx context.Context, endpoints []Endpoint) (Seen, error) {
	seen := Seen{Versions: map[string]string{}}
	var doors []*door
	for _, e := range endpoints {
		d, err := look(ctx, door{server: e.Name, config: e.Config})
		if err == nil {
			err = d.compare(doors)
		}
		if err != nil {
			return seen, err
		}
		doors = append(doors, d)
		seen.Versions[e.Name] = d.version
		if !d.alone(ctx) {
			seen.Before = append(seen.Before, fmt.Sprintf("%s at %s, whose kube-apiserver is at %s", e.Name, d.config.Host, d.address))
		}
		switch {
		case d.mute != "":
			seen.Unknown = append(seen.Unknown, fmt.Sprintf("whether %s has its own proxy on: its metrics cannot be read (%s)", e.Name, d.mute))
		case d.on:
			seen.On = append(seen.On, e.Name)
		default:
			seen.Off = append(seen.Off, e.Name)
		}
	}
	err := checkOneUser(ctx, doors)
	if err != nil {
		return seen, err
	}
	if seen.Unnamed, err = unnamed(ctx, doors); err != nil {
		seen.Unknown = append(seen.Unknown, fmt.Sprintf("whether the cluster has more servers: %v", err))
	}
	return seen, nil
}

// door is the address of a server, with what answers there. The address, the certificate and the
// start time distinguish processes; they are empty if unknown.
type door struct {
	server string
	config *rest.Config

	address     string // host:port by which clients reach the server, as it says
	certificate string // the beginning of the serving certificate's SHA-256
	started     string // the start time of the process, in seconds

	version string
	on      bool     // whether the kube-apiserver's own proxy is on
	mute    string   // why the metrics cannot be read
	cluster string   // the UID of the namespace kube-system; empty if it cannot be read
	names   []string // the names in the serving certificate
}

func (d *door) String() string {
	started := cmp.Or(d.started, "a time that is not known")
	if seconds, err := strconv.ParseFloat(d.started, 64); err == nil {
		started = time.UnixMilli(int64(seconds * 1000)).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return fmt.Sprintf("%q (certificate %s, started at %s)", d.address, d.certificate, started)
}

const (
	// tries is the number of connections to each door. A load balancer that chooses among three
	// servers at random gives all of them to one server once in two thousand times.
	tries = 8
	// heavyTries is the number of these connections that read the metrics, which are megabytes.
	heavyTries  = 2
	lookTimeout = 30 * time.Second
)

// look asks through several connections at once, so that a load balancer shows.
func look(ctx context.Context, d door) (*door, error) {
	var sights [tries]door
	var all errgroup.Group
	for i := range sights {
		sights[i] = d
		all.Go(func() error { return sights[i].ask(ctx, i < heavyTries) })
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	first := &sights[0]
	for i := range sights {
		s := &sights[i]
		if s.address != first.address || s.certificate != first.certificate || s.started != "" && s.started != first.started {
			return nil, fmt.Errorf("context %q leads to several servers: %s answers as %s and as %s, so it is a load balancer: "+
				"give each server a context of its own: %s", d.server, d.config.Host, first, s, howTo)
		}
	}
	return first, nil
}

// ask asks through a connection of its own.
func (d *door) ask(ctx context.Context, heavy bool) error {
	client, err := rest.HTTPClientFor(rest.CopyConfig(d.config)) // client-go shares no transport that has a Proxy function
	if err != nil {
		return fmt.Errorf("context %q: %w", d.server, err)
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	var api metav1.APIVersions
	switch status, err := d.get(ctx, client, "/api", &api); {
	case err != nil:
		return err
	case status == http.StatusUnauthorized:
		return fmt.Errorf("context %q: %s does not accept the user's credentials (401): renew them, or give those of another user", d.server,
			d.config.Host)
	case status == http.StatusForbidden:
		return fmt.Errorf("context %q: the user may not read /api at %s (403): bind the user the ClusterRole system:discovery, "+
			"and one with get, list and watch for all resources", d.server, d.config.Host)
	case api.Kind != "APIVersions":
		return d.unanswered("/api", fmt.Errorf("status %d, without the versions that a kube-apiserver lists", status))
	}
	for _, at := range api.ServerAddressByClientCIDRs {
		if at.ClientCIDR == "0.0.0.0/0" { // other ranges are of Services, whose address is that of all servers
			d.address = at.ServerAddress
		}
	}
	if !heavy {
		return nil
	}
	switch status, err := d.get(ctx, client, "/metrics", d.readMetrics); {
	case err != nil:
		d.mute = err.Error()
	case status != http.StatusOK:
		d.mute = fmt.Sprintf("status %d", status)
	}
	var is version.Info
	var system metav1.PartialObjectMetadata
	if status, err := d.get(ctx, client, "/version", &is); err != nil || is.GitVersion == "" {
		return d.unanswered("its version", fmt.Errorf("status %d, error %w", status, err))
	}
	_, err = d.get(ctx, client, "/api/v1/namespaces/"+metav1.NamespaceSystem, &system)
	d.version, d.cluster = is.GitVersion, string(system.UID)
	return err
}

func (d *door) unanswered(what string, err error) error {
	return Unanswered{fmt.Errorf("ask server %q at %s for %s: %w", d.server, d.config.Host, what, err)}
}

// get sends a GET. If the status is 200, it decodes the body into a value, or lets a function read
// it.
func (d *door) get(ctx context.Context, client *http.Client, path string, into any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.config.Host+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "application/json, text/plain;q=0.5")
	response, err := client.Do(request)
	if err != nil {
		return 0, d.unanswered(path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		leaf := response.TLS.PeerCertificates[0]
		d.certificate, d.names = fmt.Sprintf("%x", sha256.Sum256(leaf.Raw))[:12], leaf.DNSNames
	}
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil
	}
	if read, ok := into.(func(io.Reader) error); ok {
		err = read(response.Body)
	} else {
		err = json.NewDecoder(response.Body).Decode(into)
	}
	if err != nil {
		return 0, d.unanswered(path, err)
	}
	return http.StatusOK, nil
}

// readMetrics finds out when the process started, and whether its proxy is on. A version without
// the gate has no proxy.
func (d *door) readMetrics(metrics io.Reader) error {
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch {
		case name == "process_start_time_seconds":
			d.started = value
		case strings.HasPrefix(name, "kubernetes_feature_enabled{") && strings.Contains(name, `name="`+scenario.Gate+`"`):
			d.on = value == "1"
		}
	}
	return lines.Err()
}

// alone reports whether the kube-apiserver itself answers at this door: the door is the address
// that the kube-apiserver says it has. No other process can be there as well.
func (d *door) alone(ctx context.Context) bool {
	host, port, err := net.SplitHostPort(d.address)
	at, parsed := url.Parse(d.config.Host)
	if err != nil || parsed != nil || cmp.Or(at.Port(), "443") != port {
		return false
	}
	if at.Hostname() == host {
		return true
	}
	addresses, _ := net.DefaultResolver.LookupHost(ctx, at.Hostname()) // a name that leads nowhere is not this address
	return slices.Contains(addresses, host)
}

// compare refuses a door that leads to the same process as a door of another context, or to another
// cluster. Several servers may have one certificate, or the address of a load balancer.
func (d *door) compare(doors []*door) error {
	for _, other := range doors {
		if d.cluster != "" && other.cluster != "" && d.cluster != other.cluster {
			return fmt.Errorf("contexts %q and %q lead to different clusters: name the contexts of one", other.server, d.server)
		}
		same := d.address != "" && d.certificate == other.certificate
		if d.started != "" && other.started != "" {
			same = d.started == other.started
		}
		if same && d.address == other.address || d.config.Host == other.config.Host {
			return fmt.Errorf("contexts %q and %q lead to the same server, at %s and %s: it is %s. Give each server one context, "+
				"and not the load balancer's: %s", other.server, d.server, other.config.Host, d.config.Host, d, howTo)
		}
	}
	return nil
}

// checkOneUser refuses contexts of several users, so that only the servers differ. Each node of a
// control plane may have its own certificate for one user, so the servers say who the user is.
func checkOneUser(ctx context.Context, doors []*door) error {
	first := doors[0]
	if !slices.ContainsFunc(doors, func(d *door) bool { return !sameCredentials(d.config, first.config) }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	whose := ""
	for _, d := range doors {
		client, err := kubernetes.NewForConfig(d.config)
		if err != nil {
			return fmt.Errorf("context %q: %w", d.server, err)
		}
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("contexts %q and %q have different credentials, and %q does not say whose they are (%w): give all contexts one user",
				first.server, d.server, d.server, err)
		}
		is := review.Status.UserInfo
		user := fmt.Sprintf("%q in the groups %q", is.Username, is.Groups)
		if whose = cmp.Or(whose, user); user != whose {
			return fmt.Errorf("contexts %q and %q have different users, %s and %s: give contexts of one user, so that only the servers differ",
				first.server, d.server, whose, user)
		}
	}
	return nil
}
