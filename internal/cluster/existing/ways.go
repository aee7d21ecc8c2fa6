// Package existing judges kube-apiservers that run already and are somebody else's: it reads, and does nothing else. It dials only what the
// kubeconfig names.
//
// What an outsider cannot see is not judged: nobody watches the servers' processes, and their audit logs are not at hand, so how often a
// request was passed on, as whom and how often it was carried out stays open.
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

// Way leads to one server.
type Way struct {
	// Name is that of the context, which is what reports call the server.
	Name string
	// Door is what clients dial; Direct is the kube-apiserver itself. They differ where the proxy is a process of its own. Neither of them
	// follows a proxy of the environment.
	Door, Direct *rest.Config
}

// ErrUnreadable is wrapped by the errors about a kubeconfig that cannot be read.
var ErrUnreadable = errors.New("read kubeconfig")

// Ways reads the ways to the servers from a kubeconfig, which may be a list of files as in $KUBECONFIG: one for each context, or all contexts in alphabetical order if none are named. direct
// names, in the same order, the contexts that lead to the kube-apiservers behind the proxy; nil if that is no process of its own.
//
// All contexts must have one user: what differs between the answers must not be a matter of who asked. An error wraps [ErrUnreadable] where a file
// cannot be read, and is wrong usage otherwise; it says what to change.
func Ways(file string, contexts, direct []string) ([]Way, error) {
	files := filepath.SplitList(file)
	for _, f := range files { // client-go takes a file that is missing for an empty one
		opened, err := os.Open(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		_ = opened.Close()
	}
	config, err := (&clientcmd.ClientConfigLoadingRules{Precedence: files}).Load()
	if err != nil {
		return nil, fmt.Errorf("%w: %s is no kubeconfig: %w", ErrUnreadable, file, err)
	}
	if len(contexts) == 0 {
		contexts = slices.DeleteFunc(slices.Sorted(maps.Keys(config.Contexts)), func(c string) bool { return slices.Contains(direct, c) })
	}
	for _, name := range slices.Concat(contexts, direct) {
		context := config.Contexts[name]
		if context == nil {
			return nil, fmt.Errorf("kubeconfig %s has no context %q: it has %s", file, name, strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", "))
		}
		if user := context.AuthInfo; user != "" && config.AuthInfos[user] == nil { // client-go would ask as nobody
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
		way, err := clientcmd.NewNonInteractiveClientConfig(*config, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
		if err == nil {
			err = usable(way)
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s, context %q: %w", file, name, err)
		}
		return way, nil
	}
	var ways []Way
	for i, name := range contexts {
		way := Way{Name: name}
		if way.Door, err = read(name); err != nil {
			return nil, err
		}
		way.Direct = way.Door
		if len(direct) > 0 {
			if way.Direct, err = read(direct[i]); err != nil {
				return nil, err
			}
		}
		ways = append(ways, way)
	}
	return ways, distinct(ways)
}

// usable refuses what the traffic cannot use, or must not, and closes the ways that are not in the kubeconfig. It reads the files that the
// configuration names.
func usable(c *rest.Config) error {
	u, err := url.Parse(c.Host)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("server %q is no https URL", c.Host)
	case strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("server %q has a path: give the server itself, not what stands before many", c.Host)
	case c.Insecure:
		return errors.New("it skips TLS verification: answers by who knows whom prove nothing; give the CA")
	case c.Proxy != nil:
		return errors.New("it has a proxy-url: the servers are dialled directly only")
	}
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // client-go would follow HTTPS_PROXY
	if err := rest.LoadTLSFiles(c); err != nil {
		return err
	}
	c.CAFile, c.CertFile, c.KeyFile = "", "", ""
	return nil
}

// distinct refuses contexts that lead to one server, or that differ in who asks.
func distinct(ways []Way) error {
	first := ways[0]
	seen := map[string]string{}
	for _, way := range ways {
		if (len(way.Door.CAData) == 0) != (len(first.Door.CAData) == 0) { // the load has one bundle, or none and trusts the system's
			return fmt.Errorf("of the contexts %q and %q one has a certificate authority and the other has not: give it for all, or for none", first.Name, way.Name)
		}
		for _, c := range []*rest.Config{way.Door, way.Direct} { // one kube-apiserver behind two doors would be two, too
			if other := seen[address(c)]; other != "" && other != way.Name {
				return fmt.Errorf("contexts %q and %q lead to the same server, %s: give each server a context of its own, not the load balancer's", other, way.Name, c.Host)
			}
			seen[address(c)] = way.Name
		}
		for _, c := range []*rest.Config{way.Door, way.Direct} {
			if !reflect.DeepEqual(who(c), who(first.Door)) {
				return fmt.Errorf("contexts %q and %q have different users: give contexts of one user, so that only the servers differ", first.Name, way.Name)
			}
		}
		if way.Door.ServerName != first.Door.ServerName {
			return fmt.Errorf("contexts %q and %q have different names under tls-server-name: the load can use one only", first.Name, way.Name)
		}
	}
	return nil
}

// address is where a configuration leads, however its URL is written.
func address(c *rest.Config) string {
	u, err := url.Parse(c.Host)
	if err != nil { // usable refuses it
		return c.Host
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443"))
}

// who is as much of a configuration as says who asks.
func who(c *rest.Config) any {
	return struct {
		Username, Password, BearerToken, BearerTokenFile string
		Cert, Key                                        string
		Impersonate                                      rest.ImpersonationConfig
		Exec, Provider                                   any
	}{
		c.Username, c.Password, c.BearerToken, c.BearerTokenFile, string(c.CertData), string(c.KeyData), c.Impersonate, c.ExecProvider, c.AuthProvider,
	}
}

// authorities are those of all ways together: the load has one configuration for all servers.
func authorities(ways []Way) []byte {
	var all [][]byte
	for _, way := range ways {
		if !slices.ContainsFunc(all, func(have []byte) bool { return bytes.Equal(have, way.Door.CAData) }) {
			all = append(all, way.Door.CAData)
		}
	}
	return bytes.Join(all, []byte("\n"))
}
