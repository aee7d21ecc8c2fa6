package findings

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Seen is a kind of violation, shown by a run, that no finding explains.
type Seen struct {
	Signature invariant.Signature
	Grade     invariant.Grade
	// Sentence describes one violation. It may contain text from a server.
	Sentence string
	// Scenario, From and To are those of the run. Reproduce is its command line.
	Scenario, From, To, Reproduce string
}

// Draft writes findings of the user's own, which [ReadFile] can read at once. There is one finding
// for each signature without its circumstances. Its predicate matches exactly the signatures that
// were seen. Numbers begin at first, or at 1000 if that is greater. Duplicates are written once. A
// comment names the fields that only a person can write.
func Draft(seen []Seen, first int) []byte {
	kinds := map[invariant.Signature][]Seen{}
	for _, s := range seen {
		core := s.Signature.Core()
		kinds[core] = append(kinds[core], s)
	}
	order := slices.SortedFunc(maps.Keys(kinds), invariant.Signature.Compare)
	var b strings.Builder
	for i, core := range order {
		draft(&b, max(first, leastOwn)+i, kinds[core])
	}
	return []byte(b.String())
}

// draft writes the finding of one kind.
func draft(b *strings.Builder, number int, seen []Seen) {
	slices.SortStableFunc(seen, func(x, y Seen) int { return x.Signature.Compare(y.Signature) })
	one := seen[0]
	var scenarios, versions []string
	for _, s := range seen {
		scenarios, versions = append(scenarios, s.Scenario), append(versions, s.From+" with "+s.To)
	}
	fmt.Fprintf(b, `---
# Drafted from a run. The predicate under "matches" takes what was seen, and no more. Only a person
# can write these fields: title (a few words), symptom (what a user of the API sees), impact, avoid,
# demands, versions, cause, upstream, confirmed; and decide on disclosure (docs/findings.md).
apiVersion: %s
kind: %s
number: %d
title: %s
symptom: %s
versions: %s
grade: %s
disclosure: %s
scenarios: %s
`, APIVersion, Kind, number, quoted(one.Signature.Core().String()), quoted(cmp.Or(one.Sentence, "not told")), quoted(listed(versions)),
		one.Grade, Undecided, flow(unique(scenarios)))
	if one.Reproduce != "" {
		fmt.Fprintf(b, "reproduce: %s\n", quoted(one.Reproduce))
	}
	b.WriteString("matches:\n")
	signatures := slices.CompactFunc(slices.Clone(seen), func(x, y Seen) bool { return x.Signature == y.Signature })
	for _, s := range signatures {
		for n, field := range fieldsOf(exactly(s.Signature)) {
			lead := "    "
			if n == 0 {
				lead = "  - "
			}
			fmt.Fprintf(b, "%s%s: %s\n", lead, field.name, flow(field.values))
		}
	}
}

// exactly is the predicate that matches this signature. It also matches a signature whose setup has
// additional parts.
func exactly(s invariant.Signature) Match {
	return Match{
		Invariants: []string{s.Invariant}, Mechanisms: []invariant.Mechanism{s.Mechanism}, Roles: []invariant.Role{s.Roles},
		Answers: []string{s.Answer}, Ways: []invariant.Way{s.Way}, Reach: []invariant.Reach{s.Reach}, Wrong: []string{s.Wrong},
		Obstacles: []invariant.Obstacle{s.Obstacle}, Before: []invariant.Obstacle{s.Before}, Changes: []invariant.Change{s.Change},
		Since: []invariant.Since{s.Since}, Setups: []string{s.Setup},
		Extensions: []invariant.Extension{s.Extension}, Twins: []invariant.Twin{s.Twin},
	}
}

// matchField is a field of a Match as written in YAML.
type matchField struct {
	name   string
	values []string
}

// fieldsOf lists the fields of a predicate in their order. All of them are lists of strings.
func fieldsOf(m Match) (fields []matchField) {
	v := reflect.ValueOf(m)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := matchField{name: name}
		for n := range v.Field(i).Len() {
			field.values = append(field.values, v.Field(i).Index(n).String())
		}
		fields = append(fields, field)
	}
	return fields
}

// quoted is a string as written in YAML. Go's escapes are valid in YAML too (YAML 1.2, section
// 5.7). A line break is escaped, so that nothing in the string can end the document.
func quoted(s string) string { return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD")) }

func flow(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoted(w)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func listed(words []string) string { return strings.Join(unique(words), ", ") }

// unique leaves out repeated words.
func unique(words []string) (out []string) {
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// Next is the smallest number that another finding of the user's own may have.
func (c Catalogue) Next() int {
	next := leastOwn
	for _, f := range c {
		next = max(next, f.Number+1)
	}
	return next
}
