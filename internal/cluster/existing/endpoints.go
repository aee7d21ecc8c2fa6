// Package existing judges kube-apiservers that skewproof did not start. It only reads, and connects
// only to addresses in the kubeconfig.
//
// It cannot see the processes of the servers or their audit logs. So it cannot judge how often a
// request was passed on, as which user, and how often it was carried out.
package existing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint says how to reach one server.
type Endpoint struct {
	// Name is the name of the context. Reports use it as the name of the server.
	Name string
	// Config is for all requests to the server. It ignores proxies of the environment.
	Config *rest.Config
}

// ErrUnreadable is wrapped by the errors about a kubeconfig that cannot be read.
var ErrUnreadable = errors.New("read kubeconfig")

// Contexts returns the names of the contexts in a kubeconfig, sorted. file is as for [Endpoints].
// If it is empty, kubectl's own file is read. A file that cannot be read has no contexts.
func Contexts(file string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if file != "" {
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(file)}
	}
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// Endpoints reads one endpoint for each context from a kubeconfig. file may be a list of files as
// in $KUBECONFIG. If contexts is empty, Endpoints takes all contexts, in alphabetical order.
//
// An error wraps [ErrUnreadable] if a file cannot be read. Any other error is wrong usage, and says
// what to change.
func Endpoints(file string, contexts []string) ([]Endpoint, error) {
	config, files, err := load(file)
	if err != nil {
		return nil, err
	}
	if len(contexts) == 0 {
		contexts = slices.Sorted(maps.Keys(config.Contexts))
	}
	for i, name := range contexts {
		if slices.Contains(contexts[:i], name) {
			return nil, fmt.Errorf("context %q is named twice: name each server once", name)
		}
		if err := checkContext(config, files, name); err != nil {
			return nil, fmt.Errorf("kubeconfig %s, %w", file, err)
		}
	}
	if len(contexts) < 2 {
		return nil, fmt.Errorf("kubeconfig %s: %d contexts: two servers at least are needed, with a context for each: %s", file, len(contexts), howTo)
	}
	var endpoints []Endpoint
	for _, name := range contexts {
		c, err := clientcmd.NewNonInteractiveClientConfig(*config.DeepCopy(), name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
		if err == nil {
			err = checkUsable(c)
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s, context %q: %w", file, name, err)
		}
		endpoints = append(endpoints, Endpoint{Name: name, Config: c})
	}
	return endpoints, nil
}

// howTo says how a server gets a context of its own.
const howTo = "kubectl config set-cluster NAME --server https://ADDRESS:6443 --certificate-authority FILE, " +
	"and kubectl config set-context NAME --cluster NAME --user USER"

// load reads the files of a list, and merges them as kubectl does: of each name, only the entry of
// the first file counts.
func load(list string) (*api.Config, []*api.Config, error) {
	merged := api.NewConfig()
	var files []*api.Config
	for _, path := range filepath.SplitList(list) {
		if path == "" {
			continue
		}
		switch info, err := os.Stat(path); {
		case err != nil: // client-go treats a missing file as an empty one
			return nil, nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		case !info.Mode().IsRegular(): // client-go would wait for a pipe for ever
			return nil, nil, fmt.Errorf("%w: %s is a directory, a pipe or a device; write the kubeconfig to a file", ErrUnreadable, path)
		}
		one, err := (&clientcmd.ClientConfigLoadingRules{Precedence: []string{path}}).Load()
		if err != nil {
			why, _, _ := strings.Cut(err.Error(), " in list: ") // after that, client-go prints entries with their secrets
			return nil, nil, fmt.Errorf("%w: %s is not a kubeconfig: %s", ErrUnreadable, path, why)
		}
		add(merged.Contexts, one.Contexts)
		add(merged.Clusters, one.Clusters)
		add(merged.AuthInfos, one.AuthInfos)
		files = append(files, one)
	}
	return merged, files, nil
}

func add[T any](to, from map[string]*T) {
	for name, entry := range from {
		if to[name] == nil {
			to[name] = entry
		}
	}
}

// checkContext refuses a context with which client-go would ask other servers, or as another user,
// than the file says.
func checkContext(config *api.Config, files []*api.Config, name string) error {
	context := config.Contexts[name]
	if context == nil {
		return fmt.Errorf("no context %q: it has %s", name, strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", "))
	}
	user := config.AuthInfos[context.AuthInfo]
	switch {
	case name == "": // kubectl cannot name it either
		return errors.New("a context has no name: give it one")
	case config.Clusters[context.Cluster] == nil: // client-go would ask localhost
		return fmt.Errorf("context %q: there is no cluster %q: correct the name, or add the cluster", name, context.Cluster)
	case context.AuthInfo != "" && user == nil: // client-go would send anonymous requests
		return fmt.Errorf("context %q: there is no user %q: correct the name, or add the user", name, context.AuthInfo)
	case user != nil && user.AuthProvider != nil:
		return fmt.Errorf("context %q: user %q has the auth-provider %q: no such provider is built in, and Kubernetes removes them: "+
			"give the user an exec plugin or a token", name, context.AuthInfo, user.AuthProvider.Name)
	}
	for _, f := range files {
		own := f.Contexts[name]
		if own == nil {
			continue
		}
		what := ""
		switch {
		case !same(own, context):
			what = fmt.Sprintf("context %q", name)
		case f.Clusters[own.Cluster] != nil && !same(f.Clusters[own.Cluster], config.Clusters[own.Cluster]):
			what = fmt.Sprintf("cluster %q", own.Cluster)
		case f.AuthInfos[own.AuthInfo] != nil && !same(f.AuthInfos[own.AuthInfo], user):
			what = fmt.Sprintf("user %q", own.AuthInfo)
		default:
			continue
		}
		return fmt.Errorf("context %q: kubectl and skewproof ignore the %s of %s, because a file before it has another one of that name: "+
			"give each server names of its own: %s", name, what, own.LocationOfOrigin, howTo)
	}
	return nil
}

// same compares two entries, not the files that they are from.
func same[T any](a, b *T) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// checkUsable refuses configurations that the load cannot or must not use. It switches off proxies
// of the environment and loads the files that the configuration names.
func checkUsable(c *rest.Config) error {
	u, err := url.Parse(c.Host)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("server %q is not an https URL, so client-go would not use TLS: write https://HOST:PORT", c.Host)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil:
		return fmt.Errorf("server %q has a path, a query or a user: give the URL of the server itself, https://HOST:PORT, not of a load balancer", u.Redacted())
	case c.Insecure:
		return errors.New("it skips TLS verification, but answers of unverified servers prove nothing: give the CA")
	case c.Proxy != nil:
		return errors.New("it has a proxy-url, but servers are only asked directly: remove it, and run where they can be reached")
	}
	c.Host = "https://" + u.Host
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // client-go would use HTTPS_PROXY
	if err := rest.LoadTLSFiles(c); err != nil {
		return err
	}
	c.CAFile, c.CertFile, c.KeyFile = "", "", ""
	if _, err := rest.TLSConfigFor(c); c.ExecProvider != nil && err != nil {
		return err
	} else if err != nil {
		return fmt.Errorf("its certificates or keys cannot be used: %w (kubectl config view leaves them out unless it is called with --raw)", err)
	}
	return nil
}

// sameCredentials reports whether two configurations surely name one user.
func sameCredentials(a, b *rest.Config) bool {
	of := func(c *rest.Config) []any {
		return []any{c.Username, c.Password, c.BearerToken, c.BearerTokenFile, string(c.CertData), string(c.KeyData), c.Impersonate, c.ExecProvider}
	}
	return reflect.DeepEqual(of(a), of(b))
}
