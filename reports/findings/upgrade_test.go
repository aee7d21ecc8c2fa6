package findings

import (
	"strings"
	"testing"
)

// Every public finding has the five sentences for operators.
func TestEveryFindingSaysWhatItMeansForAnUpgrade(t *testing.T) {
	for _, f := range All() {
		if (f.Upgrade == nil) != (f.Disclosure != Public) {
			t.Errorf("finding %d, %s: upgrade is %+v", f.Number, f.Disclosure, f.Upgrade)
		}
	}
}

func TestAFindingIncludesVersions(t *testing.T) {
	for _, c := range []struct {
		since, until, version string
		want                  bool
	}{
		{"1.35", "", "v1.34.4", false}, {"1.35", "", "v1.35.0", true}, {"1.35", "", "v1.38.0-alpha.1", true},
		{"1.34", "1.34", "v1.34.9", true}, {"1.34", "1.34", "v1.35.0", false}, {"1.28", "1.32", "v1.30.14+without.batch.v1", true},
	} {
		if got := (Upgrade{Since: c.since, Until: c.until}).Includes(c.version); got != c.want {
			t.Errorf("%s to %q includes %s: %v", c.since, c.until, c.version, got)
		}
	}
}

func TestAnUpgradeThatSaysTooLittleIsRefused(t *testing.T) {
	whole := Upgrade{Since: "1.35", Proxy: EffectOn, Condition: ConditionCrash, When: "a", Deleted: "b", Hangs: "c", Noticed: "d", Lasts: "e"}
	if err := whole.validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Upgrade){
		"not a minor version": func(u *Upgrade) { u.Since = "1.35.1" },
		`"x" is not a minor`:  func(u *Upgrade) { u.Until = "x" },
		`proxy "true"`:        func(u *Upgrade) { u.Proxy = "true" },
		`needs "luck"`:        func(u *Upgrade) { u.Needs = "luck" },
		`condition "luck"`:    func(u *Upgrade) { u.Condition = "luck" },
		"what is deleted":     func(u *Upgrade) { u.Deleted = "" },
	} {
		u := whole
		change(&u)
		if err := u.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
