package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// objects is the prefix of all API objects (--etcd-prefix of kube-apiserver).
const objects = "/registry/"

// noise are the prefixes of what servers and controllers write all the time to show that they live,
// and of events. Nothing owns or is owned there, and no namespace has to wait for it.
var noise = []string{
	objects + "masterleases/",     // addresses of servers in the Service "kubernetes"
	objects + "peerserverleases/", // addresses of servers for their peers
	objects + "ranges/",           // which ports and addresses of Services are taken: no objects, without a UID
	objects + "leases/",           // Leases: identities of servers, leaders of controllers, heartbeats of nodes
	objects + "events/",
}

// recorded reports whether changes of a key are recorded.
func recorded(key string) bool {
	if !strings.HasPrefix(key, objects) {
		return false // such as compact_rev_key, by which kube-apiservers agree on what to compact
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

// errEncoding is for values that are neither JSON nor protobuf, such as encrypted ones.
var errEncoding = errors.New("it is neither JSON nor in kube-apiserver's protobuf envelope: run without encryption at rest and without CBOR in etcd")

// decode reads the metadata of an object as etcd keeps it, and of a Namespace also its finalizers
// and conditions. Revision, At, Key and Gone are left zero.
func decode(value []byte) (history.Object, error) {
	read := readJSON
	switch raw, isProtobuf := bytes.CutPrefix(value, protobufPrefix); {
	case isProtobuf:
		value, read = raw, readProtobuf
	case !bytes.HasPrefix(value, []byte("{")):
		return history.Object{}, errEncoding
	}
	kind, meta, namespace, err := read(value)
	if err != nil {
		return history.Object{}, err
	}
	if kind.Kind == "" || meta.UID == "" {
		return history.Object{}, errors.New("it has no kind or no UID")
	}
	o := history.Object{
		APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID),
		Deleting: meta.DeletionTimestamp != nil, Finalizers: meta.Finalizers,
	}
	for _, owner := range meta.OwnerReferences {
		o.Owners = append(o.Owners, history.Owner{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID),
			Blocks: owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion,
		})
	}
	if namespace != nil {
		for _, finalizer := range namespace.Spec.Finalizers {
			o.Finalizers = append(o.Finalizers, string(finalizer))
		}
		for _, condition := range namespace.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				o.Conditions = append(o.Conditions, string(condition.Type))
			}
		}
	}
	return o, nil
}

// isNamespace reports whether a type is that of namespaces, of which more than metadata is read.
func isNamespace(t metav1.TypeMeta) bool { return t.APIVersion == "v1" && t.Kind == "Namespace" }

func readJSON(value []byte) (metav1.TypeMeta, metav1.ObjectMeta, *corev1.Namespace, error) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(value, &o); err != nil {
		return o.TypeMeta, o.ObjectMeta, nil, fmt.Errorf("decode it from JSON: %w", err)
	}
	if !isNamespace(o.TypeMeta) {
		return o.TypeMeta, o.ObjectMeta, nil, nil
	}
	var namespace corev1.Namespace
	if err := json.Unmarshal(value, &namespace); err != nil {
		return o.TypeMeta, o.ObjectMeta, nil, fmt.Errorf("decode the namespace from JSON: %w", err)
	}
	return o.TypeMeta, o.ObjectMeta, &namespace, nil
}

// readProtobuf relies on metadata being field 1 of every type that is kept, as it is in
// PartialObjectMetadata.
func readProtobuf(value []byte) (kind metav1.TypeMeta, meta metav1.ObjectMeta, namespace *corev1.Namespace, err error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(value); err != nil {
		return kind, meta, nil, fmt.Errorf("decode its envelope from protobuf: %w", err)
	}
	kind = metav1.TypeMeta{APIVersion: envelope.APIVersion, Kind: envelope.Kind}
	var o metav1.PartialObjectMetadata
	if err := o.Unmarshal(envelope.Raw); err != nil {
		return kind, meta, nil, fmt.Errorf("decode its metadata from protobuf: %w", err)
	}
	if isNamespace(kind) {
		namespace = &corev1.Namespace{}
		if err := namespace.Unmarshal(envelope.Raw); err != nil {
			return kind, meta, nil, fmt.Errorf("decode the namespace from protobuf: %w", err)
		}
	}
	return kind, o.ObjectMeta, namespace, nil
}
