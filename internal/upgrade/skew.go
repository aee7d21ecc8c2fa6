package upgrade

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/recorded"
)

// addSkew adds what differs besides kinds: fields, what controllers create, and what is permitted.
// It returns notes for the reader.
func addSkew(p *reports.UpgradePlan, flags Flags) (notes []string) {
	if p.From == p.To {
		return nil
	}
	directories := flags.Recordings
	lacks := func(what, command string, err, none error) bool {
		if errors.Is(err, none) {
			notes = append(notes, fmt.Sprintf("It is not recorded %s. `skewproof plan %s` records it.", what, command))
		} else if err != nil {
			notes = append(notes, fmt.Sprintf("Not checked: %s: %v", what, err))
		}
		return err != nil
	}
	standIns := map[string][]string{} // what of another patch stands in for a version
	standsIn := func(what, version, of string) {
		if of != version {
			standIns[version] = append(standIns[version], what+" ("+of+")")
		}
	}
	table, err := recorded.Fields(p.From, p.To, directories...)
	if !lacks(fmt.Sprintf("which fields %s and %s treat differently", p.From, p.To), fmt.Sprintf("--record-fields --from %s --to %s", p.From, p.To),
		err, recorded.ErrNoFields) {
		standsIn("fields", p.From, table.From)
		standsIn("fields", p.To, table.To)
	}
	if from, to := decide(p.From, flags), decide(p.To, flags); from.Starts && to.Starts {
		table.Fields = slices.DeleteFunc(table.Fields, func(f recorded.FieldSkew) bool { // these flags make it vanish
			return f.Emulated && from.Emulates == to.Emulates && to.Emulates == semver.MajorMinor(p.From) ||
				slices.ContainsFunc(f.Gates, func(g recorded.FieldGate) bool {
					return g.Locked && from.Gate(g.Name) || !g.Locked && to.Off(g.Name)
				})
		})
	}
	p.FieldHarms = fieldHarms(table, p.From, p.To)
	p.Fields = slices.DeleteFunc(table.Fields, func(f recorded.FieldSkew) bool { // one version warns, because it does not know the field
		return f.Older.Outcome == recorded.FieldDropped && f.Newer.Outcome == recorded.FieldDropped
	})
	var sides [2]*recorded.Behaviour
	for i, version := range []string{p.From, p.To} {
		var of string
		sides[i], of, err = recorded.BehaviourOf(version, directories...)
		if !lacks(fmt.Sprintf("what controllers of %s create, and what it permits", version), "--record "+version, err, recorded.ErrNoBehaviour) {
			standsIn("rights and controllers", version, of)
		}
		if all := standIns[version]; len(all) > 0 {
			notes = append(notes, fmt.Sprintf("Recorded of another patch than %s: %s.", version, strings.Join(all, ", ")))
		}
	}
	older, newer := sides[0], sides[1]
	if older == nil || newer == nil {
		return notes
	}
	p.Created, p.Permissions = onlyCreated(older, newer), permissions(older, newer)
	for i, all := range [][]reports.PlanResource{p.Appears, p.Vanishes} {
		has, lacks := sides[1-i], sides[i]
		for n, r := range all {
			kind := recorded.Kind{Group: r.Group, Resource: r.Resource, Subresource: r.Subresource}
			if has.WasAsked(kind) && lacks.WasAsked(kind) {
				all[n].RefusedNodes = without(has.Allowed(recorded.Node, kind), lacks.Allowed(recorded.Node, kind))
			}
		}
	}
	return notes
}

// harmOrder are the harms of fields, the worst first.
var harmOrder = []string{reports.PlanNeverSettles, reports.PlanStuck, reports.PlanCopied, reports.PlanLost, reports.PlanDropped, reports.PlanRefused, reports.PlanFrozen}

// comparing are the resources whose controllers look for an object that equals the template, and
// make another one if there is none (k8s.io/kubernetes, pkg/controller/deployment/util,
// FindNewReplicaSet). Other controllers compare hashes of the template, which they store beside it.
var comparing = []string{"apps/deployments"}

// harmOf returns the harm of a difference, and whether the newer version is the one that does it;
// "" if both versions accept the same, and keep it.
func harmOf(f recorded.FieldSkew) (harm string, newer bool) {
	nothing := len(f.Values) > 0 && !slices.ContainsFunc(f.Values, func(v string) bool { return v != recorded.FieldAbsent && v != recorded.FieldZero })
	switch {
	case nothing:
		return "", false
	case f.Changed:
		return reports.PlanFrozen, f.Newer.Outcome == recorded.FieldRefused
	case f.OnlyNewerStores() && f.Copied && f.Update == recorded.FateKept:
		if slices.Contains(comparing, f.Group+"/"+f.Resource) {
			return reports.PlanNeverSettles, false
		}
		return reports.PlanCopied, false
	case f.Older.Outcome == recorded.FieldRefused && f.Newer.Outcome.Stores() && f.Copied && f.Update == recorded.FateKept:
		return reports.PlanStuck, false
	case f.Update == recorded.FateLost:
		return reports.PlanLost, false
	case f.OnlyNewerStores():
		return reports.PlanDropped, false
	case f.Newer.Outcome == recorded.FieldDropped && f.Older.Outcome.Stores():
		return reports.PlanDropped, true
	case f.Older.Outcome == recorded.FieldRefused && f.Newer.Outcome.Stores():
		return reports.PlanRefused, false
	case f.Newer.Outcome == recorded.FieldRefused && f.Older.Outcome.Stores():
		return reports.PlanRefused, true
	}
	return "", false
}

// template is the part of a path that leads to the last template in it. What follows is the same in
// all kinds with such a template.
var template = regexp.MustCompile(`^(.*\.)?\w*[tT]emplates?(\[\*\])?\.`)

// fieldHarms returns the fields that can do harm, each once for all kinds that have it.
func fieldHarms(table recorded.FieldTable, from, to string) (all []reports.PlanFieldHarm) {
	by := map[string]int{}
	harmful := map[string]bool{} // resource and path
	for _, f := range table.Fields {
		harm, newer := harmOf(f)
		if harm == "" {
			continue
		}
		harmful[f.GVR.String()+" "+f.Path] = true
		path := template.ReplaceAllString(f.Path, "")
		h := reports.PlanFieldHarm{Path: path, Kinds: []string{f.Resource}, Harm: harm, By: from, Gates: f.GateNames(), Emulated: f.Emulated}
		h.Values = slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool {
			return v == recorded.FieldOne || v == recorded.FieldAbsent || v == recorded.FieldZero
		})
		if newer {
			h.By = to
		}
		if within(f.GVR.String()+" ", f.Path, harmful) {
			continue // it is part of a field that is named already
		}
		i, known := by[path]
		switch {
		case !known:
			by[path] = len(all)
			all = append(all, h)
		case worse(h, all[i]) < 0:
			all[i] = h
		case worse(h, all[i]) == 0 && h.By == all[i].By && !slices.Contains(all[i].Kinds, f.Resource):
			all[i].Kinds = append(all[i].Kinds, f.Resource)
		}
	}
	slices.SortStableFunc(all, func(a, b reports.PlanFieldHarm) int {
		return cmp.Or(worse(a, b), cmp.Compare(strings.Join(a.Gates, ","), strings.Join(b.Gates, ",")))
	})
	return all
}

func worse(a, b reports.PlanFieldHarm) int {
	return cmp.Compare(slices.Index(harmOrder, a.Harm), slices.Index(harmOrder, b.Harm))
}

// within reports whether a path leads into another one that is noted under a prefix.
func within(prefix, path string, noted map[string]bool) bool {
	for i, c := range path {
		if (c == '.' || c == '[') && noted[prefix+path[:i]] {
			return true
		}
	}
	return false
}

// onlyCreated returns what only controllers of the newer version create.
func onlyCreated(older, newer *recorded.Behaviour) (all []recorded.Created) {
	for _, c := range newer.Created {
		before, _ := older.Creates(c.GVR)
		if c.Names = without(c.Names, before.Names); len(c.Names) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// who are the subjects in words.
var who = map[recorded.Subject]string{recorded.Node: "a node", recorded.ServiceAccount: "a service account", recorded.User: "a user"}

// permissions returns what is permitted at one version only, of kinds about which both were asked.
func permissions(older, newer *recorded.Behaviour) (all []reports.PlanPermission) {
	for _, subject := range []recorded.Subject{recorded.Node, recorded.ServiceAccount, recorded.User} {
		for _, kind := range newer.Kinds() {
			if !older.WasAsked(kind) {
				continue
			}
			a, b := older.Allowed(subject, kind), newer.Allowed(subject, kind)
			d := reports.PlanPermission{Who: who[subject], Kind: kind.String(), From: without(a, b), To: without(b, a)}
			if len(d.From)+len(d.To) > 0 {
				all = append(all, d)
			}
		}
	}
	return all
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// emulated returns the flag with which the newer servers behave like the older version; "" if no
// difference in fields was seen to vanish with it, or if they do not start with it.
func emulated(p reports.UpgradePlan, flags Flags) string {
	if !slices.ContainsFunc(p.FieldHarms, func(h reports.PlanFieldHarm) bool { return h.Emulated }) {
		return ""
	}
	minor := strings.TrimPrefix(semver.MajorMinor(p.From), "v")
	if !decide(p.To, flags.With(emulatedVersion, minor)).Starts {
		return ""
	}
	return "`--" + emulatedVersion + "=" + minor + "`"
}
