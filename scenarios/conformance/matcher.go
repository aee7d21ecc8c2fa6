package conformance

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"

	"github.com/skewproof/skewproof/reports"
)

// pass matches what passed in a profile. What did not is told by its reason.
func pass(profile string) gomegatypes.GomegaMatcher {
	var got reports.ProfileResult
	return gcustom.MakeMatcher(func(p reports.ProfileResult) (bool, error) {
		got = p
		return p.Result == reports.ResultPassed, nil
	}).WithTemplate("{{.Data}}", told(func() string {
		words := []string{fmt.Sprintf("%s, %s", got.Result, profile)}
		if len(got.Violated) > 0 {
			words = append(words, "violated "+strings.Join(got.Violated, ", "))
		}
		return strings.Join(append(words, got.Reason), ": ")
	}))
}

// told is a string that is not known before it is asked for.
type told func() string

func (t told) String() string { return t() }
