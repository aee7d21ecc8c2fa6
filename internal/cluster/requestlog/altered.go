package requestlog

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// requested is what a server logged of the content of a request. The zero value says nothing.
type requested struct {
	verb         string // of the API, as k8s.io/apiserver makes it out of the method, the path and the query
	uri          string // path and query
	withoutQuery bool   // the log leaves the query out
	agent        string // User-Agent; empty if the log leaves it out
}

// markAltered notes, in every record of a request that a peer passed on, what differs from the
// request that the client sent. Both have the same ID. Nothing is noted where no record of the
// client's request is left. A client that repeats a request sends the same.
func markAltered(all []handled) []handled {
	sent := map[string][]requested{} // by the client
	for _, r := range all {
		if !r.Rerouted {
			sent[r.Operation] = append(sent[r.Operation], r.requested)
		}
	}
	out := slices.Clone(all)
	for i := range out {
		r := &out[i]
		if !r.Rerouted {
			continue
		}
		for _, first := range sent[r.Operation] {
			if r.Altered = r.requested.unlike(first); r.Altered == "" {
				break
			}
		}
	}
	return out
}

// unlike says what differs from the request before, in the form of [history.Hop.Altered]. Paths and
// queries are equal if they mean the same: upstream's proxy sorts and encodes the query's
// parameters anew. What one of the two does not say is no difference.
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
		if difference := unlikeQuery(got.Query(), was.Query()); difference != "" && !a.withoutQuery && !before.withoutQuery {
			add("query", difference)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + ": " + strings.Join(differences, ", ")
}

// segments are those of a path. A slash inside a segment (%2F) does not end it.
func segments(u *url.URL) []string {
	all := strings.Split(u.EscapedPath(), "/")
	for i, s := range all {
		if plain, err := url.PathUnescape(s); err == nil {
			all[i] = plain
		}
	}
	return all
}

// unlikeQuery says how a query differs from the one before; "" if it does not. The order of a
// parameter's values counts, the order of the parameters does not.
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
