package extension

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const maxObject = 1 << 20

// store has the objects of all resources. Each object is served in all versions. The zero value is
// empty. A store is safe for concurrent use.
type store struct {
	mu       sync.Mutex
	revision int
	objects  map[schema.GroupResource]map[string]*unstructured.Unstructured
}

func (s *store) serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) {
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	switch info.Verb {
	case "list":
		list := s.list(gr, gv)
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			answer(w, http.StatusOK, table(list))
			return
		}
		answer(w, http.StatusOK, list)
	case "watch":
		s.watch(w, r, gv, info.Resource)
	case "create":
		s.create(w, r, gr, gv)
	default: // get, delete
		s.mu.Lock()
		object := s.objects[gr][info.Name]
		if object != nil && info.Verb == "delete" && !dryRun(r) {
			delete(s.objects[gr], info.Name)
			s.revision++
		}
		s.mu.Unlock()
		if object == nil {
			fail(w, apierrors.NewNotFound(gr, info.Name))
			return
		}
		answer(w, http.StatusOK, as(object, gv, info.Resource))
	}
}

func (s *store) list(gr schema.GroupResource, gv schema.GroupVersion) *unstructured.UnstructuredList {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{}}
	all.SetAPIVersion(gv.String())
	all.SetKind(gr.Resource + "List")
	all.SetResourceVersion(strconv.Itoa(s.revision))
	for _, name := range slices.Sorted(maps.Keys(s.objects[gr])) {
		all.Items = append(all.Items, *as(s.objects[gr][name], gv, gr.Resource))
	}
	return all
}

// table is a list as kubectl asks for it. Apiservers that are made with k8s.io/apiserver answer so.
func table(of *unstructured.UnstructuredList) *metav1.Table {
	t := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"},
		ListMeta:          metav1.ListMeta{ResourceVersion: of.GetResourceVersion()},
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}},
		Rows:              []metav1.TableRow{},
	}
	for _, item := range of.Items {
		t.Rows = append(t.Rows, metav1.TableRow{
			Cells: []any{item.GetName()},
			Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"},
				ObjectMeta: metav1.ObjectMeta{Name: item.GetName(), ResourceVersion: item.GetResourceVersion()},
			}},
		})
	}
	return t
}

func (s *store) create(w http.ResponseWriter, r *http.Request, gr schema.GroupResource, gv schema.GroupVersion) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxObject))
	var object unstructured.Unstructured
	if err == nil {
		err = json.Unmarshal(body, &object.Object)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(fmt.Sprintf("read the object to create: %v", err)))
		return
	}
	if object.GetName() == "" {
		fail(w, apierrors.NewBadRequest("the object to create has no name"))
		return
	}
	s.mu.Lock()
	exists := s.objects[gr][object.GetName()] != nil
	if !exists && !dryRun(r) {
		s.revision++
		object.SetResourceVersion(strconv.Itoa(s.revision))
		if s.objects == nil {
			s.objects = map[schema.GroupResource]map[string]*unstructured.Unstructured{}
		}
		if s.objects[gr] == nil {
			s.objects[gr] = map[string]*unstructured.Unstructured{}
		}
		s.objects[gr][object.GetName()] = &object
	}
	s.mu.Unlock()
	if exists {
		fail(w, apierrors.NewAlreadyExists(gr, object.GetName()))
		return
	}
	answer(w, http.StatusCreated, as(&object, gv, gr.Resource))
}

// watch keeps the stream open for timeoutSeconds, and ends it with a bookmark. It sends no objects.
func (s *store) watch(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, kind string) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil || seconds < 1 {
		seconds = 60
	}
	w.Header().Set("Content-Type", "application/json;stream=watch")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	over := time.NewTimer(time.Duration(seconds) * time.Second)
	defer over.Stop()
	select {
	case <-over.C:
	case <-r.Context().Done():
		return
	}
	s.mu.Lock()
	revision := s.revision
	s.mu.Unlock()
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d"}}}`+"\n", gv, kind, revision)
}

func as(object *unstructured.Unstructured, gv schema.GroupVersion, kind string) *unstructured.Unstructured {
	out := object.DeepCopy()
	out.SetAPIVersion(gv.String())
	out.SetKind(kind)
	return out
}

func dryRun(r *http.Request) bool { return r.URL.Query().Get("dryRun") == "All" }
