package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The user's own flags are refused, with the reason, where no kube-apiserver takes them.
func TestOwnFlagsAreRefusedWithoutKubeAPIServers(t *testing.T) {
	repro := writeRepro(t, forgotten(t))
	for line, says := range map[string]string{
		"replay " + repro + " --runtime-config=":                                                "--runtime-config means nothing with --backend sim",
		"replay " + repro + " --kube-apiserver-flag v=2":                                        "--kube-apiserver-flag means nothing with --backend sim",
		"replay " + repro + " --backend local --kube-apiserver-flag etcd-servers=x":             "--kube-apiserver-flag etcd-servers",
		"matrix --backend sim --scenarios quiet --runtime-config=":                              "--runtime-config means nothing with --backend sim",
		"matrix --scenarios quiet --pairs v1.36.3..v1.37.1 --kube-apiserver-flag etcd-servers=": "--kube-apiserver-flag",
		"bench quiet --kube-apiserver-flag etcd-servers=x":                                      "--kube-apiserver-flag etcd-servers",
	} {
		if _, err := call(t, strings.Fields(line)...); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}

// The command that repeats a replay on real servers has the user's own flags.
func TestAReplayIsRepeatedWithOwnFlags(t *testing.T) {
	none := ""
	s := run.Spec{
		Own: &run.Own{Command: []string{"replay", "FILE"}}, Backend: scenario.BackendLocal, RuntimeConfig: &none, APIServerFlags: []string{"v=2"}, Soak: 1,
	}
	want := []string{"replay", "FILE", "--backend", "local", "--runtime-config=", "--kube-apiserver-flag", "v=2"}
	if got := s.Words(); !slices.Equal(got, want) {
		t.Errorf("the words are %q, want %q", got, want)
	}
}

// A repeated --runtime-config is joined, as kube-apiserver joins it.
func TestRuntimeConfigsAreJoined(t *testing.T) {
	for want, words := range map[string][]string{"": {""}, "a=true": {"", "a=true"}, "a=true,b=false": {"a=true", "b=false"}} {
		var text *string
		for _, word := range words {
			if err := (textFlag{&text}).Set(word); err != nil {
				t.Fatal(err)
			}
		}
		if text == nil || *text != want {
			t.Errorf("%q becomes %v, want %q", words, text, want)
		}
	}
}

// The flags of 'skewproof run' mean the same in replay.
func TestFlagsMeanTheSameEverywhere(t *testing.T) {
	for _, name := range []string{"qps", "etcd", "binary"} {
		run, _, _ := newRoot().Find([]string{"run"})
		command, _, _ := newRoot().Find([]string{"replay"})
		mine, theirs := command.Flag(name), run.Flag(name)
		usage, _, _ := strings.Cut(theirs.Usage, "; with --backend existing") // the other commands do not have this part
		if mine == nil || mine.DefValue != theirs.DefValue || !strings.HasPrefix(mine.Usage, usage) {
			t.Errorf("--%s of replay is %+v, that of run %+v", name, mine, theirs)
		}
	}
}
