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
	logs := ""
	for _, line := range printableLines(problem) {
		head := logged.FindString(line)
		if head == "" && !strings.HasPrefix(line, "Warning:") {
			return shortened(line)
		}
		if logs == "" {
			logs = line[len(head):]
		}
	}
	return shortened(logs)
}

// FirstLine is the first line that has something printable in it.
func FirstLine(s string) string {
	if all := printableLines(s); len(all) > 0 {
		return shortened(all[0])
	}
	return ""
}

// lastLine is the last line that has something printable in it.
func lastLine(s string) string {
	if all := printableLines(s); len(all) > 0 {
		return shortened(all[len(all)-1])
	}
	return ""
}

func printableLines(s string) (all []string) {
	for line := range strings.Lines(s) {
		if line = printable(line); line != "" {
			all = append(all, line)
		}
	}
	return all
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
