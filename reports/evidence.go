package reports

import (
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Evidence is all violations of one signature. The smallest of them is shown.
type Evidence struct {
	// Signature says of which kind the violation is, without the name of any server.
	Signature invariant.Signature `json:"signature"`
	// New is true if no finding explains the violations. Known is the finding that explains them.
	// Neither is set if the findings say nothing about the subject.
	New   bool   `json:"new,omitempty"`
	Known *Known `json:"known,omitempty"`
	// Sentence describes in full the violation that is shown.
	Sentence string `json:"sentence"`
	// Cause says in short what is wrong.
	Cause string `json:"cause"`
	// Count is how many violations are in the group.
	Count int `json:"count"`
	// FirstSeconds and LastSeconds are when the first and the last of them were seen.
	FirstSeconds Seconds `json:"firstSeconds"`
	LastSeconds  Seconds `json:"lastSeconds"`
	// Asked is the server that was asked in the violation that is shown. Servers are all servers
	// that were asked, sorted.
	Asked   string   `json:"asked,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// Resources are the resources of the violations, as "group/version/resource[/subresource]",
	// sorted and cut to a readable length. ResourcesTotal is the number of all of them.
	Resources      []string `json:"resources,omitempty"`
	ResourcesTotal int      `json:"resourcesTotal,omitempty"`
	// Requests are the requests that show the violation: one, or two that contradict each other.
	Requests []Request `json:"requests,omitempty"`
	// Candidates are the servers that could have served the request.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Hops are the servers' own records of Requests, in time order.
	Hops []Hop `json:"hops,omitempty"`
	// Difference is set if two discovery documents contradict each other.
	Difference *invariant.Difference `json:"difference,omitempty"`
	// Objects are the objects in etcd that a controller did harm to: the owner or the namespace
	// first, then what belongs to it.
	Objects []Object `json:"objects,omitempty"`
	// Misled is the answer that misled the controller, if it did harm and the history has the answer.
	Misled *Misled `json:"misled,omitempty"`
	// Process is set if a change of a server's process is the violation.
	Process *Process `json:"process,omitempty"`
	// Around are requests within two seconds of the violation that is shown, in time order: those
	// about the same resource and to the same server first. AroundTotal counts all. Only violations
	// that a page shows in full have them.
	Around      []Nearby `json:"around,omitempty"`
	AroundTotal int      `json:"aroundTotal,omitempty"`
	// Log are lines of the servers' logs in the same time, in time order. LogTotal counts all.
	Log      []LogLine `json:"log,omitempty"`
	LogTotal int       `json:"logTotal,omitempty"`
}

// Misled is the answer that misled a controller: the controller asked the server, the server gave
// this answer, and Evidence.Cause is the consequence.
type Misled struct {
	// Controller is the user as whom the controller asked. Agent is its User-Agent; it is empty if no
	// log has it.
	Controller string `json:"controller"`
	Agent      string `json:"agent,omitempty"`
	// Server is the server that gave the answer. AtSeconds is when it was asked.
	Server    string  `json:"server"`
	AtSeconds Seconds `json:"atSeconds"`
	// ID is the Audit-ID. Verb, Path and Status are from the server's log.
	ID     string `json:"id"`
	Verb   string `json:"verb"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	// Lacks is the resource that the answer denies (404) or does not list (a discovery document), as
	// "group/version/resource".
	Lacks string `json:"lacks"`
	// Basis says how it is known what a discovery document does not list. It is empty for a 404.
	Basis string `json:"basis,omitempty"`
}

// Name is the last part of the user name, which names the controller: "namespace-controller".
func (m Misled) Name() string { return m.Controller[strings.LastIndex(m.Controller, ":")+1:] }

// Answer says in a few words what was wrong with the answer.
func (m Misled) Answer() string {
	if m.Basis != "" {
		return fmt.Sprintf("%d without %s", m.Status, m.Lacks)
	}
	return fmt.Sprintf("%d for %s", m.Status, m.Lacks)
}

// Object is the state of an object in etcd.
type Object struct {
	// APIVersion, Kind, Namespace, Name and UID identify it.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	// Revision is the etcd revision of this state. AtSeconds is when the run saw it.
	Revision  int64   `json:"revision"`
	AtSeconds Seconds `json:"atSeconds"`
	// Gone is true if the object was removed then. Deleting is true if it was being deleted.
	Gone     bool `json:"gone,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	// Finalizers are what the deletion waits for. Conditions are the true conditions of a
	// namespace.
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

// Fate says in a word what happened to the object: "exists", "deleting" or "removed".
func (o Object) Fate() string {
	switch {
	case o.Gone:
		return "removed"
	case o.Deleting:
		return "deleting"
	}
	return "exists"
}

// State says for people what happened to the object: "being deleted, waits for foregroundDeletion".
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
	// ID was sent as the Audit-ID. The audit logs of the servers have the same string.
	ID string `json:"id"`
	// Client is the client that sent the request. User is the user as whom it was sent.
	Client string `json:"client,omitempty"`
	User   string `json:"user,omitempty"`
	// Server is the server that was asked.
	Server string `json:"server"`
	// Verb is the API verb, "table" or "discovery".
	Verb string `json:"verb"`
	// Path is the path and query as sent.
	Path string `json:"path"`
	// StartSeconds is when the request was sent. DurationSeconds is how long the answer took.
	StartSeconds    Seconds `json:"startSeconds"`
	DurationSeconds Seconds `json:"durationSeconds"`
	// Status is the HTTP status code. It is 0 if no response header arrived.
	Status int `json:"status,omitempty"`
	// Reason and Message are those of the metav1.Status in the answer, if there is one.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Missing says what a 404 was about: "object" or "resource".
	Missing history.Missing `json:"missing,omitempty"`
	// Failure says why there was no complete response. Error is the client's own text for it.
	Failure history.Failure `json:"failure,omitempty"`
	Error   string          `json:"error,omitempty"`
	// ETag and Document identify a discovery document.
	ETag     string `json:"etag,omitempty"`
	Document string `json:"document,omitempty"`
}

// Candidate is a server that could have served a request.
type Candidate struct {
	// Server is the name of the server.
	Server string `json:"server"`
	// Version is the version that the server ran.
	Version string `json:"version,omitempty"`
	// SinceSeconds is the time since when the server had served the resource without a break.
	SinceSeconds Seconds `json:"sinceSeconds"`
	// Reachable is true if no fault or step of the run kept the asked server from reaching it.
	Reachable bool `json:"reachable"`
	// Obstacle says what kept it. It is empty if Reachable.
	Obstacle string `json:"obstacle,omitempty"`
}

// Hop is one server's own record, from its audit log, of a request that it handled.
type Hop struct {
	// Request is the ID of the request.
	Request string `json:"request"`
	// Server is the server that wrote the record.
	Server string `json:"server"`
	// StartSeconds is when the server received the request. DurationSeconds is how long it worked
	// on it.
	StartSeconds    Seconds `json:"startSeconds"`
	DurationSeconds Seconds `json:"durationSeconds"`
	// Status is the code with which the server answered. It is 0 if the log does not say.
	Status int `json:"status,omitempty"`
	// User is the user that the server saw.
	User string `json:"user,omitempty"`
	// Unauthenticated is what the server wrote if it could not authenticate the sender.
	Unauthenticated string `json:"unauthenticated,omitempty"`
	// Rerouted is true if the request came from a peer.
	Rerouted bool `json:"rerouted,omitempty"`
}

// Process is a change of state of a server's process.
type Process struct {
	// Server is the name of the server and Version the version that it ran. Incarnation is 1 for
	// the first start, 2 for the second, ….
	Server      string `json:"server"`
	Version     string `json:"version,omitempty"`
	Incarnation int    `json:"incarnation,omitempty"`
	// State is the new state.
	State history.State `json:"state"`
	// AtSeconds is the time of the change.
	AtSeconds Seconds `json:"atSeconds"`
	// Detail is the exit status and the last lines of the log.
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
	if m := e.Misled; m != nil {
		out.Misled = &Misled{
			Controller: m.Controller, Agent: m.Agent, Server: m.Server, AtSeconds: seconds(m.At), ID: m.ID, Verb: m.Verb, Path: m.Path,
			Status: m.Status,
			Lacks:  m.Lacks.String(), Basis: m.Basis,
		}
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

// servers are the servers on whose lanes of the timeline the violation belongs.
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
