package clients

import (
	"regexp"
	"strings"
	"unicode"
)

// maxLine bounds a line of a client that is shown, in bytes.
const maxLine = 300

// logged is the head of a line that a client's logger wrote (klog): it has a date in it.
var logged = regexp.MustCompile(`^[IWEF][0-9]{4} [^\]]*\] `)

// FirstError returns the first line of standard error in which a client says what is wrong. It uses
// a warning, or a line of the client's logger, only if there is no other line, and removes the
// logger's time. The result is one printable line. It is empty if there is none.
func FirstError(problem string) string {
	last := ""
	for line := range strings.Lines(problem) {
		line = printable(line)
		head := logged.FindString(line)
		switch {
		case line == "":
		case head != "" || strings.HasPrefix(line, "Warning:"):
			if last == "" {
				last = line[len(head):]
			}
		default:
			return shortened(line)
		}
	}
	return shortened(last)
}

// FirstLine is the first line that has something printable in it.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = printable(line); line != "" {
			return shortened(line)
		}
	}
	return ""
}

// lastLine is the last line that has something printable in it.
func lastLine(s string) (last string) {
	for line := range strings.Lines(s) {
		if line = printable(line); line != "" {
			last = line
		}
	}
	return shortened(last)
}

func printable(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, line))
}

func shortened(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + "…" // without a part of a character
}
