package fieldskew

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxRepairs bounds how often one object is changed, in the hope that both servers accept it.
const maxRepairs = 24

// attempt is an object on its way to being accepted.
type attempt struct {
	object any
	root   schema
	target []string // the place that is tested; nil for the whole object
	// fixed means that the value at the target is what is tested, and must not be changed.
	fixed  bool
	once   bool           // it is not repaired
	tried  map[string]int // how many candidates were tried, by the place
	before any            // the object before something beside the target was removed
}

// says returns what a refusal says of the target, for causes of one type. Some servers name a place
// around the target where they do not support its value.
func (a *attempt) says(refusal metav1.Status, of metav1.CauseType) (messages []string) {
	if refusal.Details == nil || a.target == nil {
		return nil
	}
	for _, cause := range refusal.Details.Causes {
		place := fieldPlace(cause.Field)
		value, _ := get(a.object, a.target)
		around := of == metav1.CauseTypeFieldValueNotSupported && under(a.target, place) && strings.Contains(cause.Message, ": "+string(encode(value))+": ")
		if cause.Type == of && (slices.Equal(place, a.target) || around) {
			messages = append(messages, cause.Message)
		}
	}
	return messages
}

// repair changes the object as a refusal says. It reports whether it changed something.
func (s *sweep) repair(a *attempt, refusal metav1.Status) (changed bool) {
	if refusal.Details == nil {
		return false
	}
	for _, cause := range refusal.Details.Causes {
		place := fieldPlace(cause.Field)
		if len(place) == 0 {
			continue
		}
		offered := cause.Type == metav1.CauseTypeFieldValueNotSupported
		required := cause.Type == metav1.CauseTypeFieldValueRequired
		of, _ := s.both.at(a.root, place)
		if item := s.both.item(of); of.shape() == list && item.shape() == text && !required {
			of, place = item, append(place, "0")
		}
		if !of.known() || a.target != nil && a.fixed && slices.Equal(place, a.target) {
			continue
		}
		now, present := get(a.object, place)
		switch shape := of.shape(); {
		case required && (!present || shape == list || shape == mapping):
			changed = s.put(a, place, s.smallest(of, 0)) || changed
		case !present:
		case cause.Type == metav1.CauseTypeForbidden: // it, or something beside it
			if !under(a.target, place) {
				a.object, changed = remove(a.object, place), true
			} else {
				changed = s.alone(a, place) || changed
			}
		case shape == object && (required || cause.Type == metav1.CauseTypeFieldValueInvalid):
			changed = s.member(a, place, of) || changed
		case shape == text || shape == number || shape == truth:
			candidates := s.candidates(of)
			if offered {
				candidates = nil
				for _, member := range supported(cause.Message) {
					candidates = append(candidates, member)
				}
			}
			key := key(place) + string(cause.Type)
			if n := a.tried[key]; n < len(candidates) && reflect.DeepEqual(now, candidates[n]) {
				a.tried[key]++
			}
			if n := a.tried[key]; n < len(candidates) {
				a.tried[key]++
				changed = s.put(a, place, candidates[n]) || changed
			}
		}
	}
	return changed
}

// alone removes one value beside the target, or beside the way to it from a place: one after the
// other, until the right one is gone. What the schema requires stays.
func (s *sweep) alone(a *attempt, place []string) bool {
	key := key(place) + " alone"
	if a.tried[key] == 0 {
		a.before = a.object
	}
	n := 0
	for depth := range a.target {
		above := a.target[:depth]
		beside, _ := get(a.before, above)
		siblings, ok := beside.(tree)
		if !ok || depth < len(place)-1 {
			continue
		}
		of, _ := s.both.at(a.root, above)
		for _, name := range slices.Sorted(maps.Keys(siblings)) {
			if name == a.target[depth] || slices.Contains(of.Required, name) {
				continue
			}
			if n == a.tried[key] {
				a.tried[key]++
				a.object = remove(a.before, append(slices.Clone(above), name))
				return true
			}
			n++
		}
	}
	return false
}

// member sets one more field of an object that lacks one: one field after the other, until one of
// them is right.
func (s *sweep) member(a *attempt, place []string, of schema) bool {
	key := key(place)
	names := slices.Sorted(maps.Keys(of.Properties))
	for a.tried[key] < len(names) {
		n := a.tried[key]
		a.tried[key]++
		if n > 0 { // the one before was wrong
			if before := append(slices.Clone(place), names[n-1]); !under(a.target, before) {
				a.object = remove(a.object, before)
			}
		}
		next := append(slices.Clone(place), names[n])
		if _, ok := get(a.object, next); !ok {
			return s.put(a, next, s.smallest(s.both.property(of, names[n]), 0))
		}
	}
	return false
}

func (s *sweep) put(a *attempt, place []string, value any) bool {
	if a.target != nil && a.fixed && under(a.target, place) {
		return false
	}
	a.object = s.set(a.object, a.root, place, value)
	return true
}

// set returns an object with a value at a place. It makes the way there.
func (s *sweep) set(object any, root schema, place []string, value any) any {
	return put(object, place, 0, value, func(above []string) any {
		of, _ := s.both.at(root, above)
		if shape := of.shape(); shape == list || shape == mapping {
			return of.zero()
		}
		return s.smallest(of, 0)
	})
}

// quoted matches the values in the message of a refusal.
var quoted = regexp.MustCompile(`"([^"\\]*)"`)

// supported are the values that a refusal offers. A server that does not support a value names
// those that it supports, and says so nowhere else. The first quoted value is the refused one.
// Source: NotSupported in k8s.io/apimachinery/pkg/util/validation/field/errors.go.
func supported(message string) (members []string) {
	for i, match := range quoted.FindAllStringSubmatch(message, -1) {
		if i > 0 {
			members = append(members, match[1])
		}
	}
	return members
}
