package clients

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestFirstError(t *testing.T) {
	for problem, want := range map[string]string{
		"":                           "",
		"\n \n":                      "",
		"error: no\nerror: second\n": "error: no",
		"Warning: old\nerror: no\n":  "error: no",
		"Warning: old\n":             "Warning: old",
		"E1123 23:44:21.123456    7 memcache.go:265] couldn't get it\nThe connection was refused\n": "The connection was refused",
		"E1123 23:44:21.123456    7 memcache.go:265] couldn't get it\n":                             "couldn't get it",
		"error: \x1b[31mred\x00\n": "error:  [31mred",
	} {
		if got := FirstError(problem); got != want {
			t.Errorf("of %q: %q, want %q", problem, got, want)
		}
	}
	if got := FirstError(strings.Repeat("é", maxLine)); len(got) > maxLine+len("…") || !utf8.ValidString(got) {
		t.Errorf("a long line becomes %q", got)
	}
}

func FuzzFirstError(f *testing.F) {
	f.Add("error: no\n")
	f.Add("E1123 23:44:21.123456    7 memcache.go:265] couldn't\nWarning: x\r\n\x1b[2J")
	f.Fuzz(func(t *testing.T, problem string) {
		for _, got := range []string{FirstError(problem), FirstLine(problem)} {
			if len(got) > maxLine+len("…") || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("of %q: %q", problem, got)
			}
			if strings.ContainsFunc(problem, unicode.IsLetter) && utf8.ValidString(problem) && FirstLine(problem) == "" {
				t.Errorf("of %q: nothing", problem)
			}
		}
	})
}
