package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// What clients ask, with the status of the right answer. Every server serves the first two,
// whatever its version, and no server the third.
var asked = map[string]int{
	"/api/v1/namespaces/kube-system/configmaps/kubeadm-config": http.StatusOK,
	"/apis/apps/v1/namespaces/kube-system/daemonsets":          http.StatusOK,
	nobodyServes: http.StatusNotFound,
}

const nobodyServes = "/apis/apps/v1/nosuchthings"

// disturbance is the time in which a server is restarted.
type disturbance struct {
	what       string
	start, end time.Time
}

// unexplained returns what one client has seen that the restart of its server does not explain.
// Connections break only while a server is restarted, and the client's next attempts succeed. The
// right answer for a resource that no server serves is 404. While a server is restarted it may be
// 503, because the resources of that server are unknown.
func unexplained(answers []askedAnswer, disturbances []disturbance) (wrong []string) {
	right, failed := make([]int, len(disturbances)), make([]int, len(disturbances))
	calm := 0
	for _, a := range answers {
		i := slices.IndexFunc(disturbances, func(d disturbance) bool { return !a.At.Before(d.start) && a.At.Before(d.end) })
		ok := a.Status == asked[a.Path]
		switch {
		case i < 0 && ok:
			calm++
		case i >= 0 && ok:
			right[i]++
		case i >= 0 && a.Lost:
			failed[i]++
		case i >= 0 && a.Path == nobodyServes && a.Status == http.StatusServiceUnavailable:
		default:
			during := "while no server was restarted"
			if i >= 0 {
				during = "during " + disturbances[i].what
			}
			wrong = append(wrong, fmt.Sprintf("%s, %s, %s: status %d, want %d; %s", a.At.UTC().Format("15:04:05.000"), during, a.Path, a.Status, asked[a.Path], a.Error))
		}
	}
	if calm == 0 {
		wrong = append(wrong, "no answer came while no server was restarted")
	}
	for i, d := range disturbances {
		if right[i] == 0 || failed[i] > right[i] {
			wrong = append(wrong, fmt.Sprintf("during %s: %d right answers, and %d connections lost; another server was there", d.what, right[i], failed[i]))
		}
	}
	return wrong
}

// The verdict on a client must not be better than what it saw.
func TestUnexplainedAnswers(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	during := []disturbance{{"a restart", start.Add(10 * time.Second), start.Add(20 * time.Second)}}
	const config, nobody = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", nobodyServes
	at := func(second int, path string, status int) askedAnswer {
		return askedAnswer{At: start.Add(time.Duration(second) * time.Second), Path: path, Status: status}
	}
	lost := func(second int) askedAnswer {
		a := at(second, config, 0)
		a.Lost = true
		return a
	}
	calm, restarted := at(1, config, 200), at(15, config, 200)
	for _, tc := range []struct {
		name    string
		answers []askedAnswer
		want    string // "": nothing is wrong
	}{
		{"all right", []askedAnswer{calm, at(2, nobody, 404), restarted, at(16, nobody, 404)}, ""},
		{"lost, and repeated", []askedAnswer{calm, lost(10), restarted}, ""},
		{"unknown while a server restarts", []askedAnswer{calm, restarted, at(16, nobody, 503)}, ""},
		{"lost before", []askedAnswer{calm, lost(9), restarted}, "while no server was restarted"},
		{"lost after", []askedAnswer{calm, restarted, lost(20)}, "while no server was restarted"},
		{"lost for longer than answered", []askedAnswer{calm, lost(10), lost(11), restarted}, "2 connections lost"},
		{"another error than a lost connection", []askedAnswer{calm, at(12, config, 0), restarted}, "status 0, want 200"},
		{"unknown for ever", []askedAnswer{calm, restarted, at(21, nobody, 503)}, "status 503, want 404"},
		{"found, and no server serves it", []askedAnswer{calm, restarted, at(12, nobody, 200)}, "status 200, want 404"},
		{"false 404", []askedAnswer{calm, restarted, at(12, config, 404)}, "status 404, want 200"},
		{"refused by a server that starts", []askedAnswer{calm, restarted, at(12, config, 403)}, "status 403, want 200"},
		{"unavailable", []askedAnswer{calm, restarted, at(12, config, 503)}, "status 503, want 200"},
		{"silent while a server restarts", []askedAnswer{calm}, "0 right answers"},
		{"silent otherwise", []askedAnswer{restarted}, "no answer came"},
		{"silent", nil, "no answer came"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(unexplained(tc.answers, during), "\n")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// judgeAsking reports what clients noticed.
func judgeAsking(t *testing.T, all map[string][]askedAnswer, disturbances []disturbance) {
	t.Helper()
	for name, answers := range all {
		lost := 0
		for _, a := range answers {
			if a.Lost {
				lost++
			}
		}
		t.Logf("%s: %d answers, %d connections lost", name, len(answers), lost)
		const most = 20
		wrong := unexplained(answers, disturbances)
		for _, w := range wrong[:min(most, len(wrong))] {
			t.Errorf("%s: %s", name, w)
		}
		if len(wrong) > most {
			t.Errorf("%s: %d more", name, len(wrong)-most)
		}
	}
}
