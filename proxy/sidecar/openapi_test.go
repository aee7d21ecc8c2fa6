package sidecar

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// describe adds the OpenAPI handler of a kube-apiserver to a stand-in.
func (a *apiserver) describe(description string, resources ...schema.GroupVersionResource) {
	paths, schemas := map[string]*spec3.Path{}, map[string]*spec.Schema{}
	for _, r := range resources {
		kind := kindOf(r.Resource)
		gvk := map[string]any{"group": r.Group, "version": r.Version, "kind": kind}
		name := "example." + kind
		schemas[name] = &spec.Schema{
			SchemaProps:      spec.SchemaProps{Description: description, Type: []string{"object"}},
			VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-group-version-kind": []any{gvk}}},
		}
		answer := &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "OK", Content: map[string]*spec3.MediaType{
			"application/json": {MediaTypeProps: spec3.MediaTypeProps{Schema: spec.RefSchema("#/components/schemas/" + name)}}}}}
		paths["/apis/"+r.Group+"/"+r.Version+"/namespaces/{namespace}/"+r.Resource+"/{name}"] = &spec3.Path{PathProps: spec3.PathProps{Patch: &spec3.Operation{
			OperationProps:   spec3.OperationProps{Responses: &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: map[int]*spec3.Response{200: answer}}}},
			VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-group-version-kind": gvk}},
		}}}
	}
	service, recorder := handler3.NewOpenAPIService(), mux.NewPathRecorderMux(a.name)
	service.UpdateGroupVersion("apis/"+resources[0].Group+"/"+resources[0].Version, &spec3.OpenAPI{
		Version: "3.0.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: a.name}},
		Paths: &spec3.Paths{Paths: paths}, Components: &spec3.Components{Schemas: schemas},
	})
	if err := service.RegisterOpenAPIV3VersionedService("/openapi/v3", recorder); err != nil {
		a.t.Fatal(err)
	}
	a.set(func() { a.openAPI = recorder })
}

// kubectl explain, and kubectl's check for field validation, read the description of a group
// version with client-go. At either server, they find a kind that only the newer of two servers
// has.
func TestOpenAPIOfASharedVersionDescribesAllKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	newer := schema.GroupVersionResource{Group: everywhere.Group, Version: everywhere.Version, Resource: "rarities"}
	a, b := newAPIServer(t, "a", w.serving, w.frontCA, everywhere), newAPIServer(t, "b", w.serving, w.frontCA, everywhere, newer)
	a.describe("by a", everywhere)
	b.describe("by b", everywhere, newer)
	p := w.pair(a, b)
	alice := w.user("alice")
	for name, c := range map[string]struct {
		at   *running
		want map[string]string
	}{
		"the older server": {p.atA, map[string]string{"Commons": "by a", "Rarities": "by b"}},
		"the newer server": {p.atB, map[string]string{"Commons": "by b", "Rarities": "by b"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: "https://" + c.at.front}, alice)
			if err != nil {
				t.Fatal(err)
			}
			document, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(everywhere.GroupVersion())
			if err != nil {
				t.Fatal(err)
			}
			for kind, by := range c.want {
				described := document.Components.Schemas["example."+kind]
				if described == nil || described.Description != by {
					t.Errorf("%s is described as %+v, want %s", kind, described, by)
				}
				path := document.Paths.Paths["/apis/both.example/v1/namespaces/{namespace}/"+strings.ToLower(kind)+"/{name}"]
				if path == nil || path.Patch == nil {
					t.Errorf("%s cannot be patched: field validation would not be supported", kind)
				}
			}
			schema, err := client.OpenAPIV3().Paths()
			if err != nil {
				t.Fatal(err)
			}
			body, err := schema["apis/both.example/v1"].Schema("application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
			if err != nil || !strings.Contains(string(body), "example.Rarities") {
				t.Errorf("protobuf: %q, %v", body, err)
			}
		})
	}
	t.Run("only for those who may see the local server's", func(t *testing.T) {
		for _, path := range []string{"/openapi/v3", "/openapi/v3/apis/both.example/v1"} {
			if got := p.atA.get(w.client(nil, true), path); got.code != http.StatusForbidden || strings.Contains(got.body, "rarities") {
				t.Errorf("anonymous at %s: %d %s", path, got.code, got.body)
			}
		}
	})
}
