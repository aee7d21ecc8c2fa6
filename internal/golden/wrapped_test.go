package golden

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Prose in documents is wrapped. A line may be longer if it cannot be broken, and in tables and
// blocks.
func TestDocumentsAreWrapped(t *testing.T) {
	checked := 0
	for _, document := range files(t, ".md") {
		for line := range strings.Lines(fence.ReplaceAllString(text(t, document), "")) {
			checked++
			if line = strings.TrimRight(line, "\n"); !wrapped(line) {
				t.Errorf("%s: a line of %d columns can be broken: %s", document, utf8.RuneCountInString(line), line)
			}
		}
	}
	if checked < 2000 {
		t.Errorf("%d lines of documents were found, want at least 2000", checked)
	}
}

// Comments in Go files are wrapped, with a tab as one column.
func TestCommentsAreWrapped(t *testing.T) {
	checked := 0
	for _, path := range files(t, ".go") {
		for line := range strings.Lines(text(t, path)) {
			line = strings.TrimRight(line, "\n")
			comment := strings.TrimSpace(line)
			if !strings.HasPrefix(comment, "// ") {
				continue
			}
			checked++
			if n := utf8.RuneCountInString(line); n > Columns && strings.Contains(comment[3:], " ") && !strings.Contains(comment, "://") {
				t.Errorf("%s: a comment of %d columns: %s", path, n, comment)
			}
		}
	}
	if checked < 10_000 {
		t.Errorf("%d lines of comments were found, want at least 10000", checked)
	}
}

func TestWrapped(t *testing.T) {
	long := strings.Repeat("word ", 21) + "word"
	for line, want := range map[string]bool{
		"short": true, long: false, "- " + long: false, "| " + long + " |": true, strings.Repeat("x", 120): true, "[a](" + strings.Repeat("x", 120) + ")": true,
	} {
		if wrapped(line) != want {
			t.Errorf("%q counts as wrapped: %v, want %v", line, !want, want)
		}
	}
}

// wrapped reports whether a line of a document is short enough, or cannot be broken.
func wrapped(line string) bool {
	return utf8.RuneCountInString(line) <= Columns || strings.HasPrefix(line, "|") || Wrap(line, "") == strings.TrimSpace(line)
}
