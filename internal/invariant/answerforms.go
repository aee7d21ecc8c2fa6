package invariant

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// These classes of answers have a rule of their own.
const (
	classUnauthenticated = "401"
	classThrottled       = "429"
	classRefused         = "403"
)

// class is the kind of an answer. For verbs other than create, 201 and 202 count as 200, because
// the kind of success depends on the object: a patch creates it or not, a deletion is complete or
// goes on.
func class(op *history.Operation) string {
	switch op.Status {
	case http.StatusCreated, http.StatusAccepted:
		if op.Verb != "create" {
			return "200"
		}
	case http.StatusGone:
		if !namesVersion(op) {
			return "410 without a version"
		}
	case http.StatusNotFound:
		return answerKind(&history.Operation{Sent: op.Sent, Received: &history.Received{Status: op.Status, Missing: op.Missing}})
	}
	return fmt.Sprint(op.Status)
}

// namesVersion reports whether a request names a resource version, which its server may no longer
// have: then the answer is 410. Any version (0) and the newest one (none) are always there.
func namesVersion(op *history.Operation) bool {
	_, query, _ := strings.Cut(op.Path, "?")
	values, err := url.ParseQuery(query)
	version := values.Get("resourceVersion")
	return err != nil || version != "" && version != "0" || values.Get("continue") != ""
}

// form holds everything that decides the class of an answer, except the user and the existing
// objects. Two requests of one form differ only in these two.
type form struct {
	verb string
	key
	transport                  string // the client if the request asks for an upgrade; "" for a plain request
	accept, contentType, query string
	namespaced, named          bool
}

// passing holds the query parameters that say nothing about the kind of the answer.
var passing = []string{"timeoutSeconds", "continue", "limit", "allowWatchBookmarks", "resourceVersion", "fieldManager", "force"}

func formOf(op *history.Operation) form {
	_, query, _ := strings.Cut(op.Path, "?")
	if values, err := url.ParseQuery(query); err == nil {
		for _, name := range passing {
			values.Del(name)
		}
		query = values.Encode()
	}
	return form{
		op.Verb, key{op.GVR, op.Subresource}, transportOf(op), op.Accept, op.ContentType, query,
		op.Namespace != "", op.Name != "",
	}
}

// transportOf returns the client if the request asked for an upgrade, and "" otherwise.
func transportOf(op *history.Operation) string {
	if op.AsksForUpgrade() {
		return op.Client
	}
	return ""
}

// answers counts the answers to requests of one form, by class.
type answers struct {
	all   int
	class map[string]int
}

func (a *answers) add(class string) {
	a.all++
	if a.class == nil {
		a.class = map[string]int{}
	}
	a.class[class]++
}

// dependent reports whether a class of answer depends on the existing objects or on the body of the
// request. A server that gives such an answer may give another one next time.
func (k form) dependent(class string) bool {
	switch class {
	case "200", "201":
		return k.transport != history.ClientSocket // 200 means that there is no upgrade
	case "404 object": // or its namespace
		return k.named || k.verb == "create"
	case "409", "412":
		return k.hasBody() || k.verb == "delete"
	case "410":
		return !k.named && !k.hasBody()
	case "400", "422":
		return k.hasBody()
	}
	return false
}

func (k form) hasBody() bool { return k.verb == "create" || k.verb == "update" || k.verb == "patch" }

// contentUnknown reports whether the request had a body whose type is not in the history. Older
// histories do not record the type.
func (k form) contentUnknown() bool { return k.hasBody() && k.contentType == "" }

func (a *answers) has(kind func(class string) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(a.class)), kind)
}

// doing says in a signature what servers did with requests of one form. It does not name the single
// answers that depend on the objects, because it is chance which of these the servers gave.
func (a *answers) doing(to form) string {
	if a.has(to.dependent) {
		return "carry it out"
	}
	return "answer " + strings.Join(slices.Sorted(maps.Keys(a.class)), " or ")
}

// words lists for people how often servers gave each class of answer.
func (a *answers) words() string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(a.class)) {
		all = append(all, fmt.Sprintf("%s (%d times)", class, a.class[class]))
	}
	return strings.Join(all, ", ")
}

func succeeds(class string) bool { return strings.HasPrefix(class, "2") }

// directAnswers holds the answers of servers to requests for resources that they serve themselves.
type directAnswers struct {
	byForm map[form]*answers
	// refused has an entry for each permission for which any answer was seen. The entry is true if
	// a 403 was seen that is not the authorizer's decision about the user.
	refused map[permission]bool
	byUser  map[string][]*observation // in time order
}

func (f *Facts) directAnswers() *directAnswers {
	d := &directAnswers{byForm: map[form]*answers{}, refused: map[permission]bool{}, byUser: map[string][]*observation{}}
	for _, o := range f.observations {
		op := o.op
		if !o.ready || op.Status == 0 || op.Status >= http.StatusInternalServerError || op.Failure == history.FailureCanceled ||
			o.resource != nil && o.resource.key != (key{}) && o.local != claimYes {
			continue
		}
		d.byUser[op.User] = append(d.byUser[op.User], o)
		if op.GVR.Resource == "" || resourceNotFound(op) || truncated404(op) || o.forwarded() {
			continue
		}
		_, decided := decision(op)
		switch class(op) {
		case classUnauthenticated, classThrottled:
		case classRefused:
			p := permissionOf(o)
			d.refused[p] = d.refused[p] || !decided
		default:
			p := permissionOf(o)
			if !d.refused[p] {
				d.refused[p] = false // known from now on
			}
			if !f.ofOwnNamesake(o) {
				add(d.byForm, o)
			}
		}
	}
	return d
}

// crossedAnswers returns the answers to requests that had to cross.
func (f *Facts) crossedAnswers() map[form]*answers {
	all := map[form]*answers{}
	for _, o := range f.observations {
		if f.ruledHere(o) {
			add(all, o)
		}
	}
	return all
}

func add(all map[form]*answers, o *observation) {
	k := formOf(o.op)
	if all[k] == nil {
		all[k] = &answers{}
	}
	all[k].add(class(o.op))
}
