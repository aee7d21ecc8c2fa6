package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/etcd"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/pki"
)

// TestARealEtcdIsWatched reads the answers of etcd's own gateway. It checks that every change is
// reported once and in order, even if etcd is killed and started again meanwhile.
func TestARealEtcdIsWatched(t *testing.T) {
	store := binaries.Store{}
	program, err := store.Get(t.Context(), binaries.Etcd, binaries.DefaultEtcd)
	if err != nil {
		t.Fatal(err)
	}
	gateway, start := realEtcd(t, program.Path, t.TempDir())
	kill := start()
	write := func(pairs ...string) {
		t.Helper()
		transact(t, gateway, pairs...)
	}
	write("/registry/configmaps/n/a", value(t, "a"))

	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var seen []string
	told := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		began := time.Now()
		done <- gateway.Watch(ctx, func() history.Time { return time.Since(began) }, func(o history.Object) {
			mu.Lock()
			defer mu.Unlock()
			line := o.Kind + " " + o.Namespace + "/" + o.Name + " " + o.UID
			if o.Gone {
				line += " gone"
			}
			seen = append(seen, line)
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	until := func(line string) {
		t.Helper()
		for {
			mu.Lock()
			found := slices.Contains(seen, line)
			mu.Unlock()
			if found {
				return
			}
			select {
			case <-told:
			case err := <-done:
				t.Fatalf("the watch ended before %q: %v", line, err)
			case <-time.After(time.Minute):
				t.Fatalf("%q was not seen; seen: %q", line, seen)
			}
		}
	}
	until("ConfigMap n/a uid-a")
	write("/registry/configmaps/n/b", value(t, "b"), "/registry/configmaps/n/c", value(t, "c"))
	until("ConfigMap n/c uid-c")
	kill()
	kill = start()
	defer kill()
	write("/registry/configmaps/n/a", "")
	until("ConfigMap n/a uid-a gone")
	want := []string{"ConfigMap n/a uid-a", "ConfigMap n/b uid-b", "ConfigMap n/c uid-c", "ConfigMap n/a uid-a gone"}
	for i := range 50 {
		one := fmt.Sprint("x", i)
		write("/registry/configmaps/n/"+one, value(t, one))
		want = append(want, "ConfigMap n/"+one+" uid-"+one)
	}
	write("compact_rev_key", "1", "/registry/leases/n/l", "noise")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

// value is a ConfigMap in the form in which kube-apiserver stores it.
func value(t *testing.T, name string) string {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: types.UID("uid-" + name)}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	encoded, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), o)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// realEtcd prepares an etcd on loopback. start starts it, waits until it answers, and returns a
// function that kills it. The data stays when etcd is killed. dir gets it, and the certificates.
func realEtcd(t *testing.T, program, dir string) (gateway etcd.Gateway, start func() (kill func())) {
	t.Helper()
	authority, err := pki.NewAuthority(dir, "etcd-ca")
	if err != nil {
		t.Fatal(err)
	}
	server := pki.Request{CommonName: "etcd", Server: true, Client: true, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	for name, request := range map[string]pki.Request{"etcd-server": server, "etcd-client": {CommonName: "kube-apiserver", Client: true}} {
		if _, err := authority.Issue(name, request); err != nil {
			t.Fatal(err)
		}
	}
	client, err := users.EtcdClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	address, peers := free(t), free(t)
	gateway = etcd.Gateway{Client: client, Address: address}
	return gateway, func() func() {
		t.Helper()
		var log bytes.Buffer
		cmd := exec.Command(program, "--name=etcd", "--data-dir="+dir+"/data", "--listen-client-urls=https://"+address, "--advertise-client-urls=https://"+address,
			"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers, "--initial-cluster=etcd=http://"+peers,
			"--client-cert-auth=true", "--trusted-ca-file="+dir+"/etcd-ca.crt", "--cert-file="+dir+"/etcd-server.crt", "--key-file="+dir+"/etcd-server.key",
			"--log-level=warn")
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := sync.OnceFunc(func() {
			_ = cmd.Process.Signal(os.Kill)
			_ = cmd.Wait()
		})
		t.Cleanup(kill)
		limit := time.Now().Add(time.Minute)
		for {
			if _, err = gateway.Get(t.Context(), "/"); err == nil {
				return kill
			}
			if time.Now().After(limit) {
				kill()
				t.Fatalf("etcd did not answer: %v\n%s", err, &log)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// free returns an address on loopback at which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// transact changes keys in one transaction. An empty value deletes the key.
func transact(t *testing.T, gateway etcd.Gateway, pairs ...string) {
	t.Helper()
	var all []any
	for i := 0; i < len(pairs); i += 2 {
		key, value := []byte(pairs[i]), []byte(pairs[i+1])
		if len(value) == 0 {
			all = append(all, map[string]any{"request_delete_range": map[string][]byte{"key": key}})
			continue
		}
		all = append(all, map[string]any{"request_put": map[string][]byte{"key": key, "value": value}})
	}
	body, err := json.Marshal(map[string]any{"success": all})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+gateway.Address+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := gateway.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("etcd answered %s", response.Status)
	}
}
