package e2e

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/reconcilers"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/proxy/apiserver"
	"github.com/skewproof/skewproof/proxy/peers"
)

// The reference and kube-apiserver's own code read and replace each other's keys in a real etcd.
func TestKeysOfServersAreThoseOfKubeAPIServer(t *testing.T) {
	program, err := (&binaries.Store{}).Get(t.Context(), binaries.Etcd, binaries.DefaultEtcd)
	must(t, err)
	dir := t.TempDir()
	gateway, start := realEtcd(t, program.Path, dir)
	start()
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	backend := storagebackend.NewDefaultConfig("/registry",
		scheme.Codecs.CodecForVersions(serializer, scheme.Codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, corev1.SchemeGroupVersion))
	backend.Transport.ServerList = []string{"https://" + gateway.Address}
	backend.Transport.TrustedCAFile = filepath.Join(dir, "etcd-ca.crt")
	backend.Transport.CertFile, backend.Transport.KeyFile = filepath.Join(dir, "etcd-client.crt"), filepath.Join(dir, "etcd-client.key")
	config := backend.ForResource(schema.GroupResource{Resource: "endpoints"})

	ours, err := apiserver.NewEtcd(t.Context(), config, config, func(ctx context.Context, s storage.Interface, key string, out runtime.Object, validate storage.ValidateObjectFunc) error {
		return s.Delete(ctx, key, out, nil, validate, nil, storage.DeleteOptions{})
	})
	must(t, err)
	writer := func(prefix string) reconcilers.PeerEndpointLeaseReconciler {
		w, err := reconcilers.NewPeerEndpointLeaseReconciler(config, prefix, peers.KeyTTL)
		must(t, err)
		t.Cleanup(w.Destroy)
		return w
	}
	servers, masters := writer("/peerserverleases/"), writer("/masterleases/")
	https := []corev1.EndpointPort{{Name: "https", Port: 6443}}

	must(t, servers.UpdateLease("apiserver-b", "192.0.2.2", https))
	must(t, masters.UpdateLease("192.0.2.2", "192.0.2.2", nil))
	seen := map[string]*keysSeen{
		"servers": watchKeys(t, ours.Servers()), "masters": watchKeys(t, ours.Masters()), "marks": watchKeys(t, ours.Marks()),
	}
	for what, name := range map[string]string{"servers": "apiserver-b", "masters": "192.0.2.2"} {
		if got := seen[what].listed; !slices.Equal(got, []string{name + " 192.0.2.2"}) {
			t.Errorf("the list of %s has %q", what, got)
		}
	}

	must(t, ours.Renew(t.Context(), "apiserver-a", "192.0.2.1:6443"))
	seen["servers"].until(t, "ADDED apiserver-a 192.0.2.1")
	seen["marks"].until(t, "ADDED apiserver-a")
	must(t, ours.Renew(t.Context(), "apiserver-a", "192.0.2.1:6443"))
	seen["servers"].until(t, "MODIFIED apiserver-a 192.0.2.1")
	if at, err := servers.GetEndpoint("apiserver-a"); err != nil || at != "192.0.2.1:6443" {
		t.Errorf("kube-apiserver reads %q, %v", at, err)
	}

	// Another server with the same identity has taken the key over.
	must(t, servers.UpdateLease("apiserver-a", "192.0.2.3", https))
	seen["servers"].until(t, "MODIFIED apiserver-a 192.0.2.3")
	must(t, ours.Withdraw(t.Context(), "apiserver-a", "192.0.2.1:6443"))
	must(t, ours.Withdraw(t.Context(), "apiserver-a", "192.0.2.3:443"))
	if at, err := servers.GetEndpoint("apiserver-a"); err != nil || at != "192.0.2.3:6443" {
		t.Errorf("after the withdrawal of another address kube-apiserver reads %q, %v", at, err)
	}
	must(t, ours.Withdraw(t.Context(), "apiserver-a", "192.0.2.3:6443"))
	seen["servers"].until(t, "DELETED apiserver-a 192.0.2.3")
	seen["marks"].until(t, "DELETED apiserver-a")
	must(t, ours.Withdraw(t.Context(), "apiserver-a", "192.0.2.3:6443"))

	// A key that nobody renews ends by itself. Its mark stays.
	must(t, ours.Renew(t.Context(), "apiserver-c", "192.0.2.4:6443"))
	seen["servers"].until(t, "DELETED apiserver-c 192.0.2.4")
	if got := watchKeys(t, ours.Marks()).listed; !slices.Equal(got, []string{"apiserver-c"}) {
		t.Errorf("the marks are %q", got)
	}
	seen["masters"].until(t, "DELETED 192.0.2.2 192.0.2.2")
	for _, address := range []string{"192.0.2.4", "192.0.2.4:70000", ""} {
		if err := ours.Renew(t.Context(), "apiserver-c", address); err == nil {
			t.Errorf("the address %q was published", address)
		}
	}
}

// keysSeen is what a list of keys had, and what a watch from there brings.
type keysSeen struct {
	listed []string
	watch  watch.Interface
	events []string
}

func watchKeys(t *testing.T, from cache.ListerWatcher) *keysSeen {
	t.Helper()
	list, err := from.List(metav1.ListOptions{})
	must(t, err)
	k := &keysSeen{}
	for i := range list.(*corev1.EndpointsList).Items {
		k.listed = append(k.listed, keySaid(&list.(*corev1.EndpointsList).Items[i]))
	}
	k.watch, err = from.Watch(metav1.ListOptions{ResourceVersion: list.(*corev1.EndpointsList).ResourceVersion})
	must(t, err)
	t.Cleanup(k.watch.Stop)
	return k
}

func keySaid(o runtime.Object) string {
	key := o.(*corev1.Endpoints)
	ip, _ := peers.AddressIn(key)
	return strings.TrimSuffix(key.Name+" "+ip, " ")
}

// until waits for an event.
func (k *keysSeen) until(t *testing.T, want string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case e, ok := <-k.watch.ResultChan():
			if !ok {
				t.Fatalf("the watch ended before %q; it brought %q", want, k.events)
			}
			k.events = append(k.events, string(e.Type)+" "+keySaid(e.Object))
			if k.events[len(k.events)-1] == want {
				return
			}
		case <-limit:
			t.Fatalf("the watch did not bring %q, only %q", want, k.events)
		}
	}
}
