package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// behaviourFolder holds, beside the documents, what releases do and permit.
const behaviourFolder = "behaviour"

// ErrNoBehaviour is wrapped by errors about releases whose behaviour is not recorded.
var ErrNoBehaviour = errors.New("what it does and permits is not recorded")

// Behaviour is what a release does by itself, and what it permits.
type Behaviour struct {
	// Created are the objects that the controllers of the release created by themselves within a
	// minute of their start, beside one kube-apiserver of the release with its default flags. Leases
	// and events are left out.
	Created []Created `json:"created"`
	// Asked are the kinds of which the authorizer was asked, by group. The names of a group are in
	// one string. They include kinds that only other releases serve.
	Asked map[string]string `json:"asked"`
	// May are the verbs that a subject may use with a kind ([Kind.String]), with any object of it.
	May map[Subject]map[string]string `json:"may"`
	// Related are the verbs that a node may use only with objects that have to do with this node, by
	// the graph of the node authorizer.
	Related map[string]string `json:"related"`
}

// Created are the objects of one resource that controllers created.
type Created struct {
	history.GVR
	// By are the users that created them.
	By []string `json:"by"`
	// Names are NAMESPACE/NAME, or NAME. A part that differs between clusters is *.
	Names []string `json:"names"`
}

// Subject is a user without rights of its own.
type Subject string

// These are the subjects.
const (
	Node           Subject = "node"
	ServiceAccount Subject = "serviceAccount"
	User           Subject = "user"
)

// Kind is a resource or a subresource in any version of its group. Authorizers do not look at the
// version.
type Kind struct{ Group, Resource, Subresource string }

// String is the name of a kind: resource.group/subresource.
func (k Kind) String() string {
	name := k.Resource
	if k.Group != "" {
		name += "." + k.Group
	}
	if k.Subresource != "" {
		name += "/" + k.Subresource
	}
	return name
}

// ParseKind reads what [Kind.String] writes.
func ParseKind(name string) Kind {
	var k Kind
	name, k.Subresource, _ = strings.Cut(name, "/")
	k.Resource, k.Group, _ = strings.Cut(name, ".")
	return k
}

// Kinds are the names of all kinds that some of these releases serve, sorted.
func Kinds(of ...*Version) (names []string) {
	for _, v := range of {
		for _, r := range v.Document.Resources {
			names = append(names, Kind{r.Group, r.Resource, ""}.String())
			for _, s := range r.Subresources {
				names = append(names, Kind{r.Group, r.Resource, s.Name}.String())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Ask notes the kinds of which an authorizer is asked.
func (b *Behaviour) Ask(kinds []string) {
	b.Asked = map[string]string{}
	for _, name := range kinds {
		k := ParseKind(name)
		group := k.Group
		k.Group = ""
		b.Asked[group] = strings.TrimSpace(b.Asked[group] + " " + k.String())
	}
}

// Kinds are the kinds of which the authorizer was asked, sorted by group.
func (b *Behaviour) Kinds() (all []Kind) {
	for _, group := range slices.Sorted(maps.Keys(b.Asked)) {
		for _, name := range strings.Fields(b.Asked[group]) {
			k := ParseKind(name)
			k.Group = group
			all = append(all, k)
		}
	}
	return all
}

// WasAsked reports whether the authorizer was asked of a kind.
func (b *Behaviour) WasAsked(k Kind) bool { return slices.Contains(b.Kinds(), k) }

// Allowed returns the verbs that a subject may use with a kind, for some object.
func (b *Behaviour) Allowed(s Subject, k Kind) []string {
	verbs := strings.Fields(b.May[s][k.String()])
	if s == Node {
		verbs = append(verbs, strings.Fields(b.Related[k.String()])...)
	}
	return verbs
}

// Creates reports whether controllers of the release created objects of a resource by themselves.
func (b *Behaviour) Creates(r history.GVR) (Created, bool) {
	i := slices.IndexFunc(b.Created, func(c Created) bool { return c.GVR == r })
	if i < 0 {
		return Created{}, false
	}
	return b.Created[i], true
}

// BehaviourOf returns the recorded behaviour of a release: from the directories in their order,
// else from this repository. If the release itself is not recorded, the nearest patch of its minor
// version stands in. of is the release that the recording is of. The error wraps [ErrNoBehaviour]
// if no patch is recorded.
func BehaviourOf(name string, directories ...string) (b *Behaviour, of string, err error) {
	found := files(behaviourFolder, directories)
	if of = Nearest(name, slices.Collect(maps.Keys(found))); of == "" {
		return nil, "", fmt.Errorf("%s: %w", name, ErrNoBehaviour)
	}
	body, err := fs.ReadFile(found[of], behaviourFolder+"/"+of+".json")
	if err == nil {
		b, err = parseBehaviour(body)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read what release %s does and permits: %w", of, err)
	}
	return b, of, nil
}

func parseBehaviour(body []byte) (*Behaviour, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	b := new(Behaviour)
	err := d.Decode(b)
	if err == nil && len(b.Asked) == 0 {
		err = errors.New("the authorizer was asked nothing")
	}
	return b, err
}

// WriteBehaviour leaves the behaviour of a release in a directory. It refuses a body that is no
// such recording.
func WriteBehaviour(dir, name string, body []byte) error {
	if _, err := parseBehaviour(body); err != nil {
		return fmt.Errorf("write what release %s does and permits: %w", name, err)
	}
	return write(dir, behaviourFolder, name, body)
}
