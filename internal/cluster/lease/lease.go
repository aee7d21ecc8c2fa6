// Package lease reads the endpoint leases of servers from etcd: where peers reach them.
package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// Where etcd has endpoint leases: those of kube-apiservers (CreatePeerEndpointLeaseReconciler in
// k8s.io/kubernetes, pkg/controlplane/apiserver/peer.go), and those of sidecars, which are Leases.
const (
	builtinLeases = "/registry/peerserverleases/"
	sidecarLeases = "/registry/leases/" + peers.Namespace + "/"
)

// Advertised is the host:port in the endpoint lease of a server with an apiserver identity; empty
// if there is no such lease. The client is for the etcd at a host:port.
func Advertised(ctx context.Context, client *http.Client, etcd, id string) (string, error) {
	for _, key := range []string{builtinLeases + id, sidecarLeases + peers.EndpointLeaseName(proxy.ServerID(id))} {
		found, err := value(ctx, client, etcd, key)
		if err != nil {
			return "", fmt.Errorf("read the endpoint lease %s: %w", key, err)
		}
		if found == nil {
			continue
		}
		at, err := address(found, time.Now())
		if err != nil {
			return "", fmt.Errorf("read the endpoint lease %s: %w", key, err)
		}
		return at, nil
	}
	return "", nil
}

// address is the host:port in an endpoint lease as etcd keeps it; empty if the lease has expired.
// etcd removes an expired lease of a kube-apiserver, and keeps that of a sidecar.
func address(encoded []byte, now time.Time) (string, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, nil, nil)
	if err != nil {
		return "", err
	}
	switch lease := object.(type) {
	//lint:ignore SA1019 it is what kube-apiserver keeps there
	case *corev1.Endpoints:
		for _, s := range lease.Subsets {
			if len(s.Addresses) > 0 && len(s.Ports) > 0 {
				return net.JoinHostPort(s.Addresses[0].IP, strconv.Itoa(int(s.Ports[0].Port))), nil
			}
		}
	case *coordinationv1.Lease:
		seconds, renewed := lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime
		if seconds == nil || renewed == nil || now.Sub(renewed.Time) > time.Duration(*seconds)*time.Second {
			return "", nil
		}
		return lease.Annotations[peers.AddressAnnotation], nil
	}
	return "", nil
}

// value reads one key through etcd's gateway for JSON; nil if it does not exist.
func value(ctx context.Context, client *http.Client, etcd, key string) ([]byte, error) {
	question, err := json.Marshal(map[string][]byte{"key": []byte(key)})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+etcd+"/v3/kv/range", bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd answered %s", response.Status)
	}
	var answer struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if len(answer.KVs) == 0 {
		return nil, nil
	}
	return answer.KVs[0].Value, nil
}
