package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	// maxLive is the maximum number of objects of one resource that one lane keeps.
	maxLive = 4
	// fieldManager owns the fields that the load applies.
	fieldManager = "skewproof"
)

// ManagedBy and ManagedByValue label every object that is created for a run.
const (
	ManagedBy      = "app.kubernetes.io/managed-by"
	ManagedByValue = "skewproof"
)

// canWrite reports whether objects of the resource can be created, and may be created by the load.
func (c *Chooser) canWrite(r history.Resource) bool { return creatable(r) && !c.large.owns(r) }

func creatable(r history.Resource) bool {
	_, known := templates[groupResource{r.Group, r.Resource}]
	return known && slices.Contains(r.Verbs, "create")
}

// nextOfLife returns the next request in the lives of the objects of r: create, read, change,
// delete. canWrite(r) must be true. nextOfLife assumes that every create succeeds. If one did not
// (the user may not write, the server was down), later requests find no object, which is a good
// test too.
func (c *Chooser) nextOfLife(r history.Resource) Request {
	live := c.live[r.GVR]
	n := c.Choices.IntN(100)
	switch {
	case len(live) == 0, len(live) < maxLive && n < 20:
		c.made++
		name := objectName(c.Lane, c.made)
		c.live[r.GVR] = append(live, name)
		create := about(r, name, "create")
		create.Body = object(r, name, metadata{})
		return c.perhapsTyped(create)
	case len(live) == maxLive && n < 20:
		c.live[r.GVR] = live[1:]
		return c.perhapsTyped(about(r, live[0], "delete"))
	}
	name := live[c.Choices.IntN(len(live))]
	changes := changesOf(r, name, c.Choices.IntN(1000))
	change := changes[c.Choices.IntN(len(changes))]
	if change.Verb == "update" || change.ContentType == applyPatch {
		change.Body = object(r, name, metadata{})
	}
	// Only this lane changes the object, and its next request comes later.
	switch whole := change.Subresource == ""; {
	case whole && change.Verb == "get" && n%4 > 0 && !slices.Contains(TypedResources, r.GVR):
		change.Compare = CompareFirst
		return change
	case whole && change.ContentType == mergePatch && n%2 == 0:
		return tried(r, name)
	}
	return c.perhapsTyped(change)
}

// changesOf returns the requests on an existing object. Requests with the whole object have no body
// yet.
func changesOf(r history.Resource, name string, stamp int) []Request {
	t := templates[groupResource{r.Group, r.Resource}]
	apply := patch(r, name, "", applyPatch, "")
	apply.Query = "fieldManager=" + fieldManager + "&force=true"
	all := append(make([]Request, 0, 10),
		get(r, name, ""),
		patch(r, name, "", mergePatch, `{"metadata":{"annotations":{"skewproof.dev/seen":"`+strconv.Itoa(stamp)+`"}}}`),
		patch(r, name, "", jsonPatch, `[{"op":"add","path":"/metadata/labels/seen","value":"yes"}]`),
		// Custom resources answer a strategic merge patch with 415, which is right on every server.
		patch(r, name, "", strategicPatch, `{"metadata":{"labels":{"merged":"yes"}}}`),
		apply)
	if t.unconditionalUpdate {
		all = append(all, about(r, name, "update"))
	}
	for _, s := range r.Subresources {
		if body, ok := t.subresources[s.Name]; ok {
			all = append(all, get(r, name, s.Name), patch(r, name, s.Name, mergePatch, body))
		}
	}
	return all
}

// tried returns a patch that changes nothing, to compare what every server would make of the
// object. It is always the same, because only answers to equal requests can be compared. The field
// that no kind has makes the server warn the client.
func tried(r history.Resource, name string) Request {
	try := patch(r, name, "", mergePatch, `{"metadata":{"annotations":{"skewproof.dev/tried":"yes"}},"skewproof":"unknown"}`)
	try.Query, try.Client, try.Compare = dryRun+"&fieldValidation=Warn", ClientREST, CompareFirst
	return try
}

// TypedResources are the resources for the generated clientset, which speaks protobuf.
var TypedResources = []history.GVR{
	{Version: "v1", Resource: "configmaps"}, {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

// perhapsTyped gives half of the requests that the generated clientset can send to it.
func (c *Chooser) perhapsTyped(r Request) Request {
	if r.Subresource == "" && r.Verb != "patch" && slices.Contains(TypedResources, r.GVR) && c.Choices.IntN(2) == 0 {
		r.Client = ClientTyped
	}
	return r
}

// objectName names the n-th object that a lane creates.
func objectName(lane string, n int) string { return fmt.Sprintf("%s%s-%d", objectPrefix, lane, n) }

// objectPrefix begins the names of all objects that the load creates and deletes.
const objectPrefix = "skewproof-"

// Created reports whether a name is that of an object that a load creates and deletes. What is set
// up for a load has other names.
func Created(name string) bool {
	rest, ok := strings.CutPrefix(name, objectPrefix)
	if !ok {
		return false
	}
	i := strings.LastIndexByte(rest, '-')
	if i < 1 {
		return false
	}
	_, err := strconv.ParseUint(rest[i+1:], 10, 32)
	return err == nil
}
