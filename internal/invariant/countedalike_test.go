package invariant

import (
	"strconv"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// metrics adds what a server had counted.
func (s *story) metrics(at float64, server string, rerouted ...history.Rerouted) *story {
	s.h.Counted = append(s.h.Counted, history.Counted{Server: server, Incarnation: s.incarnation(server), At: sec(at), Rerouted: rerouted})
	return s
}

func asSample(g history.GVR, code, count int) history.Rerouted {
	return history.Rerouted{Code: strconv.Itoa(code), GVR: g, Count: count}
}

// together is a sample of a server that does not count by resource.
func together(code, count int) history.Rerouted {
	return history.Rerouted{Code: strconv.Itoa(code), Together: true, Count: count}
}

func TestCountedAlike(t *testing.T) {
	const (
		name = "CountedAlike"
		none = "no operation was passed on by a server whose metrics were read later"
	)
	passed := func(s *story, at float64, status int, options ...func(*history.Operation)) *story {
		return s.ask(at, "b", gadgets, status, options...).hop("b", 0, 10, false, answering(status)).hop("a", 2, 8, true, answering(status))
	}
	two := func() *story { return passed(passed(tell(name), 20, 200), 21, 200) }
	one := func(status int, options ...func(*history.Operation)) *story {
		return passed(tell(name), 20, status, options...)
	}
	checkStories(t, name, []storyCase{
		{"as many", two().metrics(150, "b", asSample(gadgets, 200, 2)),
			want{outcome: OutcomePass, checked: 2, fact: "servers whose metrics were read: 1"}},
		{"more, because others ask too", two().metrics(150, "b", asSample(gadgets, 200, 9), asSample(gadgets, 404, 1)),
			want{outcome: OutcomePass, checked: 2, fact: "series that they had counted: 2"}},
		{"in two samples", two().metrics(150, "b", asSample(gadgets, 200, 1), asSample(gadgets, 200, 1)),
			want{outcome: OutcomePass, checked: 2}},
		{"fewer", two().metrics(150, "b", asSample(gadgets, 200, 1)),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "not counted", sentence: "b passed on 2 requests for apps/v2/gadgets " +
				"that were answered with 200. Its metric apiserver_rerouted_request_total counted 1 of them until 2m30s, and 0 with other statuses. One of them: list apps/v2/gadgets"}},
		{"none", two().metrics(150, "b"), want{outcome: OutcomeFail, checked: 2, violations: 2, cause: "not counted"}},
		{"with another status", two().metrics(150, "b", asSample(gadgets, 0, 2)),
			want{outcome: OutcomeFail, checked: 2, violations: 2, cause: "not counted with this status", sentence: "and 2 with other statuses"}},
		{"in a later reading", two().metrics(150, "b", asSample(gadgets, 200, 1)).metrics(151, "b", asSample(gadgets, 200, 2)),
			want{outcome: OutcomePass, checked: 2, fact: "servers whose metrics were read: 1"}},
		{"for another resource", two().metrics(150, "b", asSample(widgets, 200, 2)),
			want{outcome: OutcomeFail, checked: 2, violations: 2, cause: "not counted"}},
		{"without a resource", two().metrics(150, "b", asSample(history.GVR{}, 200, 2)),
			want{outcome: OutcomeFail, checked: 2, violations: 2, cause: "not counted"}},
		{"all resources together", two().metrics(150, "b", together(200, 2)), want{outcome: OutcomePass, checked: 2}},
		{"all resources together, fewer", two().metrics(150, "b", together(200, 1)),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "not counted", sentence: "b passed on 2 requests for all resources that were answered with 200"}},
		{"all resources together, with another status", two().metrics(150, "b", together(0, 2)),
			want{outcome: OutcomeFail, checked: 2, violations: 2, cause: "not counted with this status"}},
		{"at another server", two().metrics(150, "b").metrics(150, "a", asSample(gadgets, 200, 2)),
			want{outcome: OutcomeFail, checked: 2, violations: 2}},
		{"no such object", one(404).metrics(150, "b"), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a refusal", one(403).metrics(150, "b"), want{outcome: OutcomeInconclusive, reason: none}},
		{"a second before the metrics were read", one(200).metrics(21.01, "b"), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"less than that", one(200).metrics(21, "b"), want{outcome: OutcomeInconclusive, reason: none}},
		{"after the metrics were read", one(200).metrics(10, "b"), want{outcome: OutcomeInconclusive, reason: none}},
		{"an answer of the asked server itself", tell(name).ask(20, "b", gadgets, 409).hop("b", 0, 10, false, answering(409)).hop("a", 900, 901, true).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"another answer of the peer", tell(name).ask(20, "b", gadgets, 409).hop("b", 0, 10, false, answering(409)).hop("a", 2, 8, true, answering(500)).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"a 503", one(503).metrics(150, "b"), want{outcome: OutcomeInconclusive, reason: none}},
		{"a watch", one(200, verb("watch")).metrics(150, "b"), want{outcome: OutcomeInconclusive, reason: none}},
		{"an upgrade", one(101, func(o *history.Operation) { o.Client = history.ClientSPDY }).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"an answer that broke off", one(200, failed(history.FailureReset)).metrics(150, "b"), want{outcome: OutcomeInconclusive, reason: none}},
		{"a discovery document", one(200, func(o *history.Operation) { o.GVR.Resource = "" }).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"by an earlier process", one(200).stop("b", 30).start("b", 40, oldDoc).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"when the process was asked to stop", one(200).state("b", 20.005, history.StateStopping).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"served by the asked server itself", tell(name).ask(20, "b", widgets, 200).hop("b", 0, 10, false).metrics(150, "b"),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"no metrics", two(), want{outcome: OutcomeInconclusive, reason: "no server's metrics were read"}},
		{"under too little pressure", two().metrics(150, "b", asSample(gadgets, 200, 2)).need(history.Pressure{Skewed: 3}),
			want{outcome: OutcomeInconclusive, checked: 2, reason: "2 of at least 3 skewed operations"}},
	})
}
