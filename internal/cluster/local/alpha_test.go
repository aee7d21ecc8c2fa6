package local

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The proxy of 1.28 to 1.32 needs what no other does, and a version that is to do without an API is told so in the end: what is said first
// holds for all others.
func TestAlphaArguments(t *testing.T) {
	p := Places(scenario.SubjectBuiltin, []history.Server{{Name: "a"}})[0]
	args, err := APIServerArguments("v1.30.14+without.batch.v1", scenario.SubjectBuiltin, p, Files{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(args, "--feature-gates="+scenario.Gate+"=true,StorageVersionAPI=true,APIServerIdentity=true") {
		t.Errorf("the gates of the alpha are not all switched on: %v", args)
	}
	all, without := slices.Index(args, "--runtime-config=api/all=true"), slices.Index(args, "--runtime-config=batch/v1=false")
	if all < 0 || without < all {
		t.Errorf("every API is switched on at %d, batch/v1 off at %d: %v", all, without, args)
	}
	for _, flag := range []string{"--peer-ca-file=", "--peer-advertise-ip=", "--peer-advertise-port="} {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, flag) }) {
			t.Errorf("there is no %s", flag)
		}
	}
}

func TestVersionsBetweenTheDesignsHaveNoProxy(t *testing.T) {
	p := Places(scenario.SubjectBuiltin, []history.Server{{Name: "a"}})[0]
	for version, refused := range map[string]bool{
		"v1.27.16": true, "v1.28.0": false, "v1.32.9": false, "v1.33.5": true, "v1.34.4": false, "v1.37.1": false,
	} {
		if _, err := APIServerArguments(version, scenario.SubjectBuiltin, p, Files{}); (err != nil) != refused {
			t.Errorf("%s: error %v", version, err)
		}
	}
	if _, err := APIServerArguments("v1.30.14+without.batch", scenario.SubjectNone, p, Files{}); err == nil {
		t.Error("a version that cannot be read is accepted")
	}
}
