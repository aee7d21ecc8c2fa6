package run

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	commit := debug.BuildSetting{Key: "vcs.revision", Value: revision}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for name, c := range map[string]struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		"go install of a version":    {"v0.3.0", nil, "v0.3.0"},
		"a clone at a tag":           {"v0.3.0", []debug.BuildSetting{commit, clean}, "v0.3.0"},
		"a clone after a tag":        {"v0.3.1-0.20261125000000-0123456789ab", []debug.BuildSetting{commit, clean}, "v0.3.1-0.20261125000000-0123456789ab"},
		"a clone with changes":       {"v0.3.0+dirty", []debug.BuildSetting{commit, dirty}, "v0.3.0+dirty"},
		"a commit without a version": {"(devel)", []debug.BuildSetting{commit, clean}, "0123456789ab"},
		"the same with changes":      {"(devel)", []debug.BuildSetting{dirty, commit}, "0123456789ab+dirty"},
		"a short revision":           {"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "42"}}, "42"},
		"no version control":         {"(devel)", nil, "devel"},
		"no module either":           {"", nil, "devel"},
		"changes without a revision": {"(devel)", []debug.BuildSetting{dirty}, "devel"},
		"other settings say nothing": {"(devel)", []debug.BuildSetting{{Key: "GOARCH", Value: "amd64"}}, "devel"},
	} {
		info := &debug.BuildInfo{Settings: c.settings}
		info.Main.Version = c.module
		if got := versionOf(info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := versionOf(nil); got != "unknown" {
		t.Errorf("a program without a record of its build: %q", got)
	}
}
