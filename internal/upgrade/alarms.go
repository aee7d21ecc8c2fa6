package upgrade

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/reports"
)

// AlarmTable has every alarm that a plan may name.
type AlarmTable struct {
	Situations []Situation `json:"situations"`
	Alarms     []Alarm     `json:"alarms"`
	Silent     []Silent    `json:"silent"`
}

// Situation is something that operators must notice.
type Situation struct {
	Name string `json:"name"`
	// Words name it in a plan; Made says how it is made on real servers.
	Words string `json:"words"`
	Made  string `json:"made"`
}

// Alarm is a sign that rises in situations.
type Alarm struct {
	Name  string `json:"name"`
	Where Where  `json:"where"`
	// Sign is a metric with labels, a part of a log line, or a command for bash.
	Sign string `json:"sign"`
	// Match is a regular expression: each line of a command's output that matches it counts.
	Match string `json:"match,omitempty"`
	// Stays is how many seconds a command's lines must stay before they are an alarm.
	Stays int `json:"stays,omitempty"`
	// Since is the oldest minor version that has the sign.
	Since string `json:"since"`
	// Bad is the value at which to worry, and Means its meaning.
	Bad   string `json:"bad"`
	Means string `json:"means"`
	// Stop is the condition on which an operator stops, with SIGN for a metric; empty: it is none.
	Stop string `json:"stop,omitempty"`
	// Protected is true if it is a condition only where older servers pass requests on.
	Protected bool   `json:"protected,omitempty"`
	Rings     []Ring `json:"rings"`
}

// Where says what has a sign.
type Where string

// These are all places of signs. For the first two, a sign is a metric.
const (
	OfServer      Where = "kube-apiserver"
	OfControllers Where = "kube-controller-manager"
	OfLog         Where = "log" // of kube-apiserver
	OfCommand     Where = "command"
)

// Ring promises that an alarm rises at most Within seconds after a situation began.
type Ring struct {
	Situation string `json:"situation"`
	Within    int    `json:"within"`
	// Because says why Within may be far above what was measured.
	Because string `json:"because,omitempty"`
}

// Silent is a metric that stays flat in situations, for the reason Why.
type Silent struct {
	Sign       string   `json:"sign"`
	Why        string   `json:"why"`
	Situations []string `json:"situations"`
}

// AlarmRecord is what was measured on real servers.
type AlarmRecord struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Quiet is the number of seconds for which each sign was flat before its situation.
	Quiet int `json:"quiet"`
	// Rung are the seconds after which alarms rose, by their names and then by situations.
	Rung map[string]map[string]float64 `json:"rung"`
	// Flat are the situations in which metrics stayed flat.
	Flat map[string][]string `json:"flat"`
	// Later is how many seconds a request takes for a 503 after the first ones got theirs.
	Later struct {
		Paused  float64 `json:"paused"`
		Dropped float64 `json:"dropped"`
	} `json:"later"`
	// Emptied is how many seconds the deletion of a namespace took while nothing failed.
	Emptied float64 `json:"emptied"`
}

//go:embed alarms.yaml
var alarmsFile []byte

// alarms are all alarms.
var alarms = sync.OnceValue(func() (t AlarmTable) {
	if err := yaml.UnmarshalStrict(alarmsFile, &t); err != nil {
		panic(fmt.Sprintf("alarms.yaml: %v", err)) // every test of a plan reads it
	}
	return t
})

// Alarms returns the table for the servers of a plan: with its kinds and paths in the signs, and
// without what the plan has no kinds for.
func Alarms(p reports.UpgradePlan) (t AlarmTable) {
	t.Situations = alarms().Situations
	probe, ok := probeFor(p)
	var kinds []string
	for _, r := range byDefault(p.Appears) {
		if r.Subresource == "" && !slices.Contains(kinds, r.Resource) {
			kinds = append(kinds, r.Resource)
		}
	}
	fill := strings.NewReplacer("PROBE", probe, "KINDS", strings.Join(kinds, "|"), "KIND", probe[strings.LastIndexByte(probe, '/')+1:])
	for _, a := range alarms().Alarms {
		sign := fill.Replace(a.Sign)
		if sign != a.Sign && !ok || semver.Compare(semver.MajorMinor(p.To), "v"+a.Since) < 0 {
			continue
		}
		a.Sign = sign
		t.Alarms = append(t.Alarms, a)
	}
	for _, s := range alarms().Silent {
		s.Sign = fill.Replace(s.Sign)
		t.Silent = append(t.Silent, s)
	}
	return t
}

// rises says how soon an alarm rises after which situations.
func (t AlarmTable) rises(a Alarm) string {
	var all []string
	for i, r := range a.Rings {
		n := slices.IndexFunc(t.Situations, func(s Situation) bool { return s.Name == r.Situation })
		words := t.Situations[n].Words
		if i > 0 && a.Rings[i-1].Within == r.Within {
			all[len(all)-1] += ", " + words
			continue
		}
		all = append(all, fmt.Sprintf("%d s of %s", r.Within, words))
	}
	return strings.Join(all, "; ")
}
