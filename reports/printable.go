package reports

import (
	"strings"
	"unicode"
)

// Printable makes a text that servers or files may have written harmless for a terminal. Line feeds
// and tabs stay. Other control characters become spaces, and characters that change the direction of
// text go.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
}
