package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// objects is the prefix of all API objects (--etcd-prefix of kube-apiserver).
const objects = "/registry/"

// noise lists the prefixes of events and of the keys that servers and controllers write all the
// time to show that they live. No object there is an owner or has one, and no namespace waits for
// it.
var noise = []string{
	objects + "masterleases/",     // addresses of servers in the Service "kubernetes"
	objects + "peerserverleases/", // addresses of servers for their peers
	objects + "peerservermarks/",  // the reference's marks of servers
	objects + "ranges/",           // ports and addresses that Services use; these are not API objects with a UID
	objects + "leases/",           // identities of servers, heartbeats of nodes, and all leaders of controllers except leaderLease
	objects + "events/",
}

// leaderLease is the Lease by which kube-controller-managers agree on their leader.
const leaderLease = objects + "leases/kube-system/kube-controller-manager"

// recorded reports whether changes of a key are recorded.
func recorded(key string) bool {
	if !strings.HasPrefix(key, objects) {
		return false // such as compact_rev_key, with which kube-apiservers coordinate compaction
	}
	if key == leaderLease {
		return true
	}
	for _, prefix := range noise {
		if strings.HasPrefix(key, prefix) {
			return false
		}
	}
	return true
}

// protobufPrefix begins a value in kube-apiserver's protobuf envelope (k8s.io/apimachinery,
// pkg/runtime/serializer/protobuf).
var protobufPrefix = []byte("k8s\x00")

// errEncoding is the error for values that are neither JSON nor protobuf, such as encrypted ones.
var errEncoding = errors.New("it is neither JSON nor in kube-apiserver's protobuf envelope: run without encryption at rest and without CBOR in etcd")

// decode reads the metadata of an object in etcd. It also reads the finalizers and conditions of a
// Namespace, the counts of a ResourceQuota, the holder of a Lease, the resource and conditions of a
// StorageVersionMigration, the number of Pods that a workload wants, and whether a Pod has ended.
// It leaves Revision, At, Key and Gone zero.
func decode(value []byte) (history.Object, error) {
	read := readJSON
	switch raw, isProtobuf := bytes.CutPrefix(value, protobufPrefix); {
	case isProtobuf:
		value, read = raw, readProtobuf
	case !bytes.HasPrefix(value, []byte("{")):
		return history.Object{}, errEncoding
	}
	kind, meta, whole, err := read(value)
	if err != nil {
		return history.Object{}, err
	}
	if kind.Kind == "" || meta.UID == "" {
		return history.Object{}, errors.New("it has no kind or no UID")
	}
	o := history.Object{
		APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID),
		Deleting: meta.DeletionTimestamp != nil, Finalizers: meta.Finalizers, Generation: meta.Generation,
	}
	for _, owner := range meta.OwnerReferences {
		o.Owners = append(o.Owners, history.Owner{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID),
			Blocks:   owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion,
			Controls: owner.Controller != nil && *owner.Controller,
		})
	}
	switch whole := whole.(type) {
	case *corev1.Namespace:
		for _, finalizer := range whole.Spec.Finalizers {
			o.Finalizers = append(o.Finalizers, string(finalizer))
		}
		for _, condition := range whole.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				o.Conditions = append(o.Conditions, string(condition.Type))
			}
		}
	case *corev1.ResourceQuota:
		o.Counts = countsOf(whole)
	case *migrationv1.StorageVersionMigration:
		o.Migrates = &history.GVR{Group: whole.Spec.Resource.Group, Resource: whole.Spec.Resource.Resource}
		o.Conditions = append(o.Conditions, trueConditions(whole.Status.Conditions)...)
	case *migrationv1beta1.StorageVersionMigration:
		o.Migrates = &history.GVR{Group: whole.Spec.Resource.Group, Resource: whole.Spec.Resource.Resource}
		o.Conditions = append(o.Conditions, trueConditions(whole.Status.Conditions)...)
	case *coordinationv1.Lease:
		if whole.Spec.HolderIdentity != nil {
			o.Holder = *whole.Spec.HolderIdentity
		}
	case *corev1.Pod:
		o.Ended = whole.Status.Phase == corev1.PodSucceeded || whole.Status.Phase == corev1.PodFailed
	case *appsv1.ReplicaSet:
		o.Replicas = number(whole.Spec.Replicas)
	case *appsv1.StatefulSet:
		o.Replicas = number(whole.Spec.Replicas)
	case *corev1.ReplicationController:
		o.Replicas = number(whole.Spec.Replicas)
	case *batchv1.Job:
		o.Replicas = number(whole.Spec.Parallelism)
	}
	return o, nil
}

func number(n *int32) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

func trueConditions(all []metav1.Condition) (types []string) {
	for _, c := range all {
		if c.Status == metav1.ConditionTrue {
			types = append(types, c.Type)
		}
	}
	return types
}

// countsOf returns the limits of a quota that count objects of a resource. Their names begin with
// "count/" (k8s.io/apiserver, pkg/quota/v1/generic, ObjectCountQuotaResourceNameFor).
func countsOf(quota *corev1.ResourceQuota) []history.Count {
	var counts []history.Count
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
		counted, ok := strings.CutPrefix(string(name), "count/")
		if !ok {
			continue
		}
		var c history.Count
		c.Resource, c.Group, _ = strings.Cut(counted, ".")
		if used, known := quota.Status.Used[name]; known {
			n := used.Value()
			c.Used = &n
		}
		counts = append(counts, c)
	}
	return counts
}

// readable is an object that can be decoded from protobuf. Objects of kube-apiserver's types can be
// decoded from JSON too.
type readable interface{ Unmarshal([]byte) error }

// wholes make an empty object of each type of which decode reads more than metadata.
var wholes = map[metav1.TypeMeta]func() readable{
	{APIVersion: "v1", Kind: "Namespace"}:                                func() readable { return &corev1.Namespace{} },
	{APIVersion: "v1", Kind: "ResourceQuota"}:                            func() readable { return &corev1.ResourceQuota{} },
	{APIVersion: "v1", Kind: "Pod"}:                                      func() readable { return &corev1.Pod{} },
	{APIVersion: "v1", Kind: "ReplicationController"}:                    func() readable { return &corev1.ReplicationController{} },
	{APIVersion: "apps/v1", Kind: "ReplicaSet"}:                          func() readable { return &appsv1.ReplicaSet{} },
	{APIVersion: "apps/v1", Kind: "StatefulSet"}:                         func() readable { return &appsv1.StatefulSet{} },
	{APIVersion: "batch/v1", Kind: "Job"}:                                func() readable { return &batchv1.Job{} },
	{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}:                func() readable { return &coordinationv1.Lease{} },
	{APIVersion: "storagemigration.k8s.io/v1", Kind: migrationKind}:      func() readable { return &migrationv1.StorageVersionMigration{} },
	{APIVersion: "storagemigration.k8s.io/v1beta1", Kind: migrationKind}: func() readable { return &migrationv1beta1.StorageVersionMigration{} },
}

const migrationKind = "StorageVersionMigration"

// wholeOf returns an empty object of a type of which decode reads more than metadata. It returns
// nil for other types.
func wholeOf(t metav1.TypeMeta) readable {
	if empty := wholes[t]; empty != nil {
		return empty()
	}
	return nil
}

func readJSON(value []byte) (metav1.TypeMeta, metav1.ObjectMeta, readable, error) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(value, &o); err != nil {
		return o.TypeMeta, o.ObjectMeta, nil, fmt.Errorf("decode it from JSON: %w", err)
	}
	whole := wholeOf(o.TypeMeta)
	if whole == nil {
		return o.TypeMeta, o.ObjectMeta, nil, nil
	}
	if err := json.Unmarshal(value, whole); err != nil {
		return o.TypeMeta, o.ObjectMeta, nil, fmt.Errorf("decode the %s from JSON: %w", o.Kind, err)
	}
	return o.TypeMeta, o.ObjectMeta, whole, nil
}

// readProtobuf uses the fact that metadata is field 1 of every type in etcd, as in
// PartialObjectMetadata.
func readProtobuf(value []byte) (kind metav1.TypeMeta, meta metav1.ObjectMeta, whole readable, err error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(value); err != nil {
		return kind, meta, nil, fmt.Errorf("decode its envelope from protobuf: %w", err)
	}
	kind = metav1.TypeMeta{APIVersion: envelope.APIVersion, Kind: envelope.Kind}
	var o metav1.PartialObjectMetadata
	if err := o.Unmarshal(envelope.Raw); err != nil {
		return kind, meta, nil, fmt.Errorf("decode its metadata from protobuf: %w", err)
	}
	if whole = wholeOf(kind); whole != nil {
		if err := whole.Unmarshal(envelope.Raw); err != nil {
			return kind, meta, nil, fmt.Errorf("decode the %s from protobuf: %w", kind.Kind, err)
		}
	}
	return kind, o.ObjectMeta, whole, nil
}
