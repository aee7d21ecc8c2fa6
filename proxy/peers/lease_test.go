package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// identityLease is a lease as a server writes it.
func identityLease(id, holder string, renewed time.Time) *coordinationv1.Lease {
	seconds, micro := int32(3600), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: Namespace, Labels: map[string]string{IdentityLabel: IdentityValue}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &micro, LeaseDurationSeconds: &seconds},
	}
}

func TestReadKey(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Endpoints)
		want   string // the address; "" is an error
	}{
		"good":            {func(*corev1.Endpoints) {}, "192.0.2.1:6443"},
		"IPv6":            {func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].IP = "2001:db8::1" }, "[2001:db8::1]:6443"},
		"nothing":         {func(e *corev1.Endpoints) { e.Subsets = nil }, ""},
		"no address":      {func(e *corev1.Endpoints) { e.Subsets[0].Addresses = nil }, ""},
		"no port":         {func(e *corev1.Endpoints) { e.Subsets[0].Ports = nil }, ""},
		"port 0":          {func(e *corev1.Endpoints) { e.Subsets[0].Ports[0].Port = 0 }, ""},
		"a negative port": {func(e *corev1.Endpoints) { e.Subsets[0].Ports[0].Port = -1 }, ""},
		"every address":   {func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].IP = "0.0.0.0" }, ""},
		"a URL":           {func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].IP = "https://192.0.2.1" }, ""},
	} {
		o := keyAt("a", "192.0.2.1:6443", 7)
		c.change(o)
		key, err := readKey(o)
		if want := (Key{ID: "a", Address: c.want, Renewal: 7}); key != want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %+v, %v; want %+v", name, key, err, want)
		}
	}
}

func TestReadIdentityLease(t *testing.T) {
	l := identityLease("a", "h", epoch)
	got, err := readIdentityLease(l)
	if want := (IdentityLease{ID: "a", Holder: "h", Renewed: epoch}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	l.Labels[corev1.LabelHostname] = "host-a" // which has another identity
	if got, err := readIdentityLease(l); err != nil || got.Host != "" {
		t.Errorf("with the name of another host: %+v, %v", got, err)
	}
	l.Name = "apiserver-6zbmgnwmvuptjd3z3lqvqzcj5u"
	if got, err := readIdentityLease(l); err != nil || got.Host != "host-a" {
		t.Errorf("with the name of its host, whose identity is %s: %+v, %v", identityOf("host-a"), got, err)
	}
	l.Spec.RenewTime = nil
	if got, err := readIdentityLease(l); err != nil || !got.Renewed.IsZero() {
		t.Errorf("without a time: %+v, %v", got, err)
	}
	l.Spec.HolderIdentity = nil
	if got, err := readIdentityLease(l); err == nil {
		t.Errorf("without a holder: %+v, want an error", got)
	}
}
