#!/usr/bin/env bash
# client-go v0.37.2: restmapper.NewDeferredDiscoveryRESTMapper looks once more at what a server
# serves only if its cached discovery client is not "fresh". A memory cache is fresh from its first
# answer on, so with it the mapper never learns of a kind that the server begins to serve later. A
# cache on disk is fresh from the first answer that this process fetched itself: the first unknown
# kind is looked for, and no later one. (A controller that starts during an upgrade asks an older
# server first.) After that, only a call of Reset helps.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// server serves kinds of example.com/v1, by aggregated discovery.
type server struct {
	mu    sync.Mutex
	kinds []string
	asked int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := ""
	switch r.URL.Path {
	case "/apis":
		s.asked++
		var resources []string
		for _, kind := range s.kinds {
			resources = append(resources, fmt.Sprintf(`{"resource":%q,"scope":"Namespaced","singularResource":%q,"verbs":["list"],`+
				`"responseKind":{"group":"","version":"","kind":%q}}`, strings.ToLower(kind)+"s", strings.ToLower(kind), kind))
		}
		items = `{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Current","resources":[` + strings.Join(resources, ",") + `]}]}`
	case "/api":
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", media)
	fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`, items)
}

func main() {
	s := &server{}
	at := httptest.NewServer(s)
	defer at.Close()
	config := &rest.Config{Host: at.URL}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	got := map[string][]bool{}
	for _, name := range []string{"memory", "disk"} {
		s.kinds = []string{"Old"}
		var cached discovery.CachedDiscoveryInterface = memory.NewMemCacheClient(client)
		if name == "disk" {
			first, err := disk.NewCachedDiscoveryClientForConfig(config, "cache", "http", time.Hour)
			must(err)
			_, _, err = first.ServerGroupsAndResources() // an earlier process fills the cache
			must(err)
			cached, err = disk.NewCachedDiscoveryClientForConfig(config, "cache", "http", time.Hour)
			must(err)
		}
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
		for _, kind := range []string{"Old", "New", "Newest"} {
			if !slices.Contains(s.kinds, kind) {
				s.kinds = append(s.kinds, kind)
			}
			s.asked = 0
			_, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: kind})
			fmt.Printf("%s: served: %v; %s after %d requests: %v\n", name, s.kinds, kind, s.asked, err)
			got[name] = append(got[name], err == nil)
		}
		mapper.Reset()
		_, err = mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Newest"})
		fmt.Printf("%s: after Reset: Newest: %v\n", name, err)
	}
	if !slices.Equal(got["memory"], []bool{true, false, false}) || !slices.Equal(got["disk"], []bool{true, true, false}) {
		fmt.Println("CHANGED")
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
EOF
go mod init example.org/finding >/dev/null 2>&1
go get k8s.io/client-go@v0.37.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go list -m k8s.io/client-go
go run .
