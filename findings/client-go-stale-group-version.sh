#!/usr/bin/env bash
# client-go v0.37.2: what a client makes of a group version that aggregated discovery marks "Stale"
# (a kube-apiserver does so when the server behind an APIService, or a peer, cannot be reached). The
# plain discovery client returns an error and asks twice, but only if some other group version is
# current: if all are stale, it returns nothing and no error. The client with a cache on disk, as
# kubectl has it, never returns an error: the group version is missing, and it stays missing for the
# TTL of the cache after the document says "Current" again.
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
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/rest"
)

const media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func main() {
	var freshness, other atomic.Value // of both versions
	freshness.Store("Stale")
	other.Store("Stale")
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		items := ""
		switch r.URL.Path {
		case "/apis":
			const version = `{"version":%q,"freshness":%q,"resources":[{"resource":"things","scope":"Namespaced","singularResource":"thing",` +
				`"responseKind":{"group":"","version":"","kind":"Thing"},"verbs":["list"]}]}`
			items = fmt.Sprintf(`{"metadata":{"name":"example.com"},"versions":[`+version+","+version+`]}`, "v1", freshness.Load(), "v2", other.Load())
		case "/api":
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", media)
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`, items)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}

	plain, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	_, lists, allErr := plain.ServerGroupsAndResources()
	all := len(lists)
	fmt.Printf("plain, both stale: %d lists, error: %v\n", all, allErr)
	other.Store("Current")
	before := requests.Load()
	_, lists, plainErr := plain.ServerGroupsAndResources()
	asked := requests.Load() - before
	fmt.Printf("plain, one stale: %d lists, %d requests, error: %v\n", len(lists), asked, plainErr)

	cached, err := disk.NewCachedDiscoveryClientForConfig(config, "cache", "http", time.Hour)
	must(err)
	_, lists, cachedErr := cached.ServerGroupsAndResources()
	fmt.Printf("on disk, one stale: %d lists, error: %v\n", len(lists), cachedErr)

	freshness.Store("Current")
	again, err := disk.NewCachedDiscoveryClientForConfig(config, "cache", "http", time.Hour)
	must(err)
	_, later, err := again.ServerGroupsAndResources()
	must(err)
	fmt.Printf("on disk, current again: %d lists\n", len(later))

	_, now, err := plain.ServerGroupsAndResources()
	must(err)
	fmt.Printf("plain, current again: %d lists\n", len(now))
	if plainErr == nil || !strings.Contains(plainErr.Error(), "stale") || asked != 4 || cachedErr != nil ||
		allErr != nil || all != 0 || len(lists) != 1 || len(later) != 1 || len(now) != 2 {
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
