package etcd

import (
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
)

var (
	inProtobuf = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	inJSON     = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
)

// encoded returns an object as kube-apiserver writes it to etcd.
func encoded(t testing.TB, as runtime.Encoder, o runtime.Object) []byte {
	t.Helper()
	value, err := runtime.Encode(as, o)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// checkDecoded checks what decode reads of an object, in both encodings.
func checkDecoded(t *testing.T, o runtime.Object, want history.Object) {
	t.Helper()
	for name, as := range map[string]runtime.Encoder{"protobuf": inProtobuf, "JSON": inJSON} {
		got, err := decode(encoded(t, as, o))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// describe gives an object all the metadata that decode reads.
func describe(o metav1.Object) {
	yes := true
	deleted := metav1.NewTime(time.Unix(1700000000, 0))
	o.SetName("x")
	o.SetNamespace("n")
	o.SetUID(types.UID("u"))
	o.SetLabels(map[string]string{"a": "b"})
	o.SetDeletionTimestamp(&deleted)
	o.SetFinalizers([]string{"one", "two"})
	o.SetGeneration(3)
	o.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "v", BlockOwnerDeletion: &yes, Controller: &yes}, {APIVersion: "g/v2", Kind: "K", Name: "k", UID: "w"},
	})
}

// The metadata must be at the same place in every type that a kube-apiserver keeps in etcd.
func TestMetadataOfEveryBuiltInTypeIsRead(t *testing.T) {
	tried := 0
	for gvk, kind := range scheme.Scheme.AllKnownTypes() {
		o, ok := reflect.New(kind).Interface().(runtime.Object)
		if !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if _, ok := o.(runtime.ProtobufMarshaller); !ok {
			continue
		}
		accessor, err := meta.Accessor(o)
		if err != nil {
			continue // a list, options, a review
		}
		tried++
		describe(accessor)
		o.GetObjectKind().SetGroupVersionKind(gvk)
		want := history.Object{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: "n", Name: "x", UID: "u", Deleting: true, Finalizers: []string{"one", "two"},
			Owners:     []history.Owner{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "v", Blocks: true, Controls: true}, {APIVersion: "g/v2", Kind: "K", Name: "k", UID: "w"}},
			Generation: 3,
		}
		if gvk.Kind == "StorageVersionMigration" && gvk.Version != "v1alpha1" {
			want.Migrates = &history.GVR{}
		}
		for name, as := range map[string]runtime.Encoder{"protobuf": inProtobuf, "JSON": inJSON} {
			got, err := decode(encoded(t, as, o))
			if err != nil {
				t.Errorf("%s in %s: %v", gvk, name, err)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", gvk, name, diff)
			}
		}
	}
	if tried < 80 {
		t.Errorf("only %d types were tried", tried)
	}
}

func TestFurtherFieldsDoNotMatter(t *testing.T) {
	replicas := int32(3)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "n", UID: "u"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Name: "of the template", Finalizers: []string{"f"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
		Status: appsv1.DeploymentStatus{Replicas: 2},
	}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	got, err := decode(encoded(t, inProtobuf, d))
	if want := (history.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "d", UID: "u"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestWorkloadsSayHowManyPodsTheyWant(t *testing.T) {
	three, two := int32(3), int32(2)
	ended := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	for _, c := range []struct {
		o     runtime.Object
		pods  int64 // 0: it says nothing
		ended bool
	}{
		{&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &three}}, 3, false},
		{&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &two}}, 2, false},
		{&corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Replicas: &two}}, 2, false},
		{&batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &three, Completions: &two}}, 3, false},
		{&appsv1.DaemonSet{}, 0, false},
		{&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, 0, false},
		{&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, 0, true},
		{&ended, 0, true},
	} {
		accessor, _ := meta.Accessor(c.o)
		describe(accessor)
		gvks, _, err := scheme.Scheme.ObjectKinds(c.o)
		if err != nil {
			t.Fatal(err)
		}
		c.o.GetObjectKind().SetGroupVersionKind(gvks[0])
		for name, as := range map[string]runtime.Encoder{"protobuf": inProtobuf, "JSON": inJSON} {
			got, err := decode(encoded(t, as, c.o))
			if err != nil || got.Ended != c.ended || (got.Replicas != nil) != (c.pods > 0) || c.pods > 0 && *got.Replicas != c.pods {
				t.Errorf("%s in %s: %+v, %v; want %d Pods", gvks[0].Kind, name, got, err, c.pods)
			}
		}
	}
}

func TestNamespacesHaveFinalizersOfTheirSpecAndConditions(t *testing.T) {
	n := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Finalizers: []string{"client"}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
		Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
			{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue}, {Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse},
		}},
	}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	want := history.Object{
		APIVersion: "v1", Kind: "Namespace", Name: "n", UID: "u", Finalizers: []string{"client", "kubernetes"}, Conditions: []string{"NamespaceContentRemaining"},
	}
	checkDecoded(t, n, want)
}

func TestLeasesHaveTheirHolder(t *testing.T) {
	holder := "kcm-b_1234"
	for _, held := range []*string{&holder, nil} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "n", UID: "u"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: held}}
		l.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		want := history.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "n", Name: "l", UID: "u"}
		if held != nil {
			want.Holder = holder
		}
		checkDecoded(t, l, want)
	}
}

func TestMigrationsHaveTheirResourceAndConditions(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "m", UID: "u"}
	things := metav1.GroupResource{Group: "x.k8s.io", Resource: "things"}
	conditions := []metav1.Condition{{Type: "Running", Status: metav1.ConditionFalse}, {Type: "Succeeded", Status: metav1.ConditionTrue}}
	older := &migrationv1beta1.StorageVersionMigration{ObjectMeta: meta, Spec: migrationv1beta1.StorageVersionMigrationSpec{Resource: things},
		Status: migrationv1beta1.StorageVersionMigrationStatus{Conditions: conditions}}
	older.SetGroupVersionKind(migrationv1beta1.SchemeGroupVersion.WithKind("StorageVersionMigration"))
	newer := &migrationv1.StorageVersionMigration{ObjectMeta: meta, Spec: migrationv1.StorageVersionMigrationSpec{Resource: things},
		Status: migrationv1.StorageVersionMigrationStatus{Conditions: conditions}}
	newer.SetGroupVersionKind(migrationv1.SchemeGroupVersion.WithKind("StorageVersionMigration"))
	for version, o := range map[string]runtime.Object{"v1beta1": older, "v1": newer} {
		want := history.Object{
			APIVersion: "storagemigration.k8s.io/" + version, Kind: "StorageVersionMigration", Name: "m", UID: "u", Conditions: []string{"Succeeded"},
			Migrates: &history.GVR{Group: "x.k8s.io", Resource: "things"},
		}
		checkDecoded(t, o, want)
	}
}

func TestQuotasHaveTheirCounts(t *testing.T) {
	const certificates = "count/podcertificaterequests.certificates.k8s.io"
	five := resource.MustParse("5")
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "n", UID: "u"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{certificates: five, "count/configmaps": five, "count/secrets": five, corev1.ResourcePods: five}},
		Status: corev1.ResourceQuotaStatus{
			Used: corev1.ResourceList{"count/configmaps": resource.MustParse("2"), "count/secrets": resource.MustParse("0"), "count/services": five, corev1.ResourcePods: five},
		},
	}
	q.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ResourceQuota"))
	two, none := int64(2), int64(0)
	want := history.Object{APIVersion: "v1", Kind: "ResourceQuota", Namespace: "n", Name: "q", UID: "u", Counts: []history.Count{
		{Resource: "configmaps", Used: &two}, {Group: "certificates.k8s.io", Resource: "podcertificaterequests"}, {Resource: "secrets", Used: &none},
	}}
	checkDecoded(t, q, want)
}

func TestWhatIsNoObjectIsAnError(t *testing.T) {
	truncated := encoded(t, inProtobuf, configMap("x", "u"))
	for name, c := range map[string]struct{ value, why string }{
		"nothing":                    {"", "neither JSON nor"},
		"encrypted":                  {"k8s:enc:aescbc:v1:key1:…", "without encryption at rest"},
		"broken JSON":                {`{"kind":"Pod"`, "from JSON"},
		"JSON that is not an object": {`{"a":1}`, "no kind or no UID"},
		"a broken envelope":          {"k8s\x00\x0a\xff", "its envelope"},
		"truncated protobuf":         {string(truncated[:len(truncated)/2]), ""},
		"an empty envelope":          {"k8s\x00", "no kind or no UID"},
		"a broken namespace":         {`{"apiVersion":"v1","kind":"Namespace","metadata":{"uid":"u"},"spec":{"finalizers":1}}`, "the Namespace from JSON"},
	} {
		if o, err := decode([]byte(c.value)); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s is read as %+v, %v; want an error with %q", name, o, err, c.why)
		}
	}
}

func TestNoiseIsNotRecorded(t *testing.T) {
	for key, want := range map[string]bool{
		"/registry/configmaps/default/x": true, "/registry/stable.example.com/things/n/x": true, "/registry/namespaces/n": true,
		"/registry/leases/kube-system/apiserver-x": false, "/registry/leases/kube-system/kube-controller-manager": true, "/registry/ranges/servicenodeports": false, "/registry/masterleases/198.18.0.1": false, "/registry/peerserverleases/apiserver-x": false,
		"/registry/events/default/x.1": false, "compact_rev_key": false, "/registry/eventsinks/x": true,
	} {
		if got := recorded(key); got != want {
			t.Errorf("%s: %t, want %t", key, got, want)
		}
	}
}

// Any program with access to etcd may have written a value.
func FuzzDecode(f *testing.F) {
	o := configMap("x", "u")
	describe(o)
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}
	n.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	for _, as := range []runtime.Encoder{inProtobuf, inJSON} {
		f.Add(encoded(f, as, o))
		f.Add(encoded(f, as, n))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if o, err := decode(value); err == nil && (o.Kind == "" || o.UID == "") {
			t.Errorf("%q is read as %+v", value, o)
		}
	})
}

func configMap(name, uid string) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: types.UID(uid)}, Data: map[string]string{"k": "v"}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return o
}
