package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

func TestPlanIsWrittenInEveryForm(t *testing.T) {
	for form, want := range map[string]string{"text": "WHAT TO DO", "wide": "PROTECTION BY THE", "markdown": "## What to do", "html": "<h2 id=", "json": `"checklist"`} {
		out, err := call(t, "plan", "--from", "v1.36.3", "--to", "v1.37.1", "-o", form, "--documents", t.TempDir())
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("-o %s: error %v, want %q in\n%s", form, err, want, out)
		}
	}
}

// The flags of the command line decide about the protection.
func TestPlanTakesTheFlagsOfTheServers(t *testing.T) {
	out, err := call(t, "plan", "--from", "v1.36.3", "--to", "v1.37.1", "--peer-ca-file", "/my/ca.crt", "-o", "json", "--documents", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var p reports.UpgradePlan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	if c := p.Protection[0]; !c.Asked || !c.Ways[0].Protected || !c.Ways[1].Protected || !strings.Contains(c.Configuration, "/my/ca.crt") {
		t.Errorf("%+v", c)
	}
}

// A plan for servers that do not start ends with 1, whatever its form, and rehearses nothing.
func TestPlanForServersThatDoNotStart(t *testing.T) {
	for _, form := range []string{"text", "json"} {
		out, err := call(t, "plan", "--from", "v1.35.4", "--to", "v1.36.3", "--peer-ca-file", "/my/ca.crt", "--rehearse", "-o", form,
			"--documents", t.TempDir())
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitFail || !strings.Contains(out, "refuses to start") || !strings.Contains(out, "Correct the flags") {
			t.Errorf("-o %s: error %v:\n%s", form, err, out)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{nil, "a plan needs --from and --to"},
		{[]string{"--from", "v1.36.3"}, "a plan needs --from and --to"},
		{[]string{"--from", "v1.36.3", "--to", "v1.37.1", "-o", "pdf"}, "want text, wide, markdown, html or json"},
		{[]string{"--from", "v1.37.1", "--to", "v1.36.3"}, "is older than"},
		{[]string{"--from", "v1.36.3", "--to", "v1.99.0"}, "skewproof plan --record v1.99.0"},
		{[]string{"--from", "v1.36.3", "--record", "v1.37.1"}, "without --record"},
		{[]string{"--from", "v1.36.3", "--to", "v1.37.1", "--out", "x"}, "--rehearse"},
		{[]string{"--record", "latest"}, "latest"},
	} {
		_, err := call(t, append([]string{"plan", "--documents", t.TempDir()}, c.words...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.words, err, c.want)
		}
	}
}

// Recordings of the user's own are read without a flag.
func TestPlanReadsTheUsersRecordings(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"api", "apis"} {
		body, err := os.ReadFile("../../sim/recorded/documents/v1.37.1-" + root + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/v1.99.0-"+root+".json", body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := call(t, "plan", "--from", "v1.37.1", "--to", "v1.99.0")
	if err != nil || !strings.Contains(out, "There is no recording of what v1.99.0 serves by default") || !strings.Contains(out, "further apart") {
		t.Errorf("error %v:\n%s", err, out)
	}
}
