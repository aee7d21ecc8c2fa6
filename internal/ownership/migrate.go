package ownership

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/scenario"
)

// migration is the resource by which clients request a migration of storage versions. Releases
// serve it in the first of these versions, which is the newest, or in a later one.
var migration = struct {
	group, resource, kind string
	versions              []string
}{"storagemigration.k8s.io", "storageversionmigrations", "StorageVersionMigration", []string{"v1", "v1beta1"}}

// Migrate implements [step.Objects].
func (c *Objects) Migrate(ctx context.Context, o scenario.Objects, through string) error {
	client, err := c.client(through)
	if err != nil {
		return fmt.Errorf("prepare to migrate %s through %s: %w", o.Name, through, err)
	}
	version, ok := c.migrationVersion()
	if !ok {
		return fmt.Errorf("migrate the resources of %s: no ready server serves %s.%s: choose --to v1.37.1 or newer", o.Name, migration.resource,
			migration.group)
	}
	gvr := schema.GroupVersionResource{Group: migration.group, Version: version, Resource: migration.resource}
	for _, of := range c.owners[o.Name] {
		if of.GVR.Resource == migration.resource {
			continue
		}
		wanted := migrationOf(version, o.Name, of)
		attempt, cancel := context.WithTimeout(ctx, patience)
		_, err := client.Resource(gvr).Create(attempt, wanted, metav1.CreateOptions{})
		cancel()
		if err == nil || apierrors.IsAlreadyExists(err) {
			continue
		}
		// The server refuses a resource that only another server serves. The migration is requested
		// anyway.
		err = c.through(ctx, gvr.GroupVersion().String(), gvr.Resource, func(ctx context.Context, client dynamic.Interface) error {
			_, err := client.Resource(gvr).Create(ctx, wanted, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // another server created it before its answer was lost
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("create %s %s: %w", migration.kind, wanted.GetName(), err)
		}
	}
	return nil
}

// migrationVersion returns the newest version in which a ready server serves migrations.
func (c *Objects) migrationVersion() (string, bool) {
	documents := c.served()
	for _, version := range migration.versions {
		for _, server := range c.servers {
			if d, ok := documents[server]; ok && serves(d, migration.group+"/"+version, migration.resource) {
				return version, true
			}
		}
	}
	return "", false
}

func migrationOf(version, name string, of owner) *unstructured.Unstructured {
	wanted := object(migration.group+"/"+version, migration.kind, "", name+"-"+of.GVR.Resource)
	wanted.Object["spec"] = map[string]any{"resource": map[string]any{"group": of.Group, "resource": of.GVR.Resource}}
	return wanted
}

// Migrated implements [step.Objects].
func (c *Objects) Migrated(ctx context.Context, o scenario.Objects) (bool, error) {
	version, ok := c.migrationVersion()
	if !ok {
		return false, nil
	}
	gvr := schema.GroupVersionResource{Group: migration.group, Version: version, Resource: migration.resource}
	for _, of := range c.owners[o.Name] {
		if of.GVR.Resource == migration.resource {
			continue
		}
		ended := false
		err := c.through(ctx, gvr.GroupVersion().String(), gvr.Resource, func(ctx context.Context, client dynamic.Interface) error {
			got, err := client.Resource(gvr).Get(ctx, migrationOf(version, o.Name, of).GetName(), metav1.GetOptions{})
			if err == nil {
				ended = endedMigration(got)
			}
			return err
		})
		if err != nil || !ended {
			return false, err
		}
	}
	return true, nil
}

// endedMigration reports whether a migration has succeeded or failed.
func endedMigration(m *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["status"] == "True" && (condition["type"] == "Succeeded" || condition["type"] == "Failed")
	})
}
