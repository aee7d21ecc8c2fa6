package workload

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// hostileShare is the share, in percent, of hostile traffic with forged headers.
const hostileShare = 33

// Forgery is a set of headers that a hostile client sends. By some of these headers a peer says
// that it has forwarded a request, and for which user. Others are absurd. None may make a
// difference. A header of the hop has one value only, the one that a peer sends: the load goes to
// released servers too, and tests whether they drop what is plain.
type Forgery struct {
	Name   string
	Header http.Header
}

// ForgedHop is the name of the forgery that says that a peer has forwarded the request. Schedules of
// the simulator choose it.
const ForgedHop = "hop"

// Forgeries are all forgeries. Impersonate-User is not among them, because a user may be allowed to
// use it. X-Forwarded-For is not among them either, because the audit logs show by it which server
// has forwarded a request.
var Forgeries = []Forgery{
	{ForgedHop, http.Header{"X-Kubernetes-Peer-Proxied": {"true"}}},
	{"hop-of-1.28", http.Header{"X-Kubernetes-Apiserver-Rerouted": {"true"}}},
	{"admin", http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}},
	{"apiserver", http.Header{
		"X-Remote-User": {"system:apiserver"}, "X-Remote-Group": {"system:masters", "system:authenticated"}, "X-Remote-Uid": {"0"},
	}},
	{"anonymous", http.Header{"X-Remote-User": {"system:anonymous"}, "X-Remote-Extra-Scopes": {"everything"}}},
	{"nobody", http.Header{"X-Remote-User": {""}}},
	{"two-users", http.Header{"X-Remote-User": {"one", "another"}}},
	{"broken-escape", http.Header{"X-Remote-Extra-A%2fb%00": {"%00", strings.Repeat("%", 1000)}}},
	{"long-name", http.Header{"X-Remote-User": {strings.Repeat("a", 20_000)}}},
	{"many-groups", http.Header{"X-Remote-Group": manyGroups(300)}},
	{"everything", http.Header{
		"X-Kubernetes-Peer-Proxied": {"true"}, "X-Kubernetes-Apiserver-Rerouted": {"true"},
		"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Skewproof-Refused": {"true"},
	}},
	{"other-proxies", http.Header{"Via": {"1.1 a, 1.1 b, 1.1 c"}, "Max-Forwards": {"0"}, "Warning": {`199 - "nonsense"`}}},
}

func manyGroups(n int) (groups []string) {
	for i := range n {
		groups = append(groups, fmt.Sprintf("system:masters-%d", i))
	}
	return groups
}

// ForgedHeader returns the headers of the request's forgery; nil if it has none. The caller must
// not change them.
func (r *Request) ForgedHeader() http.Header {
	if i := slices.IndexFunc(Forgeries, func(f Forgery) bool { return f.Name == r.Forged }); i >= 0 {
		return Forgeries[i].Header
	}
	return nil
}

// ForgeryNames lists the names of all forgeries.
func ForgeryNames() (names []string) {
	for _, f := range Forgeries {
		names = append(names, f.Name)
	}
	return names
}
