package requestlog

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// requested is a server's log of the content of a request. In the zero value nothing is known.
type requested struct {
	verb  string // the API verb that k8s.io/apiserver derives from the method, the path and the query
	uri   string // path and query
	agent string // User-Agent
}

// markAltered notes, in every record of a forwarded request, the difference from the client's
// request. Both have the same ID. It notes nothing if there is no record of the client's request. A
// client that repeats a request sends the same content.
func markAltered(all []handled) {
	sent := map[string][]requested{} // by the client
	for _, r := range all {
		if !r.Rerouted {
			sent[r.Operation] = append(sent[r.Operation], r.requested)
		}
	}
	for _, r := range all {
		if !r.Rerouted {
			continue
		}
		for _, first := range sent[r.Operation] {
			if r.Altered = r.requested.unlike(first); r.Altered == "" {
				break
			}
		}
	}
}

// unlike returns the difference from the request before, in the form of [history.Hop.Altered].
// Paths and queries are equal if they have the same meaning, because upstream's proxy sorts and
// encodes the query's parameters again. If one of the two logs does not have a field, the field is
// not compared.
func (a requested) unlike(before requested) string {
	var parts, differences []string
	add := func(part, difference string) {
		parts, differences = append(parts, part), append(differences, difference)
	}
	if a.verb != before.verb && a.verb != "" && before.verb != "" {
		add("verb", a.verb+" rather than "+before.verb)
	}
	got, err := url.ParseRequestURI(a.uri)
	was, errBefore := url.ParseRequestURI(before.uri)
	if err == nil && errBefore == nil {
		if !slices.Equal(segments(got), segments(was)) {
			add("path", got.EscapedPath()+" rather than "+was.EscapedPath())
		}
		if difference := unlikeQuery(got.Query(), was.Query()); difference != "" {
			add("query", difference)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + ": " + strings.Join(differences, ", ")
}

// segments returns the segments of a path. A slash in a segment (%2F) does not end it.
func segments(u *url.URL) []string {
	all := strings.Split(u.EscapedPath(), "/")
	for i, s := range all {
		if plain, err := url.PathUnescape(s); err == nil {
			all[i] = plain
		}
	}
	return all
}

// unlikeQuery describes how a query differs from the one before; "" if it does not. The order of a
// parameter's values matters, but the order of the parameters does not.
func unlikeQuery(got, was url.Values) string {
	lost, added := maps.Clone(was), maps.Clone(got)
	maps.DeleteFunc(lost, func(name string, values []string) bool { return slices.Equal(values, got[name]) })
	maps.DeleteFunc(added, func(name string, values []string) bool { return slices.Equal(values, was[name]) })
	switch {
	case len(lost) > 0 && len(added) > 0:
		return added.Encode() + " rather than " + lost.Encode()
	case len(lost) > 0:
		return "without " + lost.Encode()
	case len(added) > 0:
		return "with " + added.Encode()
	default:
		return ""
	}
}
