package peers

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// identityLease and endpointLease are leases as servers and publishers write them.
func identityLease(id, holder string, renewed time.Time) *coordinationv1.Lease {
	seconds, micro := int32(3600), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: Namespace, Labels: map[string]string{IdentityLabel: IdentityValue}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &micro, LeaseDurationSeconds: &seconds},
	}
}

func endpointLease(id, holder, address string, renewed time.Time) *coordinationv1.Lease {
	seconds, micro := int32(15), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: endpointPrefix + id, Namespace: Namespace, Labels: map[string]string{ComponentLabel: ComponentValue},
			Annotations: map[string]string{ServerAnnotation: id, AddressAnnotation: address},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &micro, LeaseDurationSeconds: &seconds},
	}
}

func TestReadEndpointLease(t *testing.T) {
	good := EndpointLease{ID: "a", Holder: "h", Renewed: epoch, Duration: 15 * time.Second, Address: "192.0.2.1:6443"}
	with := func(change func(*EndpointLease)) EndpointLease { l := good; change(&l); return l }
	seconds := func(n int32) func(*coordinationv1.Lease) {
		return func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = &n }
	}
	for _, tc := range []struct {
		name   string
		change func(*coordinationv1.Lease)
		want   EndpointLease
		usable bool
		says   string // the error
	}{
		{name: "good", change: func(*coordinationv1.Lease) {}, want: good, usable: true},
		{name: "no holder", change: func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, says: "no holder"},
		{name: "empty holder", change: func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = "" }, says: "no holder"},
		{name: "another's name", change: func(l *coordinationv1.Lease) { l.Name = endpointPrefix + "b" }, says: "ignored"},
		{name: "a name of its own", change: func(l *coordinationv1.Lease) { l.Name = "a" }, says: "ignored"},
		{name: "no server", change: func(l *coordinationv1.Lease) { l.Name = endpointPrefix; l.Annotations = nil }, says: "ignored"},
		{name: "no annotations", change: func(l *coordinationv1.Lease) { l.Annotations = nil }, says: "ignored"},
		{name: "a URL for an address", change: func(l *coordinationv1.Lease) { l.Annotations[AddressAnnotation] = "https://192.0.2.1:6443/x" },
			want: with(func(l *EndpointLease) { l.Address = "" }), usable: true, says: "no known address"},
		{name: "no address", change: func(l *coordinationv1.Lease) { delete(l.Annotations, AddressAnnotation) },
			want: with(func(l *EndpointLease) { l.Address = "" }), usable: true, says: "no known address"},
		{name: "never renewed", change: func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil },
			want: with(func(l *EndpointLease) { l.Renewed = time.Time{} }), usable: true},
		{name: "no duration", change: func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }, want: good, usable: true},
		{name: "negative duration", change: seconds(-1), want: good, usable: true},
		{name: "for ever", change: seconds(1 << 30), want: with(func(l *EndpointLease) { l.Duration = time.Hour }), usable: true},
	} {
		l := endpointLease("a", "h", "192.0.2.1:6443", epoch)
		tc.change(l)
		got, usable, err := readEndpointLease(l)
		if got != tc.want || usable != tc.usable {
			t.Errorf("%s: %+v, %v; want %+v, %v", tc.name, got, usable, tc.want, tc.usable)
		}
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: error %v, want one that says %q", tc.name, err, tc.says)
		}
	}
}

func TestReadIdentityLease(t *testing.T) {
	l := identityLease("a", "h", epoch)
	got, err := readIdentityLease(l)
	if want := (IdentityLease{ID: "a", Holder: "h", Renewed: epoch}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	l.Labels[corev1.LabelHostname] = "host-a"
	for address, want := range map[string]string{"192.0.2.1:6443": "192.0.2.1:6443", "[2001:db8::1]:6443": "[2001:db8::1]:6443", "0.0.0.0:6443": "", "host": "", "": ""} {
		l.Annotations = map[string]string{"kubernetes.io/peer-advertise-address": address}
		got, err := readIdentityLease(l)
		if want := (IdentityLease{ID: "a", Holder: "h", Renewed: epoch, Host: "host-a", Address: want}); err != nil || got != want {
			t.Errorf("with the address %q: %+v, %v; want %+v", address, got, err, want)
		}
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
