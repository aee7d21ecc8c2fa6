package lifecycle

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTailIsOfThisIncarnationOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	ended(t, path, "echo first")
	if got := ended(t, path, "echo second").log.Tail(8); got != "second" {
		t.Fatalf("tail is %q, want the second process's line only", got)
	}
}

func TestPanicsAreFoundInTheLogOfTheirIncarnation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	first := ended(t, path, `echo 'I1121 fine'; echo 'E1121 runtime.go:142] "Observed a panic" panic="nil map"'; echo 'I1121 fine again'`)
	second := ended(t, path, "echo 'fatal error: concurrent map writes'; echo 'panic: boom'")
	if got := first.log.Panics(second.log.From); len(got) != 1 || !strings.Contains(got[0], "nil map") {
		t.Errorf("found %q in the first, want the one line about a panic", got)
	}
	if got := second.log.Panics(-1); len(got) != 2 {
		t.Errorf("found %q in the second, want both lines", got)
	}
}

func TestAPanicInAStructuredLogIsCutDownToWhatPeopleRead(t *testing.T) {
	p := ended(t, filepath.Join(t.TempDir(), "a.log"),
		`printf '%s\n' 'level=WARN msg="http2: panic serving 198.18.0.5:60814: nil map\ngoroutine 4481 [running]:\nnet/http..."'; printf 'panic: %01000d\n' 7`)
	got := p.log.Panics(-1)
	if len(got) != 2 || !strings.HasSuffix(got[0], "nil map") || len(got[1]) > 310 {
		t.Errorf("found %q", got)
	}
}
