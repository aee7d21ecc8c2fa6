package informers

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/internal/history"
)

// store is the store of a reflector, and records what the reflector puts into it. It does not keep
// the objects, because the records say which objects an informer has at any time.
type store struct {
	recorder Recorder
	is       history.Delivery // the fields that all records of the informer have in common

	mu    sync.Mutex
	told  int
	ended bool
}

var (
	_ cache.ReflectorStore         = (*store)(nil)
	_ cache.ReflectorBookmarkStore = (*store)(nil)
)

// Add implements [cache.ReflectorStore].
func (s *store) Add(o any) error { return s.event(history.DeliveryAdded, o) }

// Update implements [cache.ReflectorStore].
func (s *store) Update(o any) error { return s.event(history.DeliveryModified, o) }

// Delete implements [cache.ReflectorStore].
func (s *store) Delete(o any) error { return s.event(history.DeliveryDeleted, o) }

// Replace implements [cache.ReflectorStore].
func (s *store) Replace(list []any, resourceVersion string) error {
	d := history.Delivery{Kind: history.DeliveryListed, ResourceVersion: resourceVersion}
	for _, o := range list {
		v, err := versionOf(o)
		if err != nil {
			return err
		}
		d.Objects = append(d.Objects, v)
	}
	s.tell(d)
	return nil
}

// Bookmark implements [cache.ReflectorBookmarkStore].
func (s *store) Bookmark(resourceVersion string) error {
	s.tell(history.Delivery{Kind: history.DeliveryBookmark, ResourceVersion: resourceVersion})
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*store) Resync() error { return nil }

func (s *store) event(kind history.DeliveryKind, o any) error {
	v, err := versionOf(o)
	if err != nil {
		return err
	}
	s.tell(history.Delivery{Kind: kind, ResourceVersion: v.ResourceVersion, Objects: []history.Version{v}})
	return nil
}

// failed records the reason of a failed request. It does nothing if the request succeeded.
func (s *store) failed(err error) {
	if err != nil {
		s.tell(history.Delivery{Kind: history.DeliveryFailed, Status: statusOf(err), Message: err.Error()})
	}
}

// end records the end of the informer. After that it records nothing more.
func (s *store) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(history.Delivery{Kind: history.DeliveryEnded})
	s.ended = true
}

// tell records a delivery. The caller gives only the fields that differ.
func (s *store) tell(d history.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(d)
}

func (s *store) tellLocked(d history.Delivery) {
	if s.ended {
		return
	}
	s.told++
	d.Informer, d.Server, d.GVR = s.is.Informer, s.is.Server, s.is.GVR
	d.Index, d.At = s.told, s.recorder.Now()
	s.recorder.Delivery(d)
}

func versionOf(o any) (history.Version, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return history.Version{}, fmt.Errorf("record an object that an informer got: %w", err)
	}
	return history.Version{Namespace: m.GetNamespace(), Name: m.GetName(), UID: string(m.GetUID()),
		ResourceVersion: m.GetResourceVersion()}, nil
}
