package sidecar

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (a *apiserver) serveLease(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"), "/")
	var lease coordinationv1.Lease
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		a.read(r, &lease)
		lease.UID, lease.ResourceVersion = "uid", strconv.Itoa(len(a.seen))
		a.leases[lease.Name] = &lease
		a.write(w, "application/json", lease)
		return
	}
	switch {
	case name == "":
		items := []any{}
		for _, lease := range a.leases {
			items = append(items, lease)
		}
		a.list(w, r, items)
	case a.leases[name] == nil:
		a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodDelete:
		delete(a.leases, name)
		a.write(w, "application/json", metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	default:
		found := a.leases[name].DeepCopy()
		found.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
		a.write(w, "application/json", found)
	}
}

// list answers a list. A watch gets no events and lasts until the caller ends it.
func (a *apiserver) list(w http.ResponseWriter, r *http.Request, items []any) {
	query := r.URL.Query()
	if query.Get("sendInitialEvents") != "" { // like a server without WatchList
		a.status(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	}
	if query.Get("watch") == "true" || query.Get("watch") == "1" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			a.stream(w, r, a.maps)
		}
		a.wait(r)
		return
	}
	kind, version := "LeaseList", "coordination.k8s.io/v1"
	switch {
	case strings.HasSuffix(r.URL.Path, "/customresourcedefinitions"):
		kind, version = "CustomResourceDefinitionList", "apiextensions.k8s.io/v1"
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		kind, version = "ConfigMapList", "v1"
	case strings.HasSuffix(r.URL.Path, "/endpointslices"):
		kind, version = "EndpointSliceList", "discovery.k8s.io/v1"
	case strings.HasSuffix(r.URL.Path, "/apiservices"):
		kind, version = "APIServiceList", "apiregistration.k8s.io/v1"
	}
	a.write(w, "application/json", map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]string{"resourceVersion": "1"}, "items": items})
}

// authenticationConfig is the ConfigMap with the server's flags.
func (a *apiserver) authenticationConfig() map[string]any {
	list := func(names []string) string {
		text, err := json.Marshal(names)
		if err != nil {
			a.t.Error(err)
		}
		return string(text)
	}
	names := cmp.Or(a.publishes, a.headers)
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": authenticationConfig, "namespace": "kube-system", "resourceVersion": "1"},
		"data": map[string]string{
			"requestheader-client-ca-file": "a certificate", "requestheader-username-headers": list(names.user), "requestheader-uid-headers": list(names.uid),
			"requestheader-group-headers": list(names.group), "requestheader-extra-headers-prefix": list(names.extra),
		},
	}
}

// wait waits, without the lock, until the caller leaves or the test ends.
func (a *apiserver) wait(r *http.Request) {
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case <-r.Context().Done():
	case <-a.t.Context().Done():
	}
}

func (a *apiserver) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Served-By", a.name)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	a.stream(w, r, a.events)
}

// stream sends events, without the lock, until the caller leaves or the test ends.
func (a *apiserver) stream(w http.ResponseWriter, r *http.Request, events chan string) {
	a.mu.Unlock()
	defer a.mu.Lock()
	for {
		select {
		case event := <-events:
			fmt.Fprintln(w, event)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		case <-a.t.Context().Done():
			return
		}
	}
}
