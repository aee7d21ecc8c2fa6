package apiserver

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/reconcilers"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	storagefactory "k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// The prefixes of the keys that kube-apiservers write about themselves, under --etcd-prefix:
// their addresses for peers (CreatePeerEndpointLeaseReconciler in k8s.io/kubernetes,
// pkg/controlplane/apiserver/peer.go), and their IP addresses for the Service kubernetes
// (createLeaseReconciler, pkg/controlplane/instance.go). The marks are this proxy's own.
const (
	serverKeys = "/peerserverleases/"
	masterKeys = "/masterleases/"
	markKeys   = "/peerservermarks/"
)

// marksLast is for how long a mark is written at once. It is written again in every interval of
// markEvery, so that it lasts for [peers.MarkTTL] at least.
const (
	markEvery = 10 * time.Minute
	marksLast = peers.MarkTTL + markEvery
)

// listTimeout bounds one list of keys, so that an etcd that hangs is noticed.
const listTimeout = 10 * time.Second

// Remove is the Delete of [storage.Interface], without the arguments in which its versions differ.
type Remove func(ctx context.Context, s storage.Interface, key string, out runtime.Object, validate storage.ValidateObjectFunc) error

// Etcd reads and writes the keys of kube-apiservers in etcd. Make it with [NewEtcd].
type Etcd struct {
	ctx                     context.Context
	servers, masters, marks storage.Interface
	remove                  Remove
}

// NewEtcd returns a connection to etcd that ends with ctx. servers and masters configure the
// storage of the two kinds of keys as kube-apiserver does. Marks are stored as servers' keys are.
func NewEtcd(ctx context.Context, servers, masters *storagebackend.ConfigForResource, remove Remove) (*Etcd, error) {
	e := &Etcd{ctx: ctx, remove: remove}
	for _, of := range []struct {
		storage *storage.Interface
		config  storagebackend.ConfigForResource
		prefix  string
	}{{&e.servers, *servers, serverKeys}, {&e.masters, *masters, masterKeys}, {&e.marks, *servers, markKeys}} {
		var err error
		if of.config.Codec, err = codec(); err != nil {
			return nil, err
		}
		var destroy storagefactory.DestroyFunc
		*of.storage, destroy, err = storagefactory.Create(of.config, newKey, newKeys, of.prefix)
		if err != nil {
			return nil, fmt.Errorf("connect to etcd for the keys %s: %w", of.prefix, err)
		}
		context.AfterFunc(ctx, destroy)
	}
	return e, nil
}

// codec stores Endpoints as kube-apiserver does, and decodes them to the type of the API. The codec
// of kube-apiserver decodes what a watch brings to its internal type.
func codec() (runtime.Codec, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return nil, errors.New("there is no serializer for protobuf")
	}
	return scheme.Codecs.CodecForVersions(info.Serializer, scheme.Codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, corev1.SchemeGroupVersion), nil
}

func newKey() runtime.Object { return &corev1.Endpoints{} }

func newKeys() runtime.Object { return &corev1.EndpointsList{} }

// Servers implements [peers.Etcd].
func (e *Etcd) Servers() cache.ListerWatcher { return e.keys(e.servers, serverKeys, identity) }

// Marks implements [peers.Etcd].
func (e *Etcd) Marks() cache.ListerWatcher { return e.keys(e.marks, markKeys, identity) }

func identity(key *corev1.Endpoints) string { return key.Labels[reconcilers.APIServerIdentityLabel] }

// Masters implements [peers.Etcd].
func (e *Etcd) Masters() cache.ListerWatcher {
	return e.keys(e.masters, masterKeys, func(key *corev1.Endpoints) string {
		ip, _ := peers.AddressIn(key)
		return ip
	})
}

// listWatch lists, and watches from there. Informers do not ask it for a watch that begins with a
// list.
type listWatch struct{ *cache.ListWatch }

func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// keys lists and watches keys. Their objects have no names, so name gives them one: objects with
// one name would be one object to an informer.
func (e *Etcd) keys(from storage.Interface, prefix string, name func(*corev1.Endpoints) string) cache.ListerWatcher {
	options := func(version string) storage.ListOptions {
		return storage.ListOptions{ResourceVersion: version, Predicate: storage.Everything, Recursive: true}
	}
	return listWatch{&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(e.ctx, listTimeout)
			defer cancel()
			list := &corev1.EndpointsList{}
			if err := from.GetList(ctx, prefix, options(""), list); err != nil {
				return nil, err
			}
			for i := range list.Items {
				list.Items[i].Name = name(&list.Items[i])
			}
			return list, nil
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			w, err := from.Watch(e.ctx, prefix, options(o.ResourceVersion))
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
				if key, ok := event.Object.(*corev1.Endpoints); ok {
					key.Name = name(key)
				}
				return event, true
			}), nil
		},
	}}
}

// Renew implements [peers.Etcd]. It writes the same as kube-apiserver (UpdateLease in
// k8s.io/apiserver, pkg/reconcilers), whose peers read it.
func (e *Etcd) Renew(ctx context.Context, id proxy.ServerID, address string) error {
	host, port, err := split(address)
	if err != nil {
		return err
	}
	if err := put(ctx, e.marks, markKeys, id, marksLast, func(mark *corev1.Endpoints) {
		mark.Generation = time.Now().Unix() / int64(markEvery/time.Second)
	}); err != nil {
		return fmt.Errorf("mark this server: %w", err)
	}
	return put(ctx, e.servers, serverKeys, id, peers.KeyTTL, func(key *corev1.Endpoints) {
		key.Subsets = []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: host}},
			Ports:     []corev1.EndpointPort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: port}},
		}}
		key.Generation++
	})
}

// put writes a server's key, unless the change changes nothing.
func put(ctx context.Context, to storage.Interface, prefix string, id proxy.ServerID, lasts time.Duration, change func(*corev1.Endpoints)) error {
	return to.GuaranteedUpdate(ctx, path.Join(prefix, string(id)), newKey(), true, nil,
		func(o runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			key := o.(*corev1.Endpoints)
			key.Labels = map[string]string{reconcilers.APIServerIdentityLabel: string(id)}
			change(key)
			ttl := uint64(lasts / time.Second)
			return key, &ttl, nil
		}, nil)
}

// errAnother says that a key has the address of another server with the same identity.
var errAnother = errors.New("the key has another address")

// Withdraw implements [peers.Etcd].
func (e *Etcd) Withdraw(ctx context.Context, id proxy.ServerID, address string) error {
	host, port, err := split(address)
	if err != nil {
		return err
	}
	err = e.remove(ctx, e.servers, path.Join(serverKeys, string(id)), newKey(), func(_ context.Context, o runtime.Object) error {
		key, ok := o.(*corev1.Endpoints)
		if !ok {
			return fmt.Errorf("the key is a %T", o)
		}
		if ip, at := peers.AddressIn(key); ip != host || at != port {
			return errAnother
		}
		return nil
	})
	switch {
	case errors.Is(err, errAnother):
		return nil
	case err != nil && !storage.IsNotFound(err):
		return err
	}
	anything := func(context.Context, runtime.Object) error { return nil }
	if err := e.remove(ctx, e.marks, path.Join(markKeys, string(id)), newKey(), anything); !storage.IsNotFound(err) {
		return err
	}
	return nil
}

func split(address string) (host string, port int32, err error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return host, int32(n), err
}

// Silent takes the place of kube-apiserver's own writer of the server's key, which would remove the
// key when the server is told to stop, and not when it stops to serve. It writes nothing.
//
// The connection of the writer stays open. It is the first one to etcd, so with it the server
// checks what etcd supports. It checks only once: if the connection ended meanwhile, the server
// would refuse every watch with sendInitialEvents as long as it runs (k8s.io/apiserver,
// pkg/storage/feature).
type Silent struct {
	reconcilers.PeerEndpointLeaseReconciler
}

// UpdateLease writes nothing.
func (Silent) UpdateLease(string, string, []corev1.EndpointPort) error { return nil }

// RemoveLease removes nothing.
func (Silent) RemoveLease(string) error { return nil }
