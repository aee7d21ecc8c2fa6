package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestConverges(t *testing.T) {
	const name = "Converges"
	// All servers answer rightly from second from on.
	settled200 := func(s *story, from float64) *story {
		return s.askEvery(from, 199, "a", gadgets, 200).askEvery(from, 199, "b", gadgets, 200).askEvery(from, 199, "c", gadgets, 200)
	}
	upgraded := func() *story { return tell(name).step("restart c", 100, 106).stop("c", 101).start("c", 103, oldDoc) }
	checkStories(t, name, []storyCase{
		{"nothing goes wrong", settled200(upgraded(), 110),
			want{outcome: OutcomePass, checked: 270, fact: "converged after: 0s"}},
		{"wrong for a while", settled200(upgraded().askEvery(107, 112, "b", gadgets, 404), 113),
			want{outcome: OutcomePass, checked: 267, fact: "converged after: 6.01s"}},
		{"each step is measured", settled200(upgraded().step("restart c again", 130, 136).askEvery(107, 112, "b", gadgets, 404), 113),
			want{outcome: OutcomePass, checked: -1, fact: "after step 0, restart c: last wrong response 6.01s after it"}},
		{"a step after which the next one began too early", settled200(upgraded().step("restart c again", 130, 136).askEvery(107, 129, "b", gadgets, 404), 136),
			want{outcome: OutcomePass, checked: -1, fact: "after step 0, restart c: still wrong 23.01s after it"}},
		{"etcd ends by itself, which ends the run", settled200(upgraded(), 110).fault("kill", "", "etcd", 198.5, 1e9, true).ask(199.2, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, fact: "last disturbance ended at: 3m20s", reason: "nothing was judged after the last disturbance, which ended at 3m20s"}},
		{"the last step", upgraded().askEvery(107, 129, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, checked: -1, reason: "wrong when last asked", fact: "after step 0, restart c: still wrong 23.01s after it, when the run ended"}},
		{"wrong for too long", settled200(upgraded().askEvery(107, 140, "b", gadgets, 404), 141),
			want{outcome: OutcomeFail, checked: -1, violations: 5, cause: "false 404", sentence: "30.01s after the last disturbance, when 30s are allowed"}},
		{"wrong again after it was right", settled200(upgraded(), 110).ask(190, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "503 though it could be served"}},
		{"needless 503 for a resource that no server serves", settled200(upgraded(), 110).ask(190, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "503 rather than 404"}},
		{"discovery is stale for too long", settled200(upgraded(), 110).discover(190, "b", "/apis", doc("poor", line(widgets))),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "/apis is not what is served"}},
		{"discovery returns no document for too long", settled200(upgraded(), 110).discover(190, "b", "/apis", mergedDoc, status(406), illegibly("only the following media types are accepted")),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "/apis is not what is served"}},
		{"discovery differs between servers for too long", settled200(upgraded(), 110).discover(180, "a", "/apis", mergedDoc).discover(185, "b", "/apis", mergedDoc).discover(190, "c", "/apis", reorderedDoc),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "differs from most responses"}},
		{"discovery settles", settled200(upgraded(), 110).discover(110, "b", "/apis", doc("poor", line(widgets))).discover(120, "b", "/apis", mergedDoc).discover(121, "a", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: -1, fact: "converged after: 4.01s"}},
		{"discovery settles on the document that few answers had before", settled(settled200(upgraded(), 110)).discover(140, "a", "/apis", mergedDoc).discover(141, "b", "/apis", mergedDoc).discover(142, "c", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: -1, fact: "converged after: 6.01s"}},
		{"discovery differs after the bound, and also from most answers before it",
			settled(settled200(upgraded(), 110)).discover(140, "a", "/apis", mergedDoc).discover(141, "b", "/apis", mergedDoc).discover(142, "c", "/apis", reorderedDoc),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "differs from most responses", sentence: "c was asked at 2m22s"}},
		{"discovery differs after the bound, one answer against one",
			settled(settled200(upgraded(), 110)).discover(140, "a", "/apis", mergedDoc).discover(141, "b", "/apis", reorderedDoc),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "differs from most responses"}},
		{"one late answer says nothing about the others", settled(settled200(upgraded(), 110)).discover(140, "c", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, checked: -1, reason: "wrong when last asked, and not asked again: /apis on a, /apis on b"}},
		{"one path says nothing about the other", settled(settled200(upgraded(), 110)).discover(112.5, "b", "/apis", mergedDoc).discover(140, "a", "/api", coreDoc),
			want{outcome: OutcomeInconclusive, checked: -1, reason: "wrong when last asked, and not asked again: /apis on b"}},
		{"the servers are stopped at the end", settled200(upgraded(), 110).stop("a", 199.5).stop("b", 199.5).stop("c", 199.5),
			want{outcome: OutcomePass, checked: 270}},
		{"the servers are stopped at the end, and what was under way is cancelled",
			settled200(upgraded(), 110).ask(199.1, "a", gadgets, 0, failed(history.FailureCanceled), took(0.6)).stop("a", 199.5).stop("b", 199.5).stop("c", 199.5),
			want{outcome: OutcomePass, checked: 270}},
		{"the run ends too early", settled200(upgraded(), 110).step("another", 180, 181),
			want{outcome: OutcomeInconclusive, checked: -1, reason: "the run ended 19s after the last disturbance"}},
		{"a fault was never healed", settled200(tell(name).cut("a", "c", 100, 200), 110),
			want{outcome: OutcomeInconclusive, reason: "nothing was judged after the last disturbance"}},
		{"one server was not asked", upgraded().askEvery(110, 199, "a", gadgets, 200).askEvery(110, 199, "b", gadgets, 200),
			want{outcome: OutcomeInconclusive, checked: -1, reason: "c gave no right response"}},
		{"traffic ends too early", upgraded().askEvery(107, 110, "a", gadgets, 200).askEvery(107, 110, "b", gadgets, 200).askEvery(107, 110, "c", gadgets, 200),
			want{outcome: OutcomeInconclusive, checked: 12, reason: "a gave no right response after 2m6s, when it should have converged"}},
		{"wrong within the bound, and not asked again", settled200(upgraded().ask(110, "c", pods, 404, sub("resize")), 111),
			want{outcome: OutcomeInconclusive, checked: -1, reason: "wrong when last asked, and not asked again: v1/pods/resize on c"}},
		{"no traffic", upgraded(),
			want{outcome: OutcomeInconclusive, reason: "nothing was judged"}},
		{"a killed server never returns, and 503 is for what it may have served", settled503(tell(name).step("kill a", 100, 101).kill("a", 100)).ask(190, "b", ghosts, 503),
			want{outcome: OutcomePass, checked: -1}},
		{"a killed server never returns, and some still count on it",
			settled503(tell(name).step("kill a", 100, 101).kill("a", 100)).discover(190, "b", "/apis", mergedDoc).discover(191, "c", "/apis", doc("without", line(widgets))),
			want{outcome: OutcomePass, checked: -1}},
		{"a stopped server never returns, and some still count on it",
			tell(name).step("stop a", 100, 101).stop("a", 100).askEvery(110, 199, "b", widgets, 200).askEvery(110, 199, "c", widgets, 200).
				discover(190, "b", "/apis", mergedDoc).discover(191, "c", "/apis", doc("without", line(widgets))),
			want{outcome: OutcomeFail, checked: -1, violations: 2, cause: "/apis is not what is served"}},
		{"a killed server has returned, and 503 is for what nobody serves", settled200(tell(name).step("kill a", 100, 106).kill("a", 100).start("a", 104, newDoc), 110).ask(190, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "503 rather than 404"}},
		{"a stopped server never returns, and 503 is for what nobody serves", settled503(tell(name).step("stop a", 100, 101).stop("a", 100)).ask(190, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: -1, violations: 139, cause: "503 rather than 404"}},
		{"a killed server never returns, and 503 is for its resources", settled503(tell(name).step("kill a", 100, 101).kill("a", 100)),
			want{outcome: OutcomePass, checked: -1}},
	})
}

// settled makes every server answer discovery twice, so soon after the last disturbance that wrong
// answers are still allowed.
func settled(s *story) *story {
	for _, at := range []float64{111, 112} {
		s.discover(at, "a", "/apis", reorderedDoc).discover(at, "b", "/apis", reorderedDoc).discover(at, "c", "/apis", reorderedDoc)
	}
	return s
}

func settled503(s *story) *story {
	for _, server := range []string{"b", "c"} {
		s.askEvery(110, 199, server, gadgets, 503).askEvery(110, 199, server, widgets, 200)
	}
	return s
}
