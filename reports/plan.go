package reports

import (
	"io"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// KindPlan is the kind of an [UpgradePlan].
const KindPlan = "UpgradePlan"

// UpgradePlan is what an operator has to know before the kube-apiservers of a control plane are
// upgraded from one version to another. Texts are Markdown with code in backquotes and nothing
// else. Names come from recorded documents, and are treated as hostile.
type UpgradePlan struct {
	// APIVersion: always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind: always [KindPlan].
	Kind string `json:"kind"`
	// SkewproofVersion: the version of skewproof that made the plan.
	SkewproofVersion string `json:"skewproofVersion"`
	// From: the older version.
	From string `json:"from"`
	// To: the newer version.
	To string `json:"to"`
	// Sentence is the answer in a sentence or two.
	Sentence string `json:"sentence"`
	// Notes: what the plan cannot say.
	Notes []string `json:"notes,omitempty"`
	// Harms are the two or three things that can do harm, the worst first. They follow from the rest
	// of the plan.
	Harms []PlanHarm `json:"harms"`
	// Demands are what the release notes of the newer version, and of those between, demand before.
	Demands []PlanDemand `json:"demands,omitempty"`
	// Appears and Vanishes are resources and subresources that only To, or only From, serves.
	Appears []PlanResource `json:"appears"`
	// Vanishes: what only From serves.
	Vanishes []PlanResource `json:"vanishes"`
	// FieldHarms are the fields that can do harm while both versions run, the worst first. They follow
	// from Fields.
	FieldHarms []PlanFieldHarm `json:"fieldHarms,omitempty"`
	// Fields are the fields that the two versions treat differently, in kinds that both serve.
	Fields []recorded.FieldSkew `json:"fields,omitempty"`
	// Created are objects that only controllers of To create by themselves.
	Created []recorded.Created `json:"created,omitempty"`
	// Permissions are what a user without rights of its own may do at one version only.
	Permissions []PlanPermission `json:"permissions,omitempty"`
	// Protection has the configuration that was asked for first, and then usual ones.
	Protection []PlanProtection `json:"protection"`
	// Comparison says which harms the Mixed Version Proxy takes away, leaves and brings; empty if no
	// flag makes the two versions pass requests on.
	Comparison []string `json:"comparison,omitempty"`
	// Findings are the known defects that apply to the configuration that was asked for, or to the
	// one to which the checklist leads, grouped by their condition.
	Findings []PlanFinding `json:"findings"`
	// Checklist: the steps, in order.
	Checklist []PlanStep `json:"checklist"`
	// Metrics: what to watch.
	Metrics []PlanMetric `json:"metrics"`
	// Stop: when not to go on.
	Stop []string `json:"stop"`
	// StopCommands are command lines for bash that show some of these conditions.
	StopCommands []string `json:"stopCommands"`
	// Back: how to go back.
	Back []string `json:"back"`
	// Rehearsal: scenarios that rehearse the upgrade.
	Rehearsal []PlanScenario `json:"rehearsal"`
	// Lacks: flags of the servers that not every run of the rehearsal has, and why.
	Lacks []string `json:"lacks,omitempty"`
}

// PlanResource is a resource, or a subresource, that only one of two versions serves.
type PlanResource struct {
	history.GVR
	// Subresource: empty for the resource itself.
	Subresource string `json:"subresource,omitempty"`
	// On says which servers serve it: [PlanByDefault] or [PlanByRuntimeConfig].
	On string `json:"on"`
	// Other are the versions of the group in which the other version serves the resource; empty if it
	// does not.
	Other []string `json:"other,omitempty"`
	// Users: who is known to use it.
	Users []PlanUser `json:"users,omitempty"`
	// RefusedNodes are the verbs that this version permits a node, and that the other version refuses
	// with 403 before it would pass the request on.
	RefusedNodes []string `json:"refusedNodes,omitempty"`
}

// These are the values of [PlanResource.On].
const (
	PlanByDefault       = "by default"
	PlanByRuntimeConfig = "only with --runtime-config"
)

// Name is group/version/resource/subresource, as in a URL.
func (r PlanResource) Name() string {
	if r.Subresource == "" {
		return r.GVR.String()
	}
	return r.GVR.String() + "/" + r.Subresource
}

// PlanUser uses a resource. Source is where that can be read.
type PlanUser struct {
	// Who: a program.
	Who string `json:"who"`
	// Does: what it does with the resource.
	Does string `json:"does"`
	// Source: where that can be read.
	Source string `json:"source"`
}

// PlanFieldHarm is a field that can do harm, in all kinds that have it.
type PlanFieldHarm struct {
	// Path leads to the field from the specification of a pod, or from the object.
	Path string `json:"path"`
	// Kinds are the resources, in the plural.
	Kinds []string `json:"kinds"`
	// Values are the values that do the harm; empty if every value does.
	Values []string `json:"values,omitempty"`
	// Harm: [PlanNeverSettles], [PlanStuck], [PlanCopied], [PlanLost], [PlanDropped],
	// [PlanRefused] or [PlanFrozen].
	Harm string `json:"harm"`
	// By is the version that drops the field, or refuses it.
	By string `json:"by"`
	// Gates are the feature gates without which the versions do not differ; empty if none is known.
	Gates []string `json:"gates,omitempty"`
	// Emulated is true if the versions do not differ where the newer server emulates the older one.
	Emulated bool `json:"emulated,omitempty"`
}

// These are the values of [PlanFieldHarm.Harm].
const (
	// PlanNeverSettles: a controller copies the field into objects. A server drops it there, and keeps
	// it in the object from which the controller copies. The controller finds no equal object, and
	// makes another one.
	PlanNeverSettles = "never settles"
	// PlanCopied: the same, but the controller compares no fields.
	PlanCopied = "missing in copies"
	// PlanStuck: a controller copies the field into objects, and a server does not accept them.
	PlanStuck = "refused to controllers"
	// PlanLost: whoever reads an object and writes it back loses the field.
	PlanLost = "lost on update"
	// PlanDropped: an object is accepted without the field.
	PlanDropped = "dropped in silence"
	// PlanRefused: an object is accepted by one version only.
	PlanRefused = "refused to clients"
	// PlanFrozen: both versions accept a new object with the field. In an object that exists, only one
	// of them lets clients change it.
	PlanFrozen = "refused on change"
)

// PlanPermission is what a user without rights of its own may do at one version only.
type PlanPermission struct {
	// Who: "a node", "a service account" or "a user".
	Who string `json:"who"`
	// Kind is resource.group/subresource.
	Kind string `json:"kind"`
	// From and To are the verbs that only this version permits.
	From []string `json:"from,omitempty"`
	To   []string `json:"to,omitempty"`
}

// PlanProtection is what the Mixed Version Proxy does with a configuration of both versions.
type PlanProtection struct {
	// Configuration says in words which flags the servers have.
	Configuration string `json:"configuration"`
	// Old: the older version with these flags.
	Old PlanSide `json:"old"`
	// New: the newer version with these flags.
	New PlanSide `json:"new"`
	// Ways are those of requests: at an older server for what only To has, and the other way round.
	Ways [2]PlanRoute `json:"ways"`
	// Sentence sums it up.
	Sentence string `json:"sentence"`
}

// PlanSide is one version's part in a protection.
type PlanSide struct {
	// Version: the version of the servers.
	Version string `json:"version"`
	// Starts is false if kube-apiserver refuses these flags.
	Starts bool `json:"starts"`
	// Gate is true if the feature is on. Then peers find the server.
	Gate bool `json:"gate"`
	// PassesOn is true if the server passes requests on to peers. Merges is true if its discovery
	// shows what its peers serve.
	PassesOn bool `json:"passesOn"`
	Merges   bool `json:"merges"`
	// Delays is true if the server serves on when it is told to stop (--shutdown-delay-duration).
	Delays bool `json:"delays,omitempty"`
	// Why says why the server does not pass requests on.
	Why string `json:"why,omitempty"`
}

// PlanRoute is a way of requests from servers of one version to servers of the other one.
type PlanRoute struct {
	// Protected: true if the request is passed on.
	Protected bool `json:"protected"`
	// Sentence: what becomes of the request.
	Sentence string `json:"sentence"`
}

// These are the values of [PlanFinding.Flags].
const (
	PlanYourFlags = "with your flags"
	PlanProxyOn   = "once the checklist has switched the proxy on"
)

// PlanHarm is something that can do harm in the upgrade.
type PlanHarm struct {
	// What can happen.
	What string `json:"what"`
	// Whom it harms.
	Whom string `json:"whom"`
	// Prevent is what was seen to prevent it; empty if nothing is known.
	Prevent string `json:"prevent,omitempty"`
	// Source: the recordings, findings or files from which this follows.
	Source string `json:"source"`
}

// PlanDemand is what release notes demand before an upgrade.
type PlanDemand struct {
	// Minor: the minor version with these release notes, such as v1.37.
	Minor string `json:"minor"`
	// Text: what to do.
	Text string `json:"text"`
	// Objects: the kinds of the objects that must be gone, as kubectl takes them.
	Objects []string `json:"objects,omitempty"`
	// Source: where that can be read.
	Source string `json:"source"`
}

// PlanFinding is a known defect, in an operator's words.
type PlanFinding struct {
	// Number: the number of the finding.
	Number int `json:"number"`
	// Title: its title.
	Title string `json:"title"`
	// Servers: which servers answer wrongly.
	Servers string `json:"servers"`
	// Flags says with which flags the defect applies: [PlanYourFlags] or [PlanProxyOn].
	Flags string `json:"flags"`
	// Condition: what must happen, or be there, before it shows, such as "in a partition".
	Condition string `json:"condition"`
	// When: what triggers it.
	When string `json:"when"`
	// Deleted: what is deleted.
	Deleted string `json:"deleted"`
	// Hangs: what waits, stays behind or fails.
	Hangs string `json:"hangs"`
	// Noticed: who notices it, and by what.
	Noticed string `json:"noticed"`
	// Lasts: for how long.
	Lasts string `json:"lasts"`
	// Harms is true if the defect may delete something or leave something behind.
	Harms bool `json:"harms"`
}

// PlanStep is one step of the checklist.
type PlanStep struct {
	// Title: what to do.
	Title string `json:"title"`
	// Text: how, and why.
	Text string `json:"text"`
	// Commands: command lines.
	Commands []string `json:"commands,omitempty"`
	// File is content for a file of kubeadm; empty if there is none.
	File string `json:"file,omitempty"`
}

// PlanMetric is a metric, a line of a log, or a command to watch.
type PlanMetric struct {
	// Name: as at /metrics, with labels; a part of the line; the command line.
	Name string `json:"name"`
	// Where: what has it.
	Where string `json:"where"`
	// Since: the oldest minor version that has it.
	Since string `json:"since"`
	// Bad: the value at which to worry.
	Bad string `json:"bad"`
	// Means: what that value means.
	Means string `json:"means"`
	// Rises: how soon it rises after what, at most. It was measured on real servers.
	Rises string `json:"rises"`
}

// PlanScenario is a scenario that rehearses the upgrade.
type PlanScenario struct {
	// Name: the name of the scenario.
	Name string `json:"name"`
	// Why: what it rehearses.
	Why string `json:"why"`
	// Command: the command line.
	Command string `json:"command"`
	// Verdict is the word of the verdict, if the plan was rehearsed: PASS, KNOWN, INCONCLUSIVE or
	// FAIL. Says is the sentence to it.
	Verdict string `json:"verdict,omitempty"`
	Says    string `json:"says,omitempty"`
}

// WritePlanJSON writes the plan for programs.
func WritePlanJSON(w io.Writer, p UpgradePlan) error { return writeIndented(w, p) }
