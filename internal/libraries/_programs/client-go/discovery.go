package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// discover prints every resource that aggregated discovery lists.
func discover(_ context.Context, config *rest.Config, _ []string) error {
	return printResources(config, false)
}

// discoverLegacy does the same by one request for each group version, as clients did before 1.26.
func discoverLegacy(_ context.Context, config *rest.Config, _ []string) error {
	return printResources(config, true)
}

func printResources(config *rest.Config, legacy bool) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	client.UseLegacyDiscovery = legacy
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			fmt.Println(list.GroupVersion, r.Name)
		}
	}
	return nil
}

// mapKind prints the resource of a kind, as a RESTMapper finds it by discovery.
func mapKind(_ context.Context, config *rest.Config, words []string) error {
	kind, _ := schema.ParseKindArg(words[0])
	if kind == nil {
		return fmt.Errorf("%q is no KIND.VERSION.GROUP", words[0])
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	fmt.Println(mapping.Resource.GroupVersion(), mapping.Resource.Resource, mapping.Scope.Name())
	return nil
}
