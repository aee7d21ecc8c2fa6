package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	requests "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// patience is how long the cache may take to sync, and the controller to reach its end after that.
const patience = 15 * time.Second

// end is what a controller decides about the object as its cache has it: nil if it is not there.
// done ends the manager.
type end func(ctx context.Context, c client.Client, object *unstructured.Unstructured) (done bool, err error)

// manage runs a manager whose one controller calls decide for each change of the object. begin is
// called once the cache has synced; nil does nothing.
func manage(ctx context.Context, cfg *rest.Config, o about, begin func(context.Context, client.Client) error, decide end) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	ctrl.SetLogger(logr.Discard())
	m, err := manager.New(cfg, manager.Options{
		Metrics:    metrics.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{CacheSyncTimeout: patience},
	})
	if err != nil {
		return fmt.Errorf("make a manager: %w", err)
	}
	var mu sync.Mutex
	var last error
	done := false
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		last = err
	}
	kind := func() *unstructured.Unstructured {
		u := new(unstructured.Unstructured)
		u.SetGroupVersionKind(o.kind)
		return u
	}
	reconciler := requests.Func(func(ctx context.Context, _ requests.Request) (requests.Result, error) {
		object := kind()
		switch err := m.GetClient().Get(ctx, o.NamespacedName, object); {
		case apierrors.IsNotFound(err):
			object = nil
		case err != nil:
			note(fmt.Errorf("read the cache: %w", err))
			return requests.Result{}, err
		}
		enough, err := decide(ctx, m.GetClient(), object)
		note(err)
		if enough {
			mu.Lock()
			done = true
			mu.Unlock()
			cancel()
		}
		return requests.Result{}, err
	})
	only := predicate.NewPredicateFuncs(func(object client.Object) bool { return client.ObjectKeyFromObject(object) == o.NamespacedName })
	if err := builder.ControllerManagedBy(m).Named("skewproof").For(kind(), builder.WithPredicates(only)).Complete(reconciler); err != nil {
		return fmt.Errorf("make a controller: %w", err)
	}
	if begin != nil {
		if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if !m.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the cache did not sync")
			}
			return begin(ctx, m.GetClient())
		})); err != nil {
			return err
		}
	}
	err = m.Start(ctx)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case done:
		return nil
	case err != nil:
		return fmt.Errorf("run the manager: %w", err)
	case last != nil:
		return fmt.Errorf("the controller did not reach its end within %s: %w", 2*patience, last)
	}
	return fmt.Errorf("the controller did not reach its end within %s", 2*patience)
}
