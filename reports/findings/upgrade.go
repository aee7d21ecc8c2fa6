package findings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/semver"
)

// Upgrade says in an operator's words what a finding means for an upgrade. All five sentences are
// set.
type Upgrade struct {
	// Since and Until are the oldest and the newest minor version, such as "1.35", of the servers
	// that answer wrongly. An empty Until is the newest version that is known.
	Since string `json:"since"`
	Until string `json:"until,omitempty"`
	// Proxy says how the Mixed Version Proxy of these servers is configured.
	Proxy Effect `json:"proxy"`
	// Needs is what the cluster or the pair of versions must have in addition; empty for nothing.
	Needs Need `json:"needs,omitempty"`
	// Condition groups findings by what must happen first.
	Condition Condition `json:"condition"`
	// When is what triggers the defect. Deleted is what is deleted, and Hangs what waits, stays
	// behind or fails. Noticed is who notices it, and by what. Lasts is for how long.
	When    string `json:"when"`
	Deleted string `json:"deleted"`
	Hangs   string `json:"hangs"`
	Noticed string `json:"noticed"`
	Lasts   string `json:"lasts"`
}

// Effect is the effect of a server's own Mixed Version Proxy.
type Effect string

// These are all effects.
const (
	EffectOn      Effect = "on"      // the proxy passes requests on
	EffectOff     Effect = "off"     // it is switched off, or has no effect
	EffectRollout Effect = "rollout" // it is on, and off at other servers
	EffectAny     Effect = "any"
)

// Need is what a cluster or a pair of versions must have for a finding.
type Need string

// These are all needs.
const (
	NeedResources     Need = "resources"      // the versions serve different resources
	NeedSubresources  Need = "subresources"   // the versions have a resource with different subresources
	NeedShutdownDelay Need = "shutdown delay" // servers have --shutdown-delay-duration
	NeedNodeRights    Need = "node rights"    // the newer version gives kubelets rights that the older one does not
	NeedSkippedMinor  Need = "skipped minor"  // there is a minor version between the two
	NeedFields        Need = "fields"         // the older version drops fields of templates that the newer one stores
)

// Condition is what must happen, or be there, before a defect shows.
type Condition string

// These are all conditions of a defect.
const (
	ConditionUpgrade         Condition = "upgrade" // an upgrade without any fault
	ConditionPartition       Condition = "partition"
	ConditionCrash           Condition = "crash" // a server is killed, hangs or breaks off an answer
	ConditionRollback        Condition = "rollback"
	ConditionConfiguration   Condition = "configuration" // flags, certificates or host names are wrong
	ConditionCustomResources Condition = "custom resources"
)

// Conditions are all conditions of a defect, in the order in which an operator meets them.
var Conditions = []Condition{
	ConditionUpgrade, ConditionPartition, ConditionCrash, ConditionRollback, ConditionConfiguration, ConditionCustomResources,
}

// Includes reports whether servers of a version, such as "v1.36.3", have the defect, as far as its
// version decides.
func (u Upgrade) Includes(version string) bool {
	minor := semver.MajorMinor(version)
	return semver.Compare(minor, "v"+u.Since) >= 0 && (u.Until == "" || semver.Compare(minor, "v"+u.Until) <= 0)
}

func (u *Upgrade) validate() error {
	if u == nil {
		return nil
	}
	for _, minor := range []string{u.Since, cmp.Or(u.Until, u.Since)} {
		if v := "v" + minor; !semver.IsValid(v) || semver.MajorMinor(v) != v {
			return fmt.Errorf("%q is not a minor version such as 1.35", minor)
		}
	}
	switch u.Proxy {
	case EffectOn, EffectOff, EffectRollout, EffectAny:
	default:
		return fmt.Errorf("proxy %q; it is on, off, rollout or any", u.Proxy)
	}
	switch u.Needs {
	case "", NeedResources, NeedSubresources, NeedShutdownDelay, NeedNodeRights, NeedSkippedMinor, NeedFields:
	default:
		return fmt.Errorf("needs %q; it is empty, or one of %q", u.Needs, []Need{NeedResources, NeedSubresources, NeedShutdownDelay,
			NeedNodeRights, NeedSkippedMinor, NeedFields})
	}
	if !slices.Contains(Conditions, u.Condition) {
		return fmt.Errorf("condition %q; it is one of %q", u.Condition, Conditions)
	}
	if u.When == "" || u.Deleted == "" || u.Hangs == "" || u.Noticed == "" || u.Lasts == "" {
		return errors.New("it says when, what is deleted, what hangs, who notices, and for how long")
	}
	return nil
}
