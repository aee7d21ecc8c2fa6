// Package existing judges kube-apiservers that skewproof did not start. It only reads, and connects
// only to addresses in the kubeconfig.
//
// It cannot see the processes of the servers or their audit logs. So it cannot judge how often a
// request was passed on, as which user, and how often it was carried out.
package existing

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Endpoint says how to reach one server.
type Endpoint struct {
	// Name is the name of the context. Reports use it as the name of the server.
	Name string
	// FrontDoor is for requests of clients. Direct is for requests to the kube-apiserver itself.
	// They differ if the proxy is a separate process. Both ignore proxies of the environment.
	FrontDoor, Direct *rest.Config
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
// in $KUBECONFIG. If contexts is empty, Endpoints takes all contexts, in alphabetical order. direct
// names, in the same order, the contexts of the kube-apiservers behind the proxy. It is nil if the
// proxy is part of the kube-apiserver.
//
// All contexts must have one user, so that only the servers differ. An error wraps [ErrUnreadable]
// if a file cannot be read. Any other error is wrong usage, and says what to change.
func Endpoints(file string, contexts, direct []string) ([]Endpoint, error) {
	files := filepath.SplitList(file)
	for _, f := range files { // client-go treats a missing file as an empty one
		opened, err := os.Open(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		_ = opened.Close()
	}
	config, err := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not a kubeconfig: %w", ErrUnreadable, file, err)
	}
	if len(contexts) == 0 {
		contexts = slices.DeleteFunc(slices.Sorted(maps.Keys(config.Contexts)), func(c string) bool { return slices.Contains(direct, c) })
	}
	for _, name := range slices.Concat(contexts, direct) {
		context := config.Contexts[name]
		if context == nil {
			return nil, fmt.Errorf("kubeconfig %s has no context %q: it has %s", file, name,
				strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", "))
		}
		if user := context.AuthInfo; user != "" && config.AuthInfos[user] == nil { // client-go would send anonymous requests
			return nil, fmt.Errorf("kubeconfig %s, context %q: there is no user %q: correct the name, or add the user", file, name, user)
		}
	}
	if len(direct) > 0 && len(direct) != len(contexts) {
		return nil, fmt.Errorf("%d direct contexts for %d contexts: name one for each, in the same order", len(direct), len(contexts))
	}
	if len(contexts) < 2 {
		return nil, fmt.Errorf("kubeconfig %s: %d contexts: two servers at least are needed, with a context for each", file, len(contexts))
	}
	read := func(name string) (*rest.Config, error) {
		c, err := clientcmd.NewNonInteractiveClientConfig(*config, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
		if err == nil {
			err = checkUsable(c)
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s, context %q: %w", file, name, err)
		}
		return c, nil
	}
	var endpoints []Endpoint
	for i, name := range contexts {
		endpoint := Endpoint{Name: name}
		if endpoint.FrontDoor, err = read(name); err != nil {
			return nil, err
		}
		endpoint.Direct = endpoint.FrontDoor
		if len(direct) > 0 {
			if endpoint.Direct, err = read(direct[i]); err != nil {
				return nil, err
			}
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints, checkDistinct(endpoints)
}

// checkUsable refuses configurations that the load cannot or must not use. It switches off proxies
// of the environment and loads the files that the configuration names.
func checkUsable(c *rest.Config) error {
	u, err := url.Parse(c.Host)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("server %q is not an https URL", c.Host)
	case strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("server %q has a path: give the URL of the server itself, not of a load balancer", c.Host)
	case c.Insecure:
		return errors.New("it skips TLS verification, but answers of unverified servers prove nothing: give the CA")
	case c.Proxy != nil:
		return errors.New("it has a proxy-url: the servers are dialled directly only")
	}
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // client-go would use HTTPS_PROXY
	if err := rest.LoadTLSFiles(c); err != nil {
		return err
	}
	c.CAFile, c.CertFile, c.KeyFile = "", "", ""
	return nil
}

// checkDistinct refuses contexts with the same server, or with different users.
func checkDistinct(endpoints []Endpoint) error {
	first := endpoints[0]
	seen := map[string]string{}
	for _, endpoint := range endpoints {
		if (len(endpoint.FrontDoor.CAData) == 0) != (len(first.FrontDoor.CAData) == 0) { // the load has one bundle, or the system's
			return fmt.Errorf("of the contexts %q and %q one has a certificate authority and the other has not: give it for all, or for none",
				first.Name, endpoint.Name)
		}
		for _, c := range []*rest.Config{endpoint.FrontDoor, endpoint.Direct} { // one server behind two proxies would count as two
			if other := seen[address(c)]; other != "" && other != endpoint.Name {
				return fmt.Errorf("contexts %q and %q lead to the same server, %s: give each server a context of its own, not the load balancer's",
					other, endpoint.Name, c.Host)
			}
			seen[address(c)] = endpoint.Name
		}
		for _, c := range []*rest.Config{endpoint.FrontDoor, endpoint.Direct} {
			if !reflect.DeepEqual(user(c), user(first.FrontDoor)) {
				return fmt.Errorf("contexts %q and %q have different users: give contexts of one user, so that only the servers differ", first.Name,
					endpoint.Name)
			}
		}
		if endpoint.FrontDoor.ServerName != first.FrontDoor.ServerName {
			return fmt.Errorf("contexts %q and %q have different names under tls-server-name: the load can use one only", first.Name, endpoint.Name)
		}
	}
	return nil
}

// address is the host:port of a configuration. It is the same for different spellings of a URL.
func address(c *rest.Config) string {
	u, err := url.Parse(c.Host)
	if err != nil { // checkUsable refuses it
		return c.Host
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443"))
}

// user is the part of a configuration that identifies the user.
func user(c *rest.Config) any {
	return []any{
		c.Username, c.Password, c.BearerToken, c.BearerTokenFile, string(c.CertData), string(c.KeyData), c.Impersonate, c.ExecProvider,
		c.AuthProvider,
	}
}

// authorities are the authorities of all endpoints, because the load has one configuration for all
// servers.
func authorities(endpoints []Endpoint) []byte {
	var all [][]byte
	for _, endpoint := range endpoints {
		if !slices.ContainsFunc(all, func(have []byte) bool { return bytes.Equal(have, endpoint.FrontDoor.CAData) }) {
			all = append(all, endpoint.FrontDoor.CAData)
		}
	}
	return bytes.Join(all, []byte("\n"))
}
