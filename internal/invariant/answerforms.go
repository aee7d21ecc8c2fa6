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

// The classes of answers that get a rule of their own.
const (
	classUnauthenticated = "401"
	classThrottled       = "429"
	classRefused         = "403"
)

// class is the kind of an answer. Which of several kinds of success it is depends on the object:
// a patch creates it or not, a deletion is complete or goes on.
func class(op *history.Operation) string {
	switch op.Status {
	case http.StatusCreated, http.StatusAccepted:
		if op.Verb != "create" {
			return "200"
		}
	case http.StatusNotFound:
		return answerKind(&history.Operation{Status: op.Status, Missing: op.Missing})
	}
	return fmt.Sprint(op.Status)
}

// form is what decides which class of answer a request gets, beside its user and the objects that
// there are: two requests of one form differ in these only.
type form struct {
	verb string
	key
	transport                  string // the client that asks for an upgrade; "" for a plain request
	accept, contentType, query string
	namespaced, named          bool
}

// passing are the parameters of a query that say nothing about the kind of the answer.
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

// transportOf is the client if it asked for an upgrade, and "" for any other.
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

// dependent reports whether a class of answer depends on the objects that there are, or on the body
// of the request: a server that gives it may give another one next time.
func (k form) dependent(class string) bool {
	switch class {
	case "200", "201":
		return k.transport != history.ClientSocket // 200 means that there is no upgrade
	case "404 object": // or its namespace
		return k.named || k.verb == "create"
	case "409", "412":
		return k.hasBody() || k.verb == "delete"
	case "410": // the version from which to read is too old
		return !k.named && !k.hasBody()
	case "400", "422":
		return k.hasBody()
	}
	return false
}

func (k form) hasBody() bool { return k.verb == "create" || k.verb == "update" || k.verb == "patch" }

// contentUnknown reports whether the request had a body of a type that the history does not say, as
// older histories do not.
func (k form) contentUnknown() bool { return k.hasBody() && k.contentType == "" }

func (a *answers) has(kind func(class string) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(a.class)), kind)
}

// doing says in a signature what servers did with requests of one form. Which of the answers that
// depend on the objects they gave is chance.
func (a *answers) doing(to form) string {
	if a.has(to.dependent) {
		return "carry it out"
	}
	return "answer " + strings.Join(slices.Sorted(maps.Keys(a.class)), " or ")
}

// words lists how often each class of answer was given, for people.
func (a *answers) words() string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(a.class)) {
		all = append(all, fmt.Sprintf("%s (%d times)", class, a.class[class]))
	}
	return strings.Join(all, ", ")
}

func succeeds(class string) bool { return strings.HasPrefix(class, "2") }

// directAnswers are the answers of servers to requests for what they serve themselves.
type directAnswers struct {
	byForm map[form]*answers
	// refused has, for each permission, whether a 403 was seen that is not the authorizer's word
	// about the user; the permission is known if any answer was.
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
			add(d.byForm, o)
		}
	}
	return d
}

// crossedAnswers are the answers to requests that had to cross.
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
