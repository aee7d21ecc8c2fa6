// Package shell writes command lines for people to paste into a shell.
package shell

import (
	"regexp"
	"strings"
)

// plain is a word that no shell changes. Braces, brackets, backticks, # and ~ have a meaning too.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+:,./=-]*$`)

// Quote returns the word as a shell takes it: unchanged, or in single quotes.
func Quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line returns the words as one command line, each quoted where it must be.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}
