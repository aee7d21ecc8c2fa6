package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	conversion "k8s.io/apiserver/pkg/apis/apidiscovery/v2"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

// Document answers requests for the discovery of one set of groups, in every format and encoding of
// a kube-apiserver. Make it with [NewDocument]. It is immutable and safe for concurrent use. It
// makes each encoding at the first request for it, and then stores it.
type Document struct {
	root   string
	groups Groups
	etag   func() string

	mu   sync.Mutex
	made map[rendering]func() (*representation, error)
}

// rendering names one encoding of one form of a document.
type rendering struct {
	form           string // aggregated: v2, v2beta1; legacy: root, group, version
	group, version string // of the forms group and version
	mediaType      string
	pretty         bool
}

func (r rendering) aggregated() bool { return r.form == "v2" || r.form == "v2beta1" }

// NewDocument makes a document of the groups at a root, "/api" or "/apis". The caller must not
// change the groups afterwards.
func NewDocument(root string, groups Groups) *Document {
	if groups == nil {
		groups = Groups{} // "items" is a list even if it is empty
	}
	d := &Document{root: root, groups: groups, made: map[rendering]func() (*representation, error){}}
	d.etag = sync.OnceValue(func() string {
		body, _ := json.Marshal(apidiscoveryv2.APIGroupDiscoveryList{Items: groups}) // only strings and numbers: this cannot fail
		return hashOf(withoutNull(body))
	})
	return d
}

// Groups returns the groups of the document. The caller must not change them.
func (d *Document) Groups() Groups { return d.groups }

// Version returns one version of a group, and false if it is not listed.
func (d *Document) Version(group, version string) (apidiscoveryv2.APIVersionDiscovery, bool) {
	v, ok := versionOf(d.groups, group, version)
	if !ok {
		return apidiscoveryv2.APIVersionDiscovery{}, false
	}
	return *v, true
}

// ETag returns the quoted entity tag of the v2 document in JSON. It is a hash of the groups. A
// kube-apiserver that lists the same groups has the same tag (k8s.io/apiserver,
// pkg/endpoints/discovery/aggregated, etag.go). In contrast to a kube-apiserver, the other
// encodings have other tags, because a strong tag must change with the bytes (RFC 9110, 8.8.1).
func (d *Document) ETag() string { return `"` + d.etag() + `"` }

// ServeHTTP answers a GET or HEAD of the root according to Accept: with aggregated v2 or v2beta1,
// or else with the legacy list, or else with 406. It ignores the path of the request and
// profile=nopeer; see [WantsNoPeer].
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form := "root"
	if version, ok := negotiateAggregated(r.Header.Get("Accept")); ok {
		form = version // v2 or v2beta1, because no other version is admitted
	}
	d.serve(w, r, rendering{form: form}, nil)
}

// ServeGroup answers /apis/<group>. If the group is not listed, it returns false and writes
// nothing.
func (d *Document) ServeGroup(w http.ResponseWriter, r *http.Request, group string) bool {
	_, ok := groupOf(d.groups, group)
	if ok {
		d.serve(w, r, rendering{form: "group", group: group}, nil)
	}
	return ok
}

// ServeVersion answers /apis/<group>/<version>, or /api/<version> for the empty group. If the
// version is not listed, it returns false and writes nothing.
func (d *Document) ServeVersion(w http.ResponseWriter, r *http.Request, group, version string) bool {
	return d.ServeVersionHashed(w, r, group, version, nil)
}

// ServeVersionHashed is ServeVersion with the hashes of storage versions, by resource. Aggregated
// discovery does not have these hashes.
func (d *Document) ServeVersionHashed(w http.ResponseWriter, r *http.Request, group, version string, hashes map[string]string) bool {
	_, ok := versionOf(d.groups, group, version)
	if ok {
		d.serve(w, r, rendering{form: "version", group: group, version: version}, hashes)
	}
	return ok
}

func (d *Document) serve(w http.ResponseWriter, r *http.Request, what rendering, hashes map[string]string) {
	if !readOnly(w, r) {
		return
	}
	var restrictions negotiation.EndpointRestrictions = negotiation.DefaultEndpointRestrictions
	if what.aggregated() {
		restrictions = aggregatedOnly{}
	}
	options, info, err := negotiation.NegotiateOutputMediaType(r, codecs, restrictions)
	if err != nil {
		status := metav1.Status{Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: err.Error()}
		if known, ok := err.(apierrors.APIStatus); ok {
			status = known.Status()
		}
		writeStatus(w, r, status)
		return
	}
	what.mediaType = options.Accepted.MediaType
	what.pretty = info.PrettySerializer != nil && info.Serializer == info.PrettySerializer
	p, err := d.representation(what, info.Serializer, hashes)
	if err != nil {
		writeStatus(w, r, metav1.Status{
			Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
		})
		return
	}
	p.serve(w, r)
}

// representation makes each encoding once. It encodes only listed groups and versions, so the
// number of encodings is bounded. An encoding with hashes is made for each request, because the
// hashes are not part of the document.
func (d *Document) representation(what rendering, serializer runtime.Serializer, hashes map[string]string) (*representation, error) {
	if len(hashes) > 0 {
		return d.render(what, serializer, hashes)
	}
	d.mu.Lock()
	once, ok := d.made[what]
	if !ok {
		once = sync.OnceValues(func() (*representation, error) { return d.render(what, serializer, nil) })
		d.made[what] = once
	}
	d.mu.Unlock()
	return once()
}

func (d *Document) render(what rendering, serializer runtime.Serializer, hashes map[string]string) (*representation, error) {
	object, err := d.object(what, hashes)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := serializer.Encode(object, &body); err != nil {
		return nil, fmt.Errorf("encode discovery as %s: %w", what.mediaType, err)
	}
	contentType, cacheControl, tag := what.mediaType, "no-cache, private", ""
	if what.aggregated() {
		contentType += ";g=apidiscovery.k8s.io;v=" + what.form + ";as=APIGroupDiscoveryList"
		cacheControl = "public"
	}
	if what.form == "v2" && what.mediaType == runtime.ContentTypeJSON && !what.pretty {
		tag = d.etag()
	}
	content := body.Bytes()
	if what.mediaType == runtime.ContentTypeJSON {
		content = withoutNull(content)
	}
	return newRepresentation(contentType, cacheControl, tag, content), nil
}

// withoutNull removes the null creation times from the metadata of groups. The API machinery of
// Kubernetes writes them up to v1.33, so without this servers before and after would answer the
// same groups with other bytes and tags.
func withoutNull(body []byte) []byte {
	body = bytes.ReplaceAll(body, []byte(`,"creationTimestamp":null`), nil)
	return bytes.ReplaceAll(body, []byte(`{"creationTimestamp":null}`), []byte(`{}`))
}

// object returns the object to encode. It sets the kind and version, because the serializers do not
// set them.
func (d *Document) object(what rendering, hashes map[string]string) (runtime.Object, error) {
	switch what.form {
	case "v2", "v2beta1":
		list := &apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()}, Items: d.groups,
		}
		if what.form == "v2" {
			return list, nil
		}
		older := &apidiscoveryv2beta1.APIGroupDiscoveryList{}
		if err := conversion.Convertv2APIGroupDiscoveryListTov2beta1APIGroupDiscoveryList(list, older, nil); err != nil {
			return nil, fmt.Errorf("convert discovery to v2beta1: %w", err)
		}
		older.TypeMeta = metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2beta1.SchemeGroupVersion.String()}
		return older, nil
	case "group":
		group, _ := GroupOf(d.groups, what.group)
		return group, nil
	case "version":
		resources, _ := ResourcesOf(d.groups, what.group, what.version)
		for i, r := range resources.APIResources {
			resources.APIResources[i].StorageVersionHash = hashes[r.Name]
		}
		return resources, nil
	}
	if d.root == "/api" {
		return legacyVersions(d.groups), nil
	}
	return legacyGroupList(d.groups), nil
}
