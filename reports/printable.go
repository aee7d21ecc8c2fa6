package reports

import (
	"strings"
	"unicode"
)

// Printable makes a text that servers or files may have written harmless for a terminal, a page and
// an XML document. Line feeds and tabs stay. Other control characters and separators of lines
// become spaces, and characters that change the direction of text go.
func Printable(s string) string { return strings.Map(printable, s) }

// plain is Printable in one line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return printable(r)
	}, s)
}

// printable is the harmless form of a character. It is negative if the character goes.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
		return ' '
	case unicode.Is(unicode.Bidi_Control, r):
		return -1
	}
	return r
}
