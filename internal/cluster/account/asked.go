package account

import (
	"net/url"
	"slices"
	"strings"
)

// asked is what a server says that it was asked. The zero value is a record that does not say.
type asked struct {
	verb         string // of the API, as k8s.io/apiserver makes it out of the method, the path and the query
	uri          string // path and query
	withoutQuery bool   // the record leaves the query out
}

// contrasted notes in every account of a request that a peer had passed on what it was asked otherwise than the server that the client
// had sent it to. Both bear the ID of one request. Where no account is left of what the client asked, nothing is noted; where it sent the
// request again, it asked the same.
func contrasted(all []passage) []passage {
	sent := map[string][]asked{} // by the client
	for _, p := range all {
		if !p.Rerouted {
			sent[p.Operation] = append(sent[p.Operation], p.asked)
		}
	}
	out := slices.Clone(all)
	for i := range out {
		p := &out[i]
		if !p.Rerouted {
			continue
		}
		for _, first := range sent[p.Operation] {
			if p.Altered = p.asked.unlike(first); p.Altered == "" {
				break
			}
		}
	}
	return out
}

// unlike says what a server was asked otherwise than the one before, in the form of [history.Hop.Altered]. Paths and queries are the same
// if they mean the same: upstream's proxy sorts the query's parameters and encodes them anew. What either of the two does not say
// is not different.
func (a asked) unlike(before asked) string {
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

// segments are those of a path. A slash that is part of one (%2F) does not end it.
func segments(u *url.URL) []string {
	all := strings.Split(u.EscapedPath(), "/")
	for i, s := range all {
		if plain, err := url.PathUnescape(s); err == nil {
			all[i] = plain
		}
	}
	return all
}

// unlikeQuery says how one query differs from the one before, or nothing. The order of a parameter's values counts, that of the
// parameters does not.
func unlikeQuery(got, was url.Values) string {
	lost, added := url.Values{}, url.Values{}
	for name, values := range was {
		if !slices.Equal(values, got[name]) {
			lost[name] = values
		}
	}
	for name, values := range got {
		if !slices.Equal(values, was[name]) {
			added[name] = values
		}
	}
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
