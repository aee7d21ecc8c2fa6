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

// Document answers requests for the discovery of one set of groups, in every format and encoding that a kube-apiserver has. Make it with
// [NewDocument]. It is immutable and safe for concurrent use. It makes each encoding at the first request for it, and keeps it.
type Document struct {
	root   string
	groups Groups
	etag   func() string

	mu   sync.Mutex
	made map[rendering]func() (*representation, error)
}

// rendering names one encoding of one form.
type rendering struct {
	form           form
	group, version string // of formGroup and formVersion
	mediaType      string
	pretty         bool
}

type form int

const (
	formV2 form = iota
	formV2Beta1
	formRoot    // the legacy list at the root
	formGroup   // /apis/<group>
	formVersion // /apis/<group>/<version>, /api/<version>
)

// NewDocument makes a document of the groups at a root, "/api" or "/apis". The groups must not be changed any more.
func NewDocument(root string, groups Groups) *Document {
	if groups == nil {
		groups = Groups{} // "items" is a list even when it is empty
	}
	d := &Document{root: root, groups: groups, made: map[rendering]func() (*representation, error){}}
	d.etag = sync.OnceValue(func() string {
		body, err := json.Marshal(apidiscoveryv2.APIGroupDiscoveryList{Items: groups})
		if err != nil { // strings and numbers only: cannot be
			return ""
		}
		return hashOf(body)
	})
	return d
}

// Groups returns what the document lists. It must not be changed.
func (d *Document) Groups() Groups { return d.groups }

// ETag returns the quoted entity tag of the v2 document in JSON: a hash of the groups, the same on every server that lists the
// same, and equal to that of a kube-apiserver (k8s.io/apiserver, pkg/endpoints/discovery/aggregated, etag.go). The other encodings have tags of
// their own, unlike there: RFC 9110, 8.8.1 wants a strong tag to change with the bytes.
func (d *Document) ETag() string { return `"` + d.etag() + `"` }

// ServeHTTP answers a GET or HEAD of the root by what Accept asks for: aggregated v2 or v2beta1, else the legacy list. If nothing fits,
// that is 406. The path of the request does not matter, nor does profile=nopeer: see [WantsNoPeer].
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	options, ok := negotiateAggregated(r.Header.Get("Accept"))
	switch {
	case !ok:
		d.serve(w, r, rendering{form: formRoot})
	case options.Convert.Version == "v2beta1":
		d.serve(w, r, rendering{form: formV2Beta1})
	default:
		d.serve(w, r, rendering{form: formV2})
	}
}

// ServeGroup answers /apis/<group>. It returns false, and has written nothing, if the group is not listed.
func (d *Document) ServeGroup(w http.ResponseWriter, r *http.Request, group string) bool {
	if _, ok := GroupOf(d.groups, group); !ok {
		return false
	}
	d.serve(w, r, rendering{form: formGroup, group: group})
	return true
}

// ServeVersion answers /apis/<group>/<version>, or /api/<version> for the empty group. It returns false, and has written nothing, if
// the version is not listed.
func (d *Document) ServeVersion(w http.ResponseWriter, r *http.Request, group, version string) bool {
	if _, ok := versionOf(d.groups, group, version); !ok {
		return false
	}
	d.serve(w, r, rendering{form: formVersion, group: group, version: version})
	return true
}

func (d *Document) serve(w http.ResponseWriter, r *http.Request, what rendering) {
	if !readOnly(w, r) {
		return
	}
	var restrictions negotiation.EndpointRestrictions = negotiation.DefaultEndpointRestrictions
	if what.form == formV2 || what.form == formV2Beta1 {
		restrictions = aggregatedOnly{}
	}
	format, err := negotiate(r, restrictions)
	if err != nil {
		status := metav1.Status{Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: err.Error()}
		if known, ok := err.(apierrors.APIStatus); ok {
			status = known.Status()
		}
		writeStatus(w, r, status)
		return
	}
	what.mediaType, what.pretty = format.options.Accepted.MediaType, format.pretty
	p, err := d.representation(what, format.serializer)
	if err != nil {
		writeStatus(w, r, metav1.Status{
			Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
		})
		return
	}
	p.serve(w, r)
}

// representation makes an encoding once. Only what the document lists is asked for, so there are as many at most as it has forms.
func (d *Document) representation(what rendering, serializer runtime.Serializer) (*representation, error) {
	d.mu.Lock()
	once, ok := d.made[what]
	if !ok {
		once = sync.OnceValues(func() (*representation, error) { return d.render(what, serializer) })
		d.made[what] = once
	}
	d.mu.Unlock()
	return once()
}

func (d *Document) render(what rendering, serializer runtime.Serializer) (*representation, error) {
	object, err := d.object(what)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := serializer.Encode(object, &body); err != nil {
		return nil, fmt.Errorf("encode discovery as %s: %w", what.mediaType, err)
	}
	switch what.form {
	case formV2:
		tag := ""
		if what.mediaType == runtime.ContentTypeJSON && !what.pretty {
			tag = d.etag()
		}
		return newRepresentation(what.mediaType+";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "public", tag, body.Bytes()), nil
	case formV2Beta1:
		return newRepresentation(what.mediaType+";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "public", "", body.Bytes()), nil
	}
	return newRepresentation(what.mediaType, "no-cache, private", "", body.Bytes()), nil
}

// object returns what is encoded, with its kind and version set: the serializers write them as they find them.
func (d *Document) object(what rendering) (runtime.Object, error) {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()}, Items: d.groups,
	}
	switch what.form {
	case formV2:
		return list, nil
	case formV2Beta1:
		older := &apidiscoveryv2beta1.APIGroupDiscoveryList{}
		if err := conversion.Convertv2APIGroupDiscoveryListTov2beta1APIGroupDiscoveryList(list, older, nil); err != nil {
			return nil, fmt.Errorf("convert discovery to v2beta1: %w", err)
		}
		older.TypeMeta = metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2beta1.SchemeGroupVersion.String()}
		return older, nil
	case formGroup:
		group, ok := GroupOf(d.groups, what.group)
		if !ok {
			return nil, fmt.Errorf("group %q is not listed", what.group)
		}
		return group, nil
	case formVersion:
		resources, ok := ResourcesOf(d.groups, what.group, what.version)
		if !ok {
			return nil, fmt.Errorf("version %q of group %q is not listed", what.version, what.group)
		}
		return resources, nil
	}
	if d.root == "/api" {
		return legacyVersions(d.groups), nil
	}
	return legacyGroupList(d.groups), nil
}
