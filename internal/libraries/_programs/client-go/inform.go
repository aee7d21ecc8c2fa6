package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// patience is how long an informer or a watch may take to tell what is waited for.
const patience = 15 * time.Second

// inform runs a dynamic informer until it tells of an event about an object.
func inform(ctx context.Context, config *rest.Config, words []string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	gvr, err := parseResource(words[0])
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	return await(ctx, factory.ForResource(gvr).Informer(), "", words[1], words[2])
}

// informMetadata does the same with an informer that reads nothing but metadata, as the garbage
// collector does.
func informMetadata(ctx context.Context, config *rest.Config, words []string) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	gvr, err := parseResource(words[0])
	if err != nil {
		return err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	return await(ctx, factory.ForResource(gvr).Informer(), "", words[1], words[2])
}

// informTyped does the same with an informer of ConfigMaps.
func informTyped(ctx context.Context, config *rest.Config, words []string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return await(ctx, informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer(), words[0], words[1], words[2])
}

// await runs an informer, prints what it tells of one object, and returns after the event.
func await(ctx context.Context, informer cache.SharedIndexInformer, namespace, name, event string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var trouble atomic.Pointer[error]
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { trouble.Store(&err) }); err != nil {
		return err
	}
	told := make(chan struct{})
	over := false // handlers are called by one goroutine
	tell := func(what string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		o, err := meta.Accessor(object)
		if err != nil || o.GetName() != name || o.GetNamespace() != namespace || over {
			return
		}
		fmt.Println(what, name, o.GetLabels()[state])
		if over = what == event; over {
			close(told)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { tell("ADDED", o) }, UpdateFunc: func(_, o any) { tell("UPDATED", o) },
		DeleteFunc: func(o any) { tell("DELETED", o) },
	}); err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		if err := trouble.Load(); err != nil {
			return fmt.Errorf("inform: no %s within %s: %w", event, patience, *err)
		}
		return fmt.Errorf("inform: no %s within %s; synced: %t", event, patience, informer.HasSynced())
	}
}
