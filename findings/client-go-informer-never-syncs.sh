#!/usr/bin/env bash
# client-go v0.37.2: an informer asks for its first objects by a watch with sendInitialEvents (since
# v0.35 by default), and takes them only when a bookmark says that they are complete. What
# stands in for a kube-apiserver and ignores the parameter, as servers ignore parameters that they do
# not know, answers 200 and sends no such bookmark: a stand-in in a test, a cache, a gateway, a
# WatchFunc over something else. Then the informer never syncs. It has no error to report, and it does
# not fall back to a list: when the watch ends, it opens the next one. v0.34 lists, and so does v0.37
# if the server refuses the parameter (a kube-apiserver that does not know it answers 422), or if the
# environment has KUBE_FEATURE_WatchListClient=false.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// server has one ConfigMap. Its watches end after two seconds, so that what follows can be seen.
type server struct {
	refuses                bool
	lists, watches, errors atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const object = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"1","resourceVersion":"7"}}`
	w.Header().Set("Content-Type", "application/json")
	switch q := r.URL.Query(); {
	case q.Get("watch") == "":
		s.lists.Add(1)
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, object)
		return
	case s.refuses && q.Get("sendInitialEvents") != "":
		s.errors.Add(1)
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		return
	}
	s.watches.Add(1)
	fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
	w.(http.Flusher).Flush()
	select {
	case <-r.Context().Done():
	case <-time.After(2 * time.Second):
	}
}

func main() {
	s := &server{refuses: os.Args[1] == "refuses"}
	at := httptest.NewServer(s)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: at.URL})
	if err != nil {
		panic(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) { s.errors.Add(1) }); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Second)
	defer cancel()
	factory.Start(ctx.Done())
	synced := cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	fmt.Printf("%s: synced %v, objects %d, lists %d, several watches %v, errors %v\n",
		os.Args[1], synced, len(informer.GetStore().ListKeys()), s.lists.Load(), s.watches.Load() > 2, s.errors.Load() > 0)
}
END
for version in v0.34.2 v0.37.2; do
  rm -f go.mod go.sum
  go mod init example.org/finding >/dev/null 2>&1
  go get "k8s.io/client-go@$version" >/dev/null 2>&1
  go mod tidy >/dev/null 2>&1
  go list -m k8s.io/client-go
  go build -o "stand-in-$version" .
  "./stand-in-$version" ignores 2>/dev/null
  if [ "$version" = v0.37.2 ]; then
    "./stand-in-$version" refuses 2>/dev/null
    echo "with KUBE_FEATURE_WatchListClient=false:"
    KUBE_FEATURE_WatchListClient=false "./stand-in-$version" ignores 2>/dev/null
  fi
done | tee output
cat >expected <<'END'
k8s.io/client-go v0.34.2
ignores: synced true, objects 1, lists 1, several watches false, errors false
k8s.io/client-go v0.37.2
ignores: synced false, objects 0, lists 0, several watches true, errors false
refuses: synced true, objects 1, lists 1, several watches false, errors true
with KUBE_FEATURE_WatchListClient=false:
ignores: synced true, objects 1, lists 1, several watches false, errors false
END
cmp -s output expected || { echo "CHANGED"; exit 1; }
