package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// mostHarms limits the harms of a plan's first screen.
const mostHarms = 3

// harmful returns what can do harm with the flags of the servers, the worst first. Only what is
// served by default counts.
func harmful(known findings.Catalogue, p reports.UpgradePlan, asked reports.PlanProtection, flags Flags) (all []reports.PlanHarm) {
	if !asked.Old.Starts || !asked.New.Starts {
		return []reports.PlanHarm{{What: "A node with such a server loses its kube-apiserver.", Whom: "the whole control plane, node by node", Source: "the reasons above"}}
	}
	appears, vanishes := byDefault(p.Appears), byDefault(p.Vanishes)
	recordings := "what " + p.From + " and " + p.To + " serve, as recorded"
	if gone := unreachable(vanishes); len(gone) > 0 {
		all = append(all, reports.PlanHarm{
			What: fmt.Sprintf("%s serves %s in no version. Their objects stay in etcd, and nobody can read or delete them. Their finalizers are never removed.",
				p.To, kinds(gone, len(gone))),
			Whom: "who has such objects", Source: recordings,
		})
	}
	if len(p.FieldHarms) > 0 {
		all = append(all, fieldHarm(p, flags))
	}
	if open := exposed(p, asked); len(open) > 0 {
		h := reports.PlanHarm{What: "Until the last server is upgraded, " + strings.Join(open, "; ") + ".", Whom: "clients; nothing is deleted", Source: recordings}
		if slices.ContainsFunc(slices.Concat(appears, vanishes), func(r reports.PlanResource) bool { return r.Subresource == "" }) {
			h.What += " The garbage collector takes a 404 for the end of an owner, and deletes the dependents. When a namespace is deleted, objects of such a " +
				"kind can stay in etcd."
			h.Whom, h.Source = "objects of these kinds and their dependents", "docs/controllers.md, finding 12, "+recordings
		}
		all = append(all, h)
	}
	if len(vanishes) > 0 {
		all = append(all, reports.PlanHarm{
			What: "After the upgrade, an ownerReference whose apiVersion has vanished is never resolved: the garbage collector tries again without end, and does not " +
				"delete the dependent.",
			Whom:   "dependents of objects of " + kinds(vanishes, mostKinds),
			Source: recordings + "; k8s.io/kubernetes pkg/controller/garbagecollector, restMappingError",
		})
	}
	if gone := unreachable(p.Vanishes); len(gone) > 0 && len(byDefault(gone)) == 0 {
		all = append(all, reports.PlanHarm{
			What: fmt.Sprintf("%s serves %s in no version. If `--runtime-config` has switched them on, their objects stay in etcd, and nobody can read or delete them.",
				p.To, kinds(gone, len(gone))),
			Whom: "who has such objects", Source: recordings + " with every API on",
		})
	}
	all = append(all, refusedNodes(p)...) // ends with the upgrade; what is above may last
	skew := func(number int) bool {       // not by a server that denies a kind
		return slices.ContainsFunc(known, func(f findings.Finding) bool { return f.Number == number && f.Class == findings.ClassVersionSkew })
	}
	denies := func(f reports.PlanFinding) bool {
		return f.Flags == reports.PlanYourFlags && f.Harms && !skew(f.Number)
	}
	if cases := inCases(p.Findings, denies); cases != "" && len(appears)+len(vanishes) > 0 && len(exposed(p, asked)) == 0 {
		all = append(all, reports.PlanHarm{
			What: "A server answers 404 for a kind that another one serves, " + cases + ". Then the garbage collector deletes dependents of owners of such a kind, and " +
				"objects of such a kind stay in etcd when their namespace is deleted.",
			Whom: "objects of the kinds that only one version serves, and their dependents", Source: "docs/findings.md",
		})
	}
	if cases := inCases(p.Findings, func(f reports.PlanFinding) bool {
		return f.Flags == reports.PlanYourFlags && !f.Harms && f.Condition == conditions[findings.ConditionUpgrade]
	}); cases != "" {
		all = append(all, reports.PlanHarm{What: "Clients get wrong answers, or find no answer, " + cases + ".", Whom: "clients; nothing is deleted", Source: "docs/findings.md"})
	}
	return all[:min(len(all), mostHarms)]
}

// harmWords are what fields do, with %s for the version.
var harmWords = map[string]string{
	reports.PlanNeverSettles: "A workload never settles if its template has a field that %s keeps there, and drops from the objects that controllers create by it: " +
		"they create another one again and again.",
	reports.PlanStuck:   "Controllers cannot create what a workload needs if its template has a field that %s keeps there, and refuses in new objects.",
	reports.PlanCopied:  "What controllers create by a template lacks a field that %s keeps in the template, and drops from new objects.",
	reports.PlanLost:    "Who reads an object at %s and writes it back loses fields of it.",
	reports.PlanDropped: "A server of %s accepts objects without some of their fields, and says nothing.",
	reports.PlanRefused: "A server of %s refuses objects that the other version accepts.",
	reports.PlanFrozen:  "A server of %s refuses changes of objects that the other version accepts.",
}

// fieldHarm is the worst that fields can do, and what prevents it.
func fieldHarm(p reports.UpgradePlan, flags Flags) reports.PlanHarm {
	worst := p.FieldHarms[0]
	h := reports.PlanHarm{
		What: fmt.Sprintf(harmWords[worst.Harm], worst.By),
		Whom: "workloads with these fields", Source: "the fields of " + p.From + " and " + p.To + ", as recorded",
	}
	if worst.Harm == reports.PlanNeverSettles {
		h.Whom += ", etcd and the controllers"
	}
	if worst.Harm != reports.PlanDropped && slices.ContainsFunc(p.FieldHarms, func(h reports.PlanFieldHarm) bool { return h.Harm == reports.PlanDropped }) {
		h.What += " Other fields are dropped in silence."
	}
	var ways, names []string
	if flag := emulated(p, flags); flag != "" {
		ways = append(ways, flag+" at "+p.To+" until the last server is upgraded")
	}
	for _, f := range p.FieldHarms {
		for _, gate := range f.Gates {
			if name := "`" + gate + "`"; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 {
		ways = append(ways, "these feature gates of "+p.To+", switched off: "+listed(names, mostGates))
	}
	h.Prevent = strings.Join(ways, ", or ")
	return h
}

// mostGates limits the feature gates of a sentence.
const mostGates = 4

// refusedNodes is the harm of kinds that one version refuses nodes.
func refusedNodes(p reports.UpgradePlan) (all []reports.PlanHarm) {
	for i, resources := range [][]reports.PlanResource{byDefault(p.Appears), byDefault(p.Vanishes)} {
		whom, refused, does := "nodes that are clients of such a server", []string(nil), []string(nil)
		for _, r := range resources {
			if len(r.RefusedNodes) == 0 {
				continue
			}
			refused = append(refused, "`"+r.Name()+"` ("+strings.Join(r.RefusedNodes, ", ")+")")
			for _, u := range r.Users {
				if u.Who == kubelet && !slices.Contains(does, u.Does) {
					does = append(does, u.Does)
				}
			}
		}
		if len(does) > 0 {
			whom = "the kubelet, which " + strings.Join(does, ", and ") + ", as a client of such a server"
		}
		if len(refused) > 0 {
			all = append(all, reports.PlanHarm{Whom: whom, Source: "what " + p.From + " and " + p.To + " permit, as recorded", What: fmt.Sprintf(
				"%s answers nodes 403 for %s, and decides so before it would pass the request on: no proxy helps.", []string{p.From, p.To}[i], listed(refused, mostKinds))})
		}
	}
	return all
}

// exposed says which servers answer 404 for what only the other version serves.
func exposed(p reports.UpgradePlan, c reports.PlanProtection) (open []string) {
	versions := []string{p.From, p.To}
	for i, lacks := range [][]reports.PlanResource{byDefault(p.Appears), byDefault(p.Vanishes)} {
		if len(lacks) > 0 && !c.Ways[i].Protected {
			open = append(open, fmt.Sprintf("%s answers 404 for %s, which only %s serves", versions[i], kinds(lacks, mostKinds), versions[1-i]))
		}
	}
	return open
}

// unreachable returns the resources that the other version serves in no version.
func unreachable(all []reports.PlanResource) []reports.PlanResource {
	return slices.DeleteFunc(slices.Clone(all), func(r reports.PlanResource) bool { return r.Subresource != "" || len(r.Other) > 0 })
}

// mostKinds limits the names of a sentence.
const mostKinds = 2

// kinds names resources, at most so many of them.
func kinds(all []reports.PlanResource, most int) string {
	var names []string
	for _, r := range all {
		names = append(names, "`"+r.Name()+"`")
	}
	return listed(names, most)
}

// listed joins names, at most so many of them.
func listed(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}

// inCases names findings by their conditions: "in every upgrade (findings 2, 17), in a rollback
// (finding 22)". It is "" for none.
func inCases(all []reports.PlanFinding, is func(reports.PlanFinding) bool) string {
	numbers := map[string][]int{}
	var order []string
	for _, f := range all {
		if is(f) {
			if len(numbers[f.Condition]) == 0 {
				order = append(order, f.Condition)
			}
			numbers[f.Condition] = append(numbers[f.Condition], f.Number)
		}
	}
	for i, condition := range order {
		order[i] = condition + " (" + numbered(numbers[condition]) + ")"
	}
	return strings.Join(order, ", ")
}

// numbered names findings by their numbers: "finding 2", "findings 2, 17".
func numbered(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	if len(words) == 1 {
		return "finding " + words[0]
	}
	return "findings " + strings.Join(words, ", ")
}

// compared compares the servers with and without a proxy that passes requests on in both
// directions, by the harm that there is.
func compared(all findings.Catalogue, p reports.UpgradePlan, flags Flags) (changes []string) {
	asked := p.Protection[0]
	with := protection(p.From, p.To, "", flags.protecting(asked))
	if !with.Ways[0].Protected || !with.Ways[1].Protected || len(p.Appears)+len(p.Vanishes) == 0 || !asked.Old.Starts || !asked.New.Starts {
		return nil
	}
	without := with
	without.Old.PassesOn, without.New.PassesOn, without.Ways[0].Protected, without.Ways[1].Protected = false, false, false, false
	add := func(text, cases string) {
		if cases != "" {
			changes = append(changes, text+cases+".")
		}
	}
	if open := exposed(p, without); len(open) > 0 {
		add("disappears: 404, from the first to the last upgraded server, for kinds that only the other version serves, and with it wrong deletions and "+
			"leftovers while nothing else fails", " (docs/controllers.md)")
	}
	// with the proxy as what was asked for, the findings that only it has are "with your flags"
	found := applying(all, p, with, without)
	both := func(f reports.PlanFinding) bool {
		i := slices.IndexFunc(all, func(g findings.Finding) bool { return g.Number == f.Number })
		return len(serversWith(all[i], p, without)) > 0
	}
	on := func(f reports.PlanFinding) bool { return f.Flags == reports.PlanYourFlags && !both(f) }
	var cases []string
	for _, f := range found {
		if on(f) && f.Harms && !slices.Contains(cases, f.Condition) {
			cases = append(cases, f.Condition)
		}
	}
	add("remains for a time: wrong deletions and leftovers ", strings.Join(cases, ", "))
	add("remains: wrong answers ", inCases(found, func(f reports.PlanFinding) bool { return f.Flags == reports.PlanYourFlags && both(f) }))
	come := slices.DeleteFunc(slices.Clone(found), func(f reports.PlanFinding) bool { return !on(f) || f.Harms })
	add("comes: other wrong or missing answers, which delete nothing, by ", counted(len(come), "finding"))
	return changes
}

// protecting returns the flags with those that switch the proxy on, as far as the servers lack
// them.
func (f Flags) protecting(asked reports.PlanProtection) Flags {
	if !asked.Old.Gate || !asked.New.Gate {
		list, on := f.joined(history.FeatureGates), map[string]bool{gates.Proxy: true}
		off := f.With(history.FeatureGates, gates.With(list, map[string]bool{gates.Proxy: false})) // with it on, a server may take no gate at all
		if !decide(asked.Old.Version, off).Gate(gates.Identity) || !decide(asked.New.Version, off).Gate(gates.Identity) {
			on[gates.Identity] = true
		}
		f = f.With(history.FeatureGates, gates.With(list, on))
	}
	if f.last(gates.PeerCAFile) == "" {
		f = f.With(gates.PeerCAFile, f.certificates()+"/ca.crt") // it has signed the serving certificates of kubeadm
	}
	return f
}
