package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// Definition is a custom resource, or a resource of an aggregated API. Its group and versions may
// be those of resources that some servers have built in.
type Definition struct {
	Group    string   `json:"group"`
	Resource string   `json:"resource"` // plural and singular name
	Versions []string `json:"versions"` // all served versions of the resource
	// Aggregated is true for an APIService with a Service, false for a CustomResourceDefinition.
	Aggregated bool `json:"aggregated,omitempty"`

	// Kind is the kind of a custom resource. Empty: the name of the resource.
	Kind string `json:"kind,omitempty"`
	// ShortNames and Categories are further names of a custom resource.
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	// Storage is the served version in which etcd keeps a custom resource, which then can never be
	// dropped. Empty: [StoredVersion].
	Storage string `json:"storage,omitempty"`
	// Preferred is the version of an aggregated API that discovery lists first. Empty: the newest.
	Preferred string `json:"preferred,omitempty"`
}

// StoredVersion is the storage version of custom resources without another. It is never served, so
// that all served versions can be removed: the API refuses to remove a storage version.
const StoredVersion = "stored"

// KindName returns the kind of the resource.
func (d Definition) KindName() string { return cmp.Or(d.Kind, d.Resource) }

// StorageVersion returns the version in which etcd keeps the resource.
func (d Definition) StorageVersion() string { return cmp.Or(d.Storage, StoredVersion) }

// String returns, for example, "widgets.example.com (v1, v2)". Definitions that differ have
// different strings.
func (d Definition) String() string {
	s := fmt.Sprintf("%s.%s (%s)", d.Resource, d.Group, strings.Join(d.Versions, ", "))
	if d.Aggregated {
		s += ", aggregated"
	}
	for _, part := range []struct{ words, value string }{
		{"kind ", d.Kind}, {"short name ", strings.Join(d.ShortNames, " ")}, {"category ", strings.Join(d.Categories, " ")},
		{"stored as ", d.Storage},
		{"preferring ", d.Preferred},
	} {
		if part.value != "" {
			s += ", " + part.words + part.value
		}
	}
	return s
}

// Defines is the definition that the step creates, changes or deletes, for the history. It is nil
// for any other step.
func (s Step) Defines() *history.Definition {
	if s.Definition == nil {
		return nil
	}
	d := &history.Definition{Group: s.Definition.Group, Resource: s.Definition.Resource, Aggregated: s.Definition.Aggregated}
	switch {
	case s.Action == Undefine:
		return d
	case s.Action != Define:
		return nil
	}
	d.Versions = slices.Clone(s.Definition.Versions)
	if stored := s.Definition.StorageVersion(); !s.Definition.Aggregated && !slices.Contains(d.Versions, stored) {
		d.Versions = append(d.Versions, stored)
	}
	return d
}

func (d *Definition) validate() error {
	switch {
	case d == nil:
		return errors.New("define: no definition given")
	case !strings.Contains(d.Group, "."):
		return fmt.Errorf("define %s: the group %q of a custom resource needs a dot", d, d.Group)
	case d.Resource == "" || len(d.Versions) == 0:
		return fmt.Errorf("define %s: a resource and its versions are needed", d)
	case d.Aggregated && (d.Kind != "" || len(d.ShortNames) > 0 || len(d.Categories) > 0 || d.Storage != ""):
		return fmt.Errorf("define %s: an aggregated API takes its names from its server, and no others", d)
	case d.Preferred != "" && !d.Aggregated:
		return fmt.Errorf("define %s: a custom resource prefers no version: kube-apiservers order its versions by their names", d)
	}
	for _, v := range []string{d.Storage, d.Preferred} {
		if v != "" && !slices.Contains(d.Versions, v) {
			return fmt.Errorf("define %s: %q is none of its versions", d, v)
		}
	}
	return nil
}
