#!/usr/bin/env bash
# k8s.io/apiserver v0.37.2: a process asks each endpoint of etcd only once what it supports, with the
# storage that happened to be made first. If that storage is destroyed before etcd has answered (it was
# made to try the configuration, or belongs to an API that is then switched off), nobody asks again.
# RequestWatchProgress then counts as not supported as long as the process runs, though every later
# storage works. One line is logged, /readyz is ok, lists and ordinary watches are right. But each watch
# with sendInitialEvents, with which client-go fills its informers since v0.35, ends at once with one
# event of type ERROR.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes/scheme"

	"go.etcd.io/etcd/server/v3/embed"
)

func newObject() runtime.Object { return &corev1.ConfigMap{} }
func newList() runtime.Object   { return &corev1.ConfigMapList{} }

func attributes(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }

func main() {
	config := embed.NewConfig()
	config.Dir, config.LogLevel = os.Args[2], "fatal"
	none := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.ListenPeerUrls = none, none
	etcd, err := embed.StartEtcd(config)
	must(err)
	defer etcd.Close()
	<-etcd.Server.ReadyNotify()

	c := storagebackend.NewDefaultConfig("/registry", scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion))
	c.Transport.ServerList = []string{"http://" + etcd.Clients[0].Addr().String()}
	of := c.ForResource(schema.GroupResource{Resource: "configmaps"})

	if os.Args[1] == "destroyed" {
		_, destroy, err := factory.Create(*of, newObject, newList, "/tried")
		must(err)
		destroy()
	}
	s, destroy, err := genericregistry.StorageWithCacher()(of, "/configmaps", func(o runtime.Object) (string, error) { return "", nil },
		newObject, newList, attributes, nil, nil)
	must(err)
	defer destroy()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for s.ReadinessCheck() != nil {
		time.Sleep(50 * time.Millisecond)
	}
	list := &corev1.ConfigMapList{}
	lists := s.GetList(ctx, "/configmaps", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list) == nil
	var first string
	for range 100 { // where etcd was asked, the answer comes within these five seconds
		sends := true
		everything := storage.Everything
		everything.AllowWatchBookmarks = true
		w, err := s.Watch(ctx, "/configmaps", storage.ListOptions{Predicate: everything, Recursive: true,
			SendInitialEvents: &sends, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		must(err)
		event := <-w.ResultChan()
		w.Stop()
		if first = string(event.Type); first == "BOOKMARK" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Printf("first storage %s: ready, lists %v, RequestWatchProgress %v, first event of a watch with sendInitialEvents: %s\n",
		os.Args[1], lists, feature.DefaultFeatureSupportChecker.Supports(storage.RequestWatchProgress), first)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
END
go mod init example.org/finding >/dev/null 2>&1
go get k8s.io/apiserver@v0.37.2 go.etcd.io/etcd/server/v3@v3.7.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go list -m k8s.io/apiserver go.etcd.io/etcd/server/v3
go build -o ask .
./ask kept "$dir/1" 2>/dev/null | tee output
./ask destroyed "$dir/2" 2>/dev/null | tee -a output
cat >expected <<'END'
first storage kept: ready, lists true, RequestWatchProgress true, first event of a watch with sendInitialEvents: BOOKMARK
first storage destroyed: ready, lists true, RequestWatchProgress false, first event of a watch with sendInitialEvents: ERROR
END
cmp -s output expected || { echo "CHANGED"; exit 1; }
