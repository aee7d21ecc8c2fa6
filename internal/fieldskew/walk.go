package fieldskew

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/sim/recorded"
)

// node is a path of a kind.
type node struct {
	Resource
	root   schema
	sides  [2]schema // the roots in each release
	of     schema
	place  []string // in the object
	path   string   // for people
	in     string   // the definition that it is in
	within []string // the definitions around it, so that the walk ends
	copied bool     // it is inside a template
	// bases are objects in which the path can be set, the more likely one first.
	bases []any
	// parent is the smallest object of the resource to which a subresource belongs.
	parent any
	// existing are objects in which the path is changed.
	existing []existing
	// inherited are the differences that the object has without this path, and below those with it.
	inherited, below map[string]bool
	// home is the definition around it that has a home, and at is where its path begins.
	home string
	at   int
	// found are the differences at this path. judged is true if some object said something about it.
	found  []found
	judged bool
	// untried is why nothing is sent.
	untried string
}

// start is the node of a kind, with an object as small as the schemas say.
func (s *sweep) start(r Resource) node {
	n := node{Resource: r, root: s.both.kind(r), inherited: map[string]bool{}, below: map[string]bool{}}
	for i, side := range s.sides {
		n.sides[i] = side.Schemas.kind(r)
	}
	n.of = n.root
	smallest, _ := s.smallest(n.root, 0).(tree)
	first := merge(merge(tree{"metadata": tree{"name": "skewproof"}}, smallest), s.data.Objects[r.String()])
	first["apiVersion"], first["kind"] = r.apiVersion(), r.Kind
	n.bases = []any{first}
	return n
}

func (s *sweep) kind(ctx context.Context, r Resource) error {
	n := s.start(r)
	if !n.root.known() {
		return s.note(&n, "neither OpenAPI document has the kind", s.untried, &s.counts.NotTried)
	}
	if r.Of != nil {
		if err := s.makeParent(ctx, &n); err != nil {
			return err
		}
	}
	if n.untried == "" {
		t, err := s.try(ctx, r, &attempt{object: n.bases[0], root: n.root, tried: map[string]int{}})
		if err != nil {
			return err
		}
		if !t.answers[0].OK() && !t.answers[1].OK() {
			n.untried = "no smallest object: " + t.last
		} else if err := s.judge(ctx, &n, &t, recorded.FieldAbsent); err != nil {
			return err
		}
		s.settle(&n, nil)
		n.inherited, n.bases = n.below, []any{t.object}
		if r.Of == nil {
			if err := s.makeExisting(ctx, &n); err != nil {
				return err
			}
		}
	}
	s.children(ctx, n)
	return nil
}

// note counts a path, and says why it is not judged.
func (s *sweep) note(n *node, why string, paths map[string]map[string]string, count *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	if paths != nil {
		if paths[n.String()] == nil {
			paths[n.String()] = map[string]string{}
		}
		paths[n.String()][n.path] = why
	}
	return nil
}

// children visits the paths below a node, concurrently.
func (s *sweep) children(ctx context.Context, n node) {
	child := n
	child.found, child.judged, child.in = nil, false, n.of.name
	if n.of.name != "" {
		child.within = append(slices.Clone(n.within), n.of.name)
	}
	visit := func(of schema, name, path string) {
		child := child
		child.of, child.place, child.path = of, append(slices.Clone(n.place), name), strings.TrimPrefix(n.path+path, ".")
		if of.known() {
			s.group.Go(func() error { return s.visit(ctx, child) })
		}
	}
	item := s.both.item(n.of)
	switch n.of.shape() {
	case object:
		isRoot := s.both.property(n.of, "metadata").name == s.data.Metadata
		child.copied = n.copied || isRoot && len(n.place) > 0
		for _, name := range slices.Sorted(maps.Keys(n.of.Properties)) {
			switch {
			case !isRoot || !s.skipped(n.Resource, name):
				visit(s.both.property(n.of, name), name, "."+name)
			case len(n.place) == 0 && slices.Contains(s.data.Answered, name):
				child := child
				child.of, child.place, child.path = s.both.property(n.of, name), []string{name}, name
				s.group.Go(func() error { return s.answered(ctx, child) })
			}
		}
	case mapping:
		visit(item, s.step(item), "[*]")
	case list:
		visit(item, "0", "[*]")
	}
}

// visit tries one path, and then those below it.
func (s *sweep) visit(ctx context.Context, n node) error {
	insideItself := slices.Contains(n.within, n.of.name)
	if insideItself || slices.Contains(s.data.Elsewhere[n.String()], n.path) {
		return nil
	}
	if n.Of != nil && slices.Equal(n.place, itsName) {
		return nil // it says where the request goes
	}
	isHome := func(definition string) bool { // a subresource may write other fields than the resource
		return slices.Contains(s.data.Homes[definition], n.whole().String())
	}
	if len(s.data.Homes[n.of.name]) > 0 && (n.home == "" || isHome(n.home)) {
		n.home, n.at = n.of.name, len(n.path)
	}
	if n.home != "" && !isHome(n.home) {
		tested, leads := s.wanted(n.home, n.path[n.at:])
		if !tested {
			if leads {
				s.children(ctx, n)
			}
			return nil
		}
	}
	shape := n.of.shape()
	withItsList := strings.HasSuffix(n.path, "[*]") && (shape == object || shape == mapping || shape == list)
	var folded bool
	var err error
	switch {
	case n.untried != "":
		err = s.note(&n, n.untried, s.untried, &s.counts.NotTried)
	case !withItsList: // otherwise it was tried with what it is in
		folded, err = s.values(ctx, &n)
	}
	if err == nil && !folded {
		s.children(ctx, n)
	}
	return err
}

// differed notes a path in a definition for all kinds with that definition.
func (s *sweep) differed(definition, path string) {
	if s.differs[definition] == nil {
		s.differs[definition] = map[string]bool{}
	}
	s.differs[definition][path] = true
}

// wanted reports whether a path in a definition differed in the home of the definition, and whether
// it leads to one that did.
func (s *sweep) wanted(definition, path string) (differed, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.differs[definition] {
		leads = leads || strings.HasPrefix(one, path)
	}
	return s.differs[definition][path], leads
}

// values tries the values of a path. folded means that the paths below it say nothing more, because
// one release drops or refuses all of it.
func (s *sweep) values(ctx context.Context, n *node) (folded bool, err error) {
	bases, tried, last := n.bases, []string{}, n.place[len(n.place)-1]
	first := s.smallest(n.of, 0)
	if with, ok := s.data.Companions[n.in][last]; ok {
		above := n.place[:len(n.place)-1]
		beside, _ := get(bases[0], above)
		around, _ := beside.(tree)
		bases = append([]any{s.set(bases[0], n.root, above, merge(around, with))}, bases...)
		if with, ok := with[last]; ok {
			first = with
		}
	}
	set := func(value any, label string, fixed bool) (t trial, err error) {
		for i, base := range bases {
			this, err := s.try(ctx, n.Resource, &attempt{
				object: s.set(base, n.root, n.place, value), root: n.root, target: n.place, fixed: fixed, tried: map[string]int{},
			})
			if err != nil {
				return t, err
			}
			if i == 0 || this.accepted() > t.accepted() {
				t = this
			}
			if t.accepted() == 2 {
				break
			}
		}
		if t.accepted() == 0 {
			return t, nil
		}
		tried = append(tried, label)
		return t, s.judge(ctx, n, &t, label)
	}
	members := n.of.members()
	n.below = n.inherited
	now, has := get(bases[0], n.place)
	if has && isContainer(now) {
		first = now
	}
	if shape := n.of.shape(); n.Of != nil && !has && (shape == object || shape == mapping || shape == list) {
		if ignored, err := s.ignored(ctx, n); ignored || err != nil {
			return true, cmp.Or(err, s.note(n, "", nil, &s.counts.Judged))
		}
	}
	one, err := set(first, recorded.FieldOne, len(members) > 0)
	if has && err == nil && one.accepted() == 0 { // the value that the object around it was accepted with
		supports, last := one.supports, one.last
		one, err = set(now, recorded.FieldOne, true)
		one.supports, one.last = supports, last
	}
	if err != nil {
		return false, err
	}
	if n.of.shape() == text && len(members) == 0 {
		members = one.supports
	}
	for _, member := range members {
		if _, err := set(member, member, true); err != nil {
			return false, err
		}
	}
	if _, err := set(n.of.zero(), recorded.FieldZero, true); err != nil {
		return false, err
	}
	isFound := slices.ContainsFunc(n.found, func(c found) bool { return c.value == recorded.FieldOne })
	if one.accepted() == len(s.sides) && !isFound { // otherwise other values say nothing more
		for _, value := range s.odd(n.of, members) {
			object := s.set(one.object, n.root, n.place, value)
			t, err := s.try(ctx, n.Resource, &attempt{object: object, root: n.root, target: n.place, fixed: true, once: true})
			if err == nil && t.accepted() > 0 {
				label := strings.Trim(string(encode(value)), `"`)
				tried = append(tried, label)
				err = s.judge(ctx, n, &t, label)
			}
			if err != nil {
				return false, err
			}
		}
	}
	s.settle(n, tried)
	if err := s.change(ctx, n, one); err != nil {
		return false, err
	}
	n.inherited = n.below
	if !n.judged {
		return one.forbidden, s.note(n, one.last, s.refused, &s.counts.RefusedAlike)
	}
	if one.accepted() > 0 {
		n.bases = []any{one.object} // and, if a repair is in the way of a path below, one without repairs
		if plain := s.set(bases[len(bases)-1], n.root, n.place, s.smallest(n.of, 0)); !reflect.DeepEqual(plain, one.object) {
			n.bases = append(n.bases, plain)
		}
	}
	return one.folded, s.note(n, "", nil, &s.counts.Judged)
}
