package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim/tape"
)

// profileShare is how many percent of the requests are of a profile's own kind, as in the real load (internal/traffic/profile.go).
var profileShare = map[scenario.Traffic]int{
	scenario.WatchTraffic: 60, scenario.SubresourceTraffic: 60, scenario.FormatTraffic: 60, scenario.LargeListTraffic: 6, scenario.DiscoveryTraffic: 15,
	scenario.UpgradeTraffic: 15,
}

// sparseness is by how much the rate of [scenario.SparseTraffic] is lower.
const sparseness = 100

// special is a request of the profile's own kind to a server; false if it is not the turn of one.
func (s *Simulator) special(server int) (Request, bool) {
	if s.load.profile == scenario.LargeListTraffic {
		if r, ok := s.graze(); ok {
			return r, true
		}
	}
	share := profileShare[s.load.profile]
	if share == 0 || s.tape.Choose(tape.Workload, 100) >= share {
		return Request{}, false
	}
	switch s.load.profile {
	case scenario.LargeListTraffic:
		return s.listHerd()
	case scenario.DiscoveryTraffic:
		return s.rareDiscovery(server)
	}
	p, ok := s.anyProbe()
	if !ok {
		return Request{}, false
	}
	r := Request{GVR: p.Resource.GVR, Subresource: p.Subresource, Name: "absent"}
	switch s.load.profile {
	case scenario.WatchTraffic:
		r.Verb, r.For = "watch", time.Duration(1+s.tape.Choose(tape.Workload, 10))*time.Second
		return r, p.Subresource == "" && slices.Contains(p.Resource.Verbs, "watch")
	case scenario.UpgradeTraffic:
		r.Upgrade, r.Verb, r.For = true, "watch", time.Duration(1+s.tape.Choose(tape.Workload, 5))*time.Second
		if p.Subresource != "" || !slices.Contains(p.Resource.Verbs, "watch") {
			r.GVR, r.Subresource = history.GVR{Version: "v1", Resource: "pods"}, traffic.PodConnections[s.tape.Choose(tape.Workload, len(traffic.PodConnections))]
			r.Verb = "get"
		}
		return r, true
	case scenario.SubresourceTraffic:
		if p.Subresource == "" && len(p.Resource.Subresources) > 0 {
			p.Subresource = p.Resource.Subresources[s.tape.Choose(tape.Workload, len(p.Resource.Subresources))].Name
		}
		return s.probe(p), p.Subresource != "" && p.Subresource != "proxy"
	default: // formats
		return s.format(p)
	}
}

// anyProbe is one that half of the time only some servers serve.
func (s *Simulator) anyProbe() (traffic.Probe, bool) {
	class := traffic.Everywhere
	if s.tape.Choose(tape.Workload, 2) == 0 {
		class = traffic.Somewhere
	}
	for _, c := range []traffic.Class{class, traffic.Everywhere} {
		if probes := s.load.probes[c]; len(probes) > 0 {
			return probes[s.tape.Choose(tape.Workload, len(probes))], true
		}
	}
	return traffic.Probe{}, false
}

// What clients read, and what they send: the simulator's apiservers write JSON, and YAML, which JSON is.
var (
	accepts      = [...]string{"application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/cbor,application/json", "application/cbor", "*/*"}
	contentTypes = [...]string{
		"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor",
	}
)

func (s *Simulator) format(p traffic.Probe) (Request, bool) {
	r := s.probe(p)
	r.Accept = accepts[s.tape.Choose(tape.Workload, len(accepts))]
	if r.Verb == "patch" {
		r.ContentType = contentTypes[s.tape.Choose(tape.Workload, len(contentTypes))]
	}
	return r, r.Verb != "watch" && r.Verb != history.VerbTable
}

// rareDiscovery is what clients of other ages and kinds ask for: the server's own view, the format without aggregation, the merged document if it
// is another than some earlier one, and the first version that it lists of something.
func (s *Simulator) rareDiscovery(server int) (Request, bool) {
	path := [...]string{"/apis", "/api"}[s.tape.Choose(tape.Workload, 2)]
	last := s.load.last[server]
	switch s.tape.Choose(tape.Workload, 4) {
	case 0:
		return Request{Verb: history.VerbNoPeer, Path: path}, true
	case 1:
		return Request{Verb: history.VerbLegacy, Path: path, Accept: "application/json"}, true
	case 2:
		r := Request{Verb: history.VerbDiscovery, Path: "/apis"}
		if tags := s.load.tags; len(tags) > 0 { // a client may have slept since it was given one
			r.IfNoneMatch = tags[s.tape.Choose(tape.Workload, len(tags))]
		}
		return r, true
	}
	doc, ok := s.history.Documents[last.document]
	if !ok || len(doc.Resources) == 0 {
		return Request{}, false
	}
	chosen := doc.Resources[s.tape.Choose(tape.Workload, len(doc.Resources))]
	first := slices.IndexFunc(doc.Resources, func(r history.Resource) bool { return r.Group == chosen.Group && r.Resource == chosen.Resource })
	r := doc.Resources[first]
	return Request{Verb: "list", GVR: r.GVR}, slices.Contains(r.Verbs, "list")
}

// edition is a merged document at /apis, as a server last gave it.
type edition struct{ etag, document string }

// noteEdition remembers what a client was given at /apis. "Not modified" says that it has the right document already.
func (s *Simulator) noteEdition(op *operation) {
	if op.Verb != history.VerbDiscovery || op.Path != "/apis" || s.load.last == nil {
		return
	}
	last := &s.load.last[op.at]
	if op.Status == http.StatusNotModified {
		if asked := op.template.request.Header.Get("If-None-Match"); asked != "" {
			op.Document, op.ETag = s.load.editions[asked], cmp.Or(op.ETag, asked)
		}
		return
	}
	if op.Document != "" && op.ETag != "" {
		*last = edition{op.ETag, op.Document}
		if s.load.editions[op.ETag] == "" {
			s.load.tags = append(s.load.tags, op.ETag)
		}
		s.load.editions[op.ETag] = op.Document
	}
}

const (
	// herdSize is how many objects are made for long lists, herdPage how many a page of them has.
	herdSize = 390
	herdPage = 37

	herdPrefix   = "herd-"
	herdSelector = "labelSelector=herd"
)

// graze makes the next object of the herd, until there are enough.
func (s *Simulator) graze() (Request, bool) {
	l := &s.load
	if l.herd == (history.GVR{}) {
		i := slices.IndexFunc(l.probes[traffic.Somewhere], func(p traffic.Probe) bool {
			return p.Subresource == "" && slices.Contains(p.Resource.Verbs, "list") && slices.Contains(p.Resource.Verbs, "create")
		})
		if i < 0 {
			return Request{}, false
		}
		l.herd = l.probes[traffic.Somewhere][i].Resource.GVR
	}
	if l.grazing == herdSize {
		return Request{}, false
	}
	l.grazing++
	return Request{Verb: "create", GVR: l.herd, Name: herdPrefix + itoa(l.grazing)}, true
}

// keeps reports whether a resource is the herd's, in whatever version: nothing else creates or deletes any of it.
func (s *Simulator) keeps(g history.GVR) bool {
	return s.load.herd != (history.GVR{}) && s.load.herd.Group == g.Group && s.load.herd.Resource == g.Resource
}

// listHerd asks for all of it, at once or page by page.
func (s *Simulator) listHerd() (Request, bool) {
	r := Request{Verb: "list", GVR: s.load.herd, Query: herdSelector}
	if s.tape.Choose(tape.Workload, 2) == 1 {
		r.Query += "&limit=" + itoa(herdPage)
	}
	return r, s.load.herd != (history.GVR{})
}

// herded is a list of as much of a herd as a request asks for.
func herded(size int, query url.Values) string {
	from, _ := strconv.Atoi(query.Get("continue"))
	to := size
	next := ""
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < size {
		to = from + limit
		next = itoa(to)
	}
	items := strings.TrimSuffix(strings.Repeat(`{},`, max(0, to-from)), ",")
	return fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, items)
}

// turnPage notes how long a list by label is, and asks for its next page if there is one.
func (s *Simulator) turnPage(op *operation, r Request) {
	if op.Verb != "list" || op.Status != http.StatusOK || op.Failure != history.FailureNone || !strings.Contains(r.Query, herdSelector) {
		return
	}
	var list struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(op.x.body, &list) != nil {
		return
	}
	op.Items, op.More = r.before+len(list.Items), list.Metadata.Continue != ""
	if op.More && !s.driver.over {
		query, _, _ := strings.Cut(r.Query, "&continue=")
		r.Query, r.before = query+"&continue="+list.Metadata.Continue, op.Items
		s.ask(&r, op.Purpose)
	}
}

// readable is the media type that an answer may have, by what its client reads; false if there is none.
func readable(accept string) ([]string, bool) {
	switch {
	case accept == "", strings.Contains(accept, "json"), strings.Contains(accept, "*/*"):
		return jsonHeader, true
	case strings.Contains(accept, "yaml"):
		return yamlHeader, true
	default:
		return nil, false
	}
}

// acceptOf is what a request says that its client reads.
func acceptOf(r *Request) string {
	switch {
	case r.Accept != "":
		return r.Accept
	case r.Verb == history.VerbDiscovery:
		return discovery.AcceptV2
	case r.Verb == history.VerbNoPeer:
		return discovery.AcceptV2NoPeer
	case r.Verb == history.VerbTable:
		return "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	default:
		return "application/json"
	}
}
