package ownership

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// kind makes valid owners of one resource, in all its versions.
type kind struct {
	group, resource string
	// fields are all fields except apiVersion, kind and metadata.
	fields func(name string) (map[string]any, error)
}

// kinds are the resources that can have owners, in order of preference: resources that the newest
// releases have added come first. Only the garbage collector and the namespace controller act on
// these objects.
var kinds = []kind{
	{"certificates.k8s.io", "clustertrustbundles", trustBundle},
	{"certificates.k8s.io", "podcertificaterequests", certificateRequest},
	{"storagemigration.k8s.io", "storageversionmigrations",
		fixed("spec", map[string]any{"resource": map[string]any{"group": "skewproof.invalid", "resource": "nosuchthings"}})},
	{"storage.k8s.io", "volumeattributesclasses", fixed("driverName", "driver.skewproof.invalid")},
	{"apps", "deployments", deployment},
	{"", "configmaps", fixed("data", map[string]any{})},
}

// Fields returns the fields of a valid owner of a resource: all except apiVersion, kind and
// metadata.
func Fields(group, resource, name string) (map[string]any, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.group == group && k.resource == resource })
	if i < 0 {
		return nil, fmt.Errorf("make a valid object of %s.%s: unknown resource; add it to the kinds of package ownership", resource, group)
	}
	return kinds[i].fields(name)
}

func fixed(field string, value any) func(string) (map[string]any, error) {
	return func(string) (map[string]any, error) { return map[string]any{field: value}, nil }
}

func deployment(name string) (map[string]any, error) {
	labels := map[string]any{"app": name}
	return map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "none", "image": "image.skewproof.invalid/none:none"}},
		}},
	}}, nil
}

// trustBundle has one certificate authority, whose key is not kept.
func trustBundle(name string) (map[string]any, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, public, private)
	if err != nil {
		return nil, err
	}
	var bundle bytes.Buffer
	if err := pem.Encode(&bundle, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		return nil, err
	}
	return map[string]any{"spec": map[string]any{"trustBundle": bundle.String()}}, nil
}

// certificateRequest is for a pod and a signer that do not exist.
func certificateRequest(name string) (map[string]any, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, err
	}
	return map[string]any{"spec": map[string]any{
		"signerName": "skewproof.invalid/nobody", "podName": name, "podUID": name, "serviceAccountName": "default", "serviceAccountUID": name,
		"nodeName": "none", "nodeUID": "none", "maxExpirationSeconds": int64(3600),
		"stubPKCS10Request": base64.StdEncoding.EncodeToString(request),
	}}, nil
}

// Choose chooses the resources of owners: a resource without namespaces that only some servers
// serve, a resource with namespaces that only some servers serve, and ConfigMaps. One of the first
// two may be missing. If both are missing, Choose returns an error, because then no request would
// have to cross. served is by server.
func Choose(served map[string]history.Document) ([]history.Resource, error) {
	var chosen []history.Resource
	for _, namespaced := range []bool{false, true} {
		if r, ok := firstSkewed(served, namespaced); ok {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("every ready server serves all kinds of owners that this skewproof can make: choose versions that differ more, " +
			"such as --from v1.36.3 --to v1.37.1")
	}
	for _, server := range slices.Sorted(maps.Keys(served)) {
		if r, ok := find(served[server], kinds[len(kinds)-1]); ok {
			return append(chosen, r), nil
		}
	}
	return nil, errors.New("no ready server serves ConfigMaps")
}

// firstSkewed returns the first kind that some servers serve and that others do not serve in any
// version.
func firstSkewed(served map[string]history.Document, namespaced bool) (history.Resource, bool) {
	for _, k := range kinds {
		var found history.Resource
		has := 0
		for _, server := range slices.Sorted(maps.Keys(served)) {
			if r, ok := find(served[server], k); ok {
				found = r
				has++
			}
		}
		if has > 0 && has < len(served) && found.Namespaced == namespaced {
			return found, true
		}
	}
	return history.Resource{}, false
}

// find returns the first version of a kind in a document, which is the preferred one, in which
// objects can be created and deleted.
func find(d history.Document, k kind) (history.Resource, bool) {
	for _, r := range d.Resources {
		if r.Group == k.group && r.GVR.Resource == k.resource && slices.Contains(r.Verbs, "create") && slices.Contains(r.Verbs, "delete") {
			return r, true
		}
	}
	return history.Resource{}, false
}

func serves(d history.Document, version, resource string) bool {
	return slices.ContainsFunc(d.Resources, func(r history.Resource) bool { return apiVersion(r) == version && r.GVR.Resource == resource })
}

// kindOf returns the kind of a resource that Choose has chosen.
func kindOf(r history.Resource) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.group == r.Group && k.resource == r.GVR.Resource })
	if i < 0 {
		panic(fmt.Sprintf("%s was not chosen from kinds", r.GVR))
	}
	return kinds[i]
}

func apiVersion(r history.Resource) string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}
