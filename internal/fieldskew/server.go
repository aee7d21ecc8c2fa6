package fieldskew

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
)

// Server is one kube-apiserver.
type Server interface {
	// Send sends a request. An error means that there is no answer.
	Send(ctx context.Context, r Request) (Answer, error)
}

// Request is a request for one object.
type Request struct {
	history.GVR
	Method    string // POST, GET or PUT
	Namespace string // empty for kinds without namespaces
	Name      string // empty for POST to a resource, and to list
	Object    any    // nil for GET
	DryRun    bool
	// Validation is how strictly fields are validated; empty means that the server warns.
	Validation string
	// AuditID is the ID of the request in the server's audit log; empty means that the server
	// chooses one.
	AuditID string
}

// Answer is the answer to a request.
type Answer struct {
	Code     int  // 0 if the server broke off
	Object   tree // of an answer that is no refusal
	Refusal  metav1.Status
	Warnings []string
}

// OK reports whether the request was carried out.
func (a Answer) OK() bool { return a.Code/100 == 2 }

// HandleWarningHeader implements [rest.WarningHandler].
func (a *Answer) HandleWarningHeader(_ int, _, text string) { a.Warnings = append(a.Warnings, text) }

// NewSide reads the definitions of all kinds that a server has.
func NewSide(version string, client discovery.DiscoveryInterface) (Side, error) {
	documents, err := client.OpenAPIV3().Paths()
	if err != nil {
		return Side{}, fmt.Errorf("read the index of OpenAPI documents of %s: %w", version, err)
	}
	all := Schemas{}
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		body, err := documents[path].Schema(runtime.ContentTypeJSON)
		if err == nil {
			err = all.add(body)
		}
		if err != nil {
			return Side{}, fmt.Errorf("read the OpenAPI document %s of %s: %w", path, version, err)
		}
	}
	return Side{Version: version, Server: APIServer{client.RESTClient()}, Schemas: all}, nil
}

// Resources are the resources and subresources of a server through which objects are written.
func Resources(client discovery.DiscoveryInterface) (all []Resource, err error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		in, err := apischema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		wholes := map[string]*Resource{}
		for _, of := range list.APIResources {
			r := Resource{
				GVR: history.GVR{Group: in.Group, Version: in.Version, Resource: of.Name}, Kind: of.Kind, Namespaced: of.Namespaced,
				Updates: slices.Contains(of.Verbs, "update"),
			}
			if of.Version != "" {
				r.APIVersion = apischema.GroupVersion{Group: of.Group, Version: of.Version}.String()
			}
			if name, _, is := strings.Cut(of.Name, "/"); is {
				r.Of = wholes[name]
			} else {
				wholes[name], r.Updates = &r, false
			}
			if r.Updates || slices.Contains(of.Verbs, "create") {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// add adds the definitions of the OpenAPI v3 document of a group version.
func (s Schemas) add(document []byte) error {
	var d struct{ Components struct{ Schemas Schemas } }
	err := json.Unmarshal(document, &d)
	maps.Copy(s, d.Components.Schemas)
	return err
}

// APIServer is a kube-apiserver behind a REST client.
type APIServer struct{ rest.Interface }

// Send implements [Server].
func (s APIServer) Send(ctx context.Context, r Request) (a Answer, err error) {
	root := "/apis/" + r.Group
	if r.Group == "" {
		root = "/api"
	}
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	q := s.Verb(r.Method).AbsPath(root, r.Version).NamespaceIfScoped(r.Namespace, r.Namespace != "").Resource(resource).SubResource(subresource).
		SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).WarningHandler(&a)
	if r.Name != "" {
		q = q.Name(r.Name)
	}
	if r.Object != nil {
		q = q.Param("fieldManager", "skewproof").Param("fieldValidation", cmp.Or(r.Validation, metav1.FieldValidationWarn)).
			SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(encode(r.Object)))
		if r.DryRun {
			q = q.Param("dryRun", "All")
		}
	}
	if r.AuditID != "" {
		q = q.SetHeader("Audit-ID", r.AuditID) // k8s.io/api, audit/v1, HeaderAuditID
	}
	result := q.Do(ctx).StatusCode(&a.Code)
	body, err := result.Raw()
	if broken := (http2.StreamError{}); errors.As(err, &broken) { // as where its handler panics
		a.Refusal.Message = "the server broke off"
		return a, nil
	}
	slices.Sort(a.Warnings)
	if a.Code > 0 {
		if err = nil; a.OK() {
			err = json.Unmarshal(body, &a.Object)
		} else if json.Unmarshal(body, &a.Refusal) != nil {
			a.Refusal.Message = strings.TrimSpace(string(body))
		}
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", r.Method, q.URL(), err)
	}
	return a, err
}
