package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// fieldsFolder holds, beside the documents, the fields in which two versions differ: one file for
// each pair, as vOLD-vNEW.json.
const fieldsFolder = "fields"

// ErrNoFields is wrapped by errors about pairs of releases whose fields are not compared.
var ErrNoFields = errors.New("their fields are not recorded")

// FieldTable has the fields in which the kinds that two releases both serve by default differ. Each
// field was sent to a server of each release, in an object that is as small as possible.
type FieldTable struct {
	From   string      `json:"from"` // the older release
	To     string      `json:"to"`
	Counts FieldCounts `json:"counts"`
	// GatesTried are the feature gates of To that were switched, in the hope that a difference
	// vanishes: those whose default differs between the two releases. Null means that nothing was
	// tried, and then no entry has a gate.
	GatesTried []string `json:"gatesTried"`
	// Fields are in the order of resources in discovery, then of paths.
	Fields []FieldSkew `json:"fields"`
	// RefusedAlike and NotTried are the paths that say nothing, with the reason: by resource
	// ("apps/v1/deployments"), and then by path.
	RefusedAlike map[string]map[string]string `json:"refusedAlike,omitempty"`
	NotTried     map[string]map[string]string `json:"notTried,omitempty"`
}

// FieldCounts are the numbers of paths in all kinds and subresources. A path that says nothing at
// all in any object that was tried is either refused alike or not tried, and is not judged. Paths
// below one that both releases forbid, or that a subresource does not write, are not counted.
type FieldCounts struct {
	Kinds        int `json:"kinds"` // group, version and kind
	Subresources int `json:"subresources"`
	Judged       int `json:"judged"`
	RefusedAlike int `json:"refusedAlike"`
	NotTried     int `json:"notTried"`
	// Changed are the paths that were changed in an object that exists.
	Changed int `json:"changed"`
}

// FieldSkew is a field that two releases treat differently.
type FieldSkew struct {
	history.GVR        // the resource of a subresource is such as "pods/status"
	Kind        string `json:"kind"`
	// Path leads to the field in an object, such as "spec.template.spec.volumes[*].name". "[*]" is
	// an item of a list, or a value of a map.
	Path string `json:"path"`
	// Values are the values for which the releases differ. It is empty if they differ for each
	// value that was tried. FieldAbsent, FieldZero and FieldOne stand for values of the field's
	// type; every other text is the value itself, such as a member of an enumeration.
	Values []string `json:"values,omitempty"`
	// Changed means that both releases store the field in a new object, and differ where it is changed
	// in an object that exists.
	Changed bool        `json:"changed,omitempty"`
	Older   FieldSide   `json:"older"`
	Newer   FieldSide   `json:"newer"`
	Update  FieldFate   `json:"update,omitempty"`
	Gates   []FieldGate `json:"gates,omitempty"`
	// Emulated means that the difference vanishes if the newer server emulates the older minor
	// version.
	Emulated bool `json:"emulated,omitempty"`
	// Copied means that the path is inside a template, which controllers copy into objects.
	Copied bool `json:"copied,omitempty"`
}

// Sides returns what both releases do, the older one first.
func (f *FieldSkew) Sides() []*FieldSide { return []*FieldSide{&f.Older, &f.Newer} }

// GateNames are the feature gates that had to be switched for the difference to vanish.
func (f *FieldSkew) GateNames() (names []string) {
	for _, g := range f.Gates {
		names = append(append(names, g.Name), g.With...)
	}
	return names
}

// OnlyNewerStores reports whether the older release drops the field, which the newer one keeps.
func (f FieldSkew) OnlyNewerStores() bool {
	return f.Older.Outcome == FieldDropped && f.Newer.Outcome.Stores()
}

// These are values of a field that depend on its type.
const (
	FieldAbsent = "(absent)"
	FieldZero   = "(zero)" // false, 0, "", {} or []
	FieldOne    = "(one)"  // true, a small number, a short text, a smallest object, a list of one item
)

// FieldSide is what one release does when an object with the field is created or, if that is what
// the entry is about, changed.
type FieldSide struct {
	Outcome FieldOutcome `json:"outcome"`
	// Unknown means that the OpenAPI document of the release does not have the path. A release that
	// knows a field and drops it is silent, even with --validate=strict.
	Unknown bool `json:"unknown,omitempty"`
	// Owned means that the release drops the field, and yet names an owner of it in managedFields.
	Owned bool `json:"owned,omitempty"`
	// Says is the warning or the refusal, for people.
	Says string `json:"says,omitempty"`
	// Stored is the value that the release answers, where that is not the value that it was sent.
	Stored json.RawMessage `json:"stored,omitempty"`
	// Elsewhere are the paths beside this field that only this release's answer has, or has with
	// another value.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// String says what the release does.
func (s FieldSide) String() string {
	text := string(s.Outcome)
	if len(s.Stored) > 0 {
		text += " to " + string(s.Stored)
	}
	if s.Owned {
		text += ", and yet owned in managedFields"
	}
	if len(s.Elsewhere) > 0 {
		text += ", with its own " + strings.Join(s.Elsewhere, ", ")
	}
	return text
}

// FieldOutcome is what a release does with a field on create.
type FieldOutcome string

// Stores reports whether the release stores the field, with any value.
func (o FieldOutcome) Stores() bool {
	return o == FieldStored || o == FieldDefaulted || o == FieldWarned
}

// These are the outcomes.
const (
	FieldStored    FieldOutcome = "stored"    // as it was sent, or, without a value, absent
	FieldDropped   FieldOutcome = "dropped"   // the object is accepted without it
	FieldRefused   FieldOutcome = "refused"   // the object is not accepted
	FieldDefaulted FieldOutcome = "defaulted" // it is stored with another value, or values elsewhere differ
	FieldWarned    FieldOutcome = "warned"    // it is stored, with a warning
)

// FieldFate is what becomes of a field that the newer release stored when the object is read and
// written back through the older one. It is empty if that was not tried.
type FieldFate string

// These are the fates.
const (
	FateKept    FieldFate = "kept"
	FateLost    FieldFate = "lost"
	FateRefused FieldFate = "refused" // the older release does not accept what it served
)

// FieldGate is a feature gate with which a difference vanishes: with the gate switched off at the
// newer release, or, if it is locked there, switched on at the older one.
type FieldGate struct {
	Name   string `json:"name"`
	Locked bool   `json:"locked,omitempty"`
	// With are gates that had to be switched together with it, because they depend on it.
	With []string `json:"with,omitempty"`
}

// Fields returns the fields in which two releases differ: from the directories in their order, else
// from this repository. If one of the releases is not recorded with the other, the nearest patch of
// its minor version stands in: the table names it. The error wraps [ErrNoFields] if no pair of
// these minor versions is recorded.
func Fields(from, to string, directories ...string) (table FieldTable, err error) {
	found := files(fieldsFolder, directories)
	pairs := map[string][]string{}
	for name := range found {
		if older, newer, ok := strings.Cut(name, "-v"); ok && semver.MajorMinor("v"+newer) == semver.MajorMinor(to) {
			pairs[older] = append(pairs[older], "v"+newer)
		}
	}
	older := Nearest(from, slices.Collect(maps.Keys(pairs)))
	newer := Nearest(to, pairs[older])
	if newer == "" {
		return FieldTable{}, fmt.Errorf("%s and %s: %w", from, to, ErrNoFields)
	}
	name := older + "-" + newer
	body, err := fs.ReadFile(found[name], fieldsFolder+"/"+name+".json")
	if err == nil {
		err = json.Unmarshal(body, &table)
	}
	if err == nil && (table.From != older || table.To != newer || table.Counts.Judged == 0) {
		err = fmt.Errorf("it has %d paths of %q and %q", table.Counts.Judged, table.From, table.To)
	}
	if err != nil {
		return FieldTable{}, fmt.Errorf("read the fields of %s and %s: %w", older, newer, err)
	}
	return table, nil
}

// StandsIn says that the recording of another patch stands in for something that is not recorded.
func StandsIn(what, nearest, command string) string {
	return fmt.Sprintf("%s is not recorded. The nearest recorded patch, %s, stands in for it. `%s` records it.", what, nearest, command)
}

// WriteFields leaves a table in a directory.
func WriteFields(dir string, table FieldTable) error {
	body, err := json.MarshalIndent(table, "", " ")
	if err != nil {
		return fmt.Errorf("write a recording: %w", err)
	}
	return write(dir, fieldsFolder, table.From+"-"+table.To, append(body, '\n'))
}
