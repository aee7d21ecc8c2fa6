package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// definition is a definition in etcd.
type definition struct {
	scenario.Definition
	created  time.Time // by the wall clock; a change of the definition does not change it
	accepted names
	// established is true once all its names were accepted. It stays true. No server serves a custom
	// resource before. An aggregated API has no names of its own, so it is always established.
	established bool
	stored      []string // versions in which etcd may hold objects; none of them can be dropped
}

// names are the names of a custom resource. Resources (plural, singular and short names) and kinds
// have one name space each in a group. Categories are not exclusive, and built-in resources do not
// count. Source: calculateNamesAndConditions in k8s.io/apiextensions-apiserver,
// pkg/controller/status/naming_controller.go.
type names struct {
	resource string // plural and singular
	short    []string
	kind     string // with its list
}

func (n names) hasResource(name string) bool {
	return name != "" && (n.resource == name || slices.Contains(n.short, name))
}

func (n names) hasKind(kind string) bool {
	return kind != "" && (n.kind == kind || n.kind != "" && (n.kind+"List" == kind || n.kind == kind+"List"))
}

// accept gives a definition the names that it requests, unless other definitions of its group have
// them. It returns why a name is refused, or "" if all are accepted.
func (d *definition) accept(all []definition) (refused string) {
	taken := func(has func(names) bool) bool {
		return slices.ContainsFunc(all, func(o definition) bool {
			return !o.Aggregated && o.Group == d.Group && o.Resource != d.Resource && has(o.accepted)
		})
	}
	refuse := func(name string) { refused = cmp.Or(refused, fmt.Sprintf("%q is already in use", name)) }
	switch {
	case d.accepted.resource == d.Resource:
	case taken(func(n names) bool { return n.hasResource(d.Resource) }):
		refuse(d.Resource)
	default:
		d.accepted.resource = d.Resource
	}
	free := true
	for _, short := range d.ShortNames {
		if !slices.Contains(d.accepted.short, short) && taken(func(n names) bool { return n.hasResource(short) }) {
			refuse(short)
			free = false
		}
	}
	if free {
		d.accepted.short = d.ShortNames
	}
	switch kind := d.KindName(); {
	case d.accepted.kind == kind:
	case taken(func(n names) bool { return n.hasKind(kind) || n.hasKind(kind+"List") }):
		refuse(kind)
	default:
		d.accepted.kind = kind
	}
	d.established = d.established || refused == ""
	return refused
}

// apply creates a definition at a time, or changes it, and returns what etcd holds then. The error
// says why the control plane refuses it.
func apply(all []definition, d scenario.Definition, at time.Time) ([]definition, error) {
	next := definition{Definition: d, created: at.Truncate(time.Second), established: d.Aggregated}
	all = slices.Clone(all)
	index := slices.IndexFunc(all, func(o definition) bool {
		return o.Group == d.Group && o.Resource == d.Resource && o.Aggregated == d.Aggregated
	})
	if index >= 0 {
		next = all[index]
		next.Definition = d
	}
	if d.Aggregated {
		return put(all, index, next), nil
	}
	for _, v := range next.stored {
		if v != d.StorageVersion() && !slices.Contains(d.Versions, v) {
			return all, refuseDefinition(d, fmt.Sprintf("status.storedVersions: %s must remain in spec.versions", v))
		}
	}
	if !slices.Contains(next.stored, d.StorageVersion()) {
		next.stored = append(slices.Clip(next.stored), d.StorageVersion())
	}
	why := next.accept(all)
	all = put(all, index, next)
	if !next.established {
		return all, refuseDefinition(d, why)
	}
	return all, nil
}

func put(all []definition, at int, d definition) []definition {
	if at < 0 {
		return append(all, d)
	}
	all[at] = d
	return all
}

func refuseDefinition(d scenario.Definition, why string) error {
	return &scenario.RefusedStep{Err: fmt.Errorf("the control plane refuses %s: %s", d, why)}
}

// remove deletes a definition. Definitions of its group get the names that it had.
func remove(all []definition, d scenario.Definition) []definition {
	all = slices.DeleteFunc(slices.Clone(all), func(o definition) bool {
		return o.Group == d.Group && o.Resource == d.Resource && o.Aggregated == d.Aggregated
	})
	for i := range all {
		if all[i].Group == d.Group && !all[i].Aggregated {
			all[i].accept(all)
		}
	}
	return all
}

// equal reports whether two definitions are the same for servers.
func (d definition) equal(o definition) bool {
	return d.Group == o.Group && d.Resource == o.Resource && d.Aggregated == o.Aggregated && d.established == o.established &&
		d.Preferred == o.Preferred &&
		d.accepted.kind == o.accepted.kind && slices.Equal(d.Versions, o.Versions) && slices.Equal(d.accepted.short, o.accepted.short) &&
		slices.Equal(d.Categories, o.Categories)
}
