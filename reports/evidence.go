package reports

import (
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Evidence is all violations of one signature, shown by the smallest of them.
type Evidence struct {
	// Signature says what kind of violation it is, without the name of any server.
	Signature invariant.Signature `json:"signature"`
	// New is true if no finding explains the violations; Known is the one that does. Neither is set if
	// the findings say nothing about the subject.
	New   bool   `json:"new,omitempty"`
	Known *Known `json:"known,omitempty"`
	// Sentence tells the violation that is shown in full.
	Sentence string `json:"sentence"`
	// Cause is what is wrong with it, in short.
	Cause string `json:"cause"`
	// Count is how many violations are in the group.
	Count int `json:"count"`
	// FirstSeconds and LastSeconds are when the first and the last of them were seen.
	FirstSeconds Seconds `json:"firstSeconds"`
	LastSeconds  Seconds `json:"lastSeconds"`
	// Asked is the server that was asked in the violation that is shown; Servers are all that were
	// asked, sorted.
	Asked   string   `json:"asked,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// Resources are what the violations were about, as "group/version/resource[/subresource]", sorted
	// and cut to a readable length; ResourcesTotal is how many there were.
	Resources      []string `json:"resources,omitempty"`
	ResourcesTotal int      `json:"resourcesTotal,omitempty"`
	// Requests are those that show the violation: one, or the two that contradict each other.
	Requests []Request `json:"requests,omitempty"`
	// Candidates are the servers that could have served it.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Hops are the servers' own accounts of Requests, in time order.
	Hops []Hop `json:"hops,omitempty"`
	// Difference is set where two discovery documents contradict each other.
	Difference *invariant.Difference `json:"difference,omitempty"`
	// Objects are those in etcd that a controller did harm to: the owner or the namespace first, then
	// what belongs to it.
	Objects []Object `json:"objects,omitempty"`
	// Process is set where a change of a server's process is the violation.
	Process *Process `json:"process,omitempty"`
}

// Object is an object as etcd had it.
type Object struct {
	// APIVersion, Kind, Namespace, Name and UID identify it.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	// Revision is that of etcd at which it was like that, AtSeconds when the run saw it.
	Revision  int64   `json:"revision"`
	AtSeconds Seconds `json:"atSeconds"`
	// Gone is true if it was removed then, Deleting if it was being deleted.
	Gone     bool `json:"gone,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	// Finalizers are what its deletion waits for. Conditions are those of a namespace that are true.
	Finalizers []string `json:"finalizers,omitempty"`
	Conditions []string `json:"conditions,omitempty"`
}

// Title is kind and name, for people.
func (o Object) Title() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Fate is what became of it, in a word: "exists", "deleting" or "removed".
func (o Object) Fate() string {
	switch {
	case o.Gone:
		return "removed"
	case o.Deleting:
		return "deleting"
	}
	return "exists"
}

// State says what became of it, for people: "being deleted, waits for foregroundDeletion".
func (o Object) State() string {
	state := o.Fate()
	if state == "deleting" {
		state = "being deleted"
	}
	if len(o.Finalizers) > 0 && !o.Gone {
		state += ", finalizers: " + strings.Join(o.Finalizers, ", ")
	}
	if len(o.Conditions) > 0 {
		state += ", says: " + strings.Join(o.Conditions, ", ")
	}
	return state
}

// Request is one request and its answer, as the client saw them.
type Request struct {
	// ID was sent as the Audit-ID: the same string is in the audit logs of the servers.
	ID string `json:"id"`
	// Client is which client sent it; User is the identity it was sent as.
	Client string `json:"client,omitempty"`
	User   string `json:"user,omitempty"`
	// Server is the server that was asked.
	Server string `json:"server"`
	// Verb is the API verb, "table" or "discovery".
	Verb string `json:"verb"`
	// Path is path and query as sent.
	Path string `json:"path"`
	// StartSeconds is when it was sent; DurationSeconds is how long the answer took.
	StartSeconds    Seconds `json:"startSeconds"`
	DurationSeconds Seconds `json:"durationSeconds"`
	// Status is the HTTP status code; 0 if no response header arrived.
	Status int `json:"status,omitempty"`
	// Reason and Message are those of the metav1.Status that was answered, if one was.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Missing tells what a 404 was about: "object" or "resource".
	Missing history.Missing `json:"missing,omitempty"`
	// Failure says why there was no complete response; Error is the client's own word for it.
	Failure history.Failure `json:"failure,omitempty"`
	Error   string          `json:"error,omitempty"`
	// ETag and Document identify a discovery document.
	ETag     string `json:"etag,omitempty"`
	Document string `json:"document,omitempty"`
}

// Candidate is a server that could have served a request.
type Candidate struct {
	// Server is its name.
	Server string `json:"server"`
	// Version is the version it ran.
	Version string `json:"version,omitempty"`
	// SinceSeconds is since when it had been serving the resource without a break.
	SinceSeconds Seconds `json:"sinceSeconds"`
	// Reachable is true when nothing that the run did kept the asked server from reaching it.
	Reachable bool `json:"reachable"`
	// Obstacle says what did; empty when Reachable.
	Obstacle string `json:"obstacle,omitempty"`
}

// Hop is one server's own account, from its audit log, of a request that it handled.
type Hop struct {
	// Request is the ID of the request.
	Request string `json:"request"`
	// Server is the server whose account it is.
	Server string `json:"server"`
	// StartSeconds is when it received the request; DurationSeconds is how long it worked on it.
	StartSeconds    Seconds `json:"startSeconds"`
	DurationSeconds Seconds `json:"durationSeconds"`
	// Status is the code it answered with; 0 if the log does not say.
	Status int `json:"status,omitempty"`
	// User is the user it saw.
	User string `json:"user,omitempty"`
	// Unauthenticated is what it wrote if it could not authenticate the sender.
	Unauthenticated string `json:"unauthenticated,omitempty"`
	// Rerouted is true when the request came from a peer.
	Rerouted bool `json:"rerouted,omitempty"`
}

// Process is a change of state of a server's process.
type Process struct {
	// Server is its name, Version what it ran, Incarnation 1 for its first start, 2 for the second, ….
	Server      string `json:"server"`
	Version     string `json:"version,omitempty"`
	Incarnation int    `json:"incarnation,omitempty"`
	// State is the state it entered.
	State history.State `json:"state"`
	// AtSeconds is when.
	AtSeconds Seconds `json:"atSeconds"`
	// Detail is the exit status and the last lines of its log.
	Detail string `json:"detail,omitempty"`
}

func newEvidence(e invariant.Evidence) Evidence {
	out := Evidence{
		Signature: e.Signature, Sentence: e.Sentence, Cause: e.Cause, Count: e.Count, Servers: e.Servers,
		FirstSeconds: seconds(e.First), LastSeconds: seconds(e.Last),
		Asked: e.Asked, Resources: e.Resources, ResourcesTotal: e.ResourcesTotal, Difference: e.Difference,
	}
	for _, o := range e.Operations {
		out.Requests = append(out.Requests, newRequest(o))
	}
	for _, c := range e.Candidates {
		out.Candidates = append(out.Candidates, Candidate{
			Server: c.Server, Version: c.Version, SinceSeconds: seconds(c.Since), Reachable: c.Reachable, Obstacle: c.Obstacle,
		})
	}
	for _, h := range e.Hops {
		out.Hops = append(out.Hops, Hop{
			Request: h.Operation, Server: h.Server, StartSeconds: seconds(h.Start), DurationSeconds: seconds(h.End - h.Start),
			Status: h.Status, User: h.User, Unauthenticated: h.Unauthenticated, Rerouted: h.Rerouted,
		})
	}
	for _, o := range e.Objects {
		out.Objects = append(out.Objects, Object{
			APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, Revision: o.Revision, AtSeconds: seconds(o.At),
			Gone: o.Gone, Deleting: o.Deleting, Finalizers: o.Finalizers, Conditions: o.Conditions,
		})
	}
	if l := e.Lifecycle; l != nil {
		out.Process = &Process{
			Server: l.Server, Version: l.Version, Incarnation: l.Incarnation, State: l.State, AtSeconds: seconds(l.At), Detail: l.Detail,
		}
	}
	return out
}

func newRequest(o history.Operation) Request {
	return Request{
		ID: o.ID, Client: o.Client, User: o.User, Server: o.Server, Verb: o.Verb, Path: o.Path,
		StartSeconds: seconds(o.Start), DurationSeconds: seconds(o.End - o.Start),
		Status: o.Status, Reason: o.Reason, Message: o.Message, Missing: o.Missing, Failure: o.Failure, Error: o.Error,
		ETag: o.ETag, Document: o.Document,
	}
}

// servers are those whose lane of the timeline the violation belongs on.
func (e Evidence) servers() []string {
	switch {
	case len(e.Servers) > 0:
		return e.Servers
	case e.Asked != "":
		return []string{e.Asked}
	case e.Process != nil:
		return []string{e.Process.Server}
	}
	var out []string
	for _, r := range e.Requests {
		if len(out) == 0 || out[len(out)-1] != r.Server {
			out = append(out, r.Server)
		}
	}
	return out
}
