package main

import (
	"os"
	"path/filepath"
	"slices"
)

// joinKnown lets people write '--known FILE' with a space. The flag takes its file after an equals
// sign only, because it may also stand alone. The next word is its file if a file of that name
// exists, or if it ends as a file of findings does. The name of a scenario does neither.
func joinKnown(words []string) []string {
	for n := 0; n+1 < len(words); n++ {
		if words[n] == "--" {
			return words
		}
		if words[n] == "--known" && isFindingsFile(words[n+1]) {
			return slices.Concat(words[:n], []string{"--known=" + words[n+1]}, words[n+2:])
		}
	}
	return words
}

func isFindingsFile(word string) bool {
	info, err := os.Stat(word)
	return err == nil && info.Mode().IsRegular() || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(word))
}
