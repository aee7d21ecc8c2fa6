package upgrade

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// conditions are the conditions of findings in words.
var conditions = map[findings.Condition]string{
	findings.ConditionUpgrade:         "in every upgrade",
	findings.ConditionPartition:       "in a partition",
	findings.ConditionCrash:           "when a server crashes or hangs",
	findings.ConditionRollback:        "in a rollback",
	findings.ConditionConfiguration:   "with a wrong configuration",
	findings.ConditionCustomResources: "with custom resources",
}

// applying returns the findings that apply to a pair of versions with the configuration that was
// asked for, or with the one to which the checklist leads. They are sorted by condition, and the
// harmful ones of a condition come first.
func applying(all findings.Catalogue, p reports.UpgradePlan, asked, then reports.PlanProtection) []reports.PlanFinding {
	found := []reports.PlanFinding{}
	for _, condition := range findings.Conditions {
		for _, harms := range []bool{true, false} {
			for _, f := range all {
				u := f.Upgrade
				if u == nil || u.Condition != condition || harms != (u.Deleted != "Nothing.") {
					continue
				}
				flags, servers := reports.PlanYourFlags, serversWith(f, p, asked)
				if len(servers) == 0 {
					flags, servers = reports.PlanProxyOn, serversWith(f, p, then)
				}
				if len(servers) == 0 {
					continue
				}
				found = append(found, reports.PlanFinding{
					Number: f.Number, Title: f.Title, Servers: strings.Join(servers, " and "), Flags: flags, Condition: conditions[condition],
					When: u.When, Deleted: u.Deleted, Hangs: u.Hangs, Noticed: u.Noticed, Lasts: u.Lasts, Harms: harms,
				})
			}
		}
	}
	return found
}

// serversWith returns the versions whose servers show a finding in this upgrade.
func serversWith(f findings.Finding, p reports.UpgradePlan, c reports.PlanProtection) (servers []string) {
	if f.Upgrade == nil || !needed(*f.Upgrade, p) {
		return nil
	}
	sides := []reports.PlanSide{c.Old, c.New}
	for i, s := range sides {
		peer, lacks := sides[1-i], p.Appears
		if i == 1 {
			lacks = p.Vanishes
		}
		if len(lacks) == 0 && f.Upgrade.Proxy != findings.EffectAny {
			continue // this server lacks nothing that only its peers serve
		}
		if f.Upgrade.Needs == findings.NeedShutdownDelay && !peer.Delays {
			continue
		}
		if !s.Starts || !f.Upgrade.Includes(s.Version) || !effective(f.Upgrade.Proxy, s, peer) || slices.Contains(servers, s.Version) {
			continue
		}
		servers = append(servers, s.Version)
	}
	return servers
}

// needed reports whether the pair of versions has what a finding needs. A plan does not know the
// cluster, so it assumes that custom resources exist.
func needed(u findings.Upgrade, p reports.UpgradePlan) bool {
	switch u.Needs {
	case findings.NeedResources:
		return len(p.Appears)+len(p.Vanishes) > 0
	case findings.NeedSubresources:
		return slices.ContainsFunc(slices.Concat(p.Appears, p.Vanishes), func(r reports.PlanResource) bool { return r.Subresource != "" })
	case findings.NeedNodeRights:
		return slices.ContainsFunc(p.Appears, func(r reports.PlanResource) bool { return len(r.RefusedNodes) > 0 })
	case findings.NeedSkippedMinor:
		return invariant.SkipsMinor(p.From, p.To)
	case findings.NeedFields:
		return slices.ContainsFunc(p.FieldHarms, func(h reports.PlanFieldHarm) bool { return h.Harm == reports.PlanNeverSettles })
	default:
		return true
	}
}

func effective(e findings.Effect, s, peer reports.PlanSide) bool {
	switch e {
	case findings.EffectOn:
		return s.PassesOn && peer.Gate
	case findings.EffectOff:
		return s.Gate && !s.PassesOn
	case findings.EffectRollout:
		return s.PassesOn && !peer.Gate
	}
	return true
}
