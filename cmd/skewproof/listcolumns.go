package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/suite"
)

// letters are the labels as the list in columns shows them.
var letters = []struct{ label, letter string }{
	{"smoke", "s"}, {"conformance", "c"}, {"slow", "l"},
}

// listColumns lists the scenarios of each family in as many columns as fit into a terminal of that
// width, so that all of them are on one screen.
func listColumns(out io.Writer, all []suite.Listed, width int) error {
	var text strings.Builder
	for len(all) > 0 {
		end := slices.IndexFunc(all, func(s suite.Listed) bool { return s.Family != all[0].Family })
		if end < 0 {
			end = len(all)
		}
		fmt.Fprintf(&text, "%s\n", strings.ToUpper(string(all[0].Family)))
		writeColumns(&text, all[:end], width)
		all = all[end:]
	}
	_, err := fmt.Fprintf(out,
		"%sMinutes on real processes, and labels: s smoke, c conformance, l slow. 'skewproof list NAME' describes a scenario.\n", &text)
	return err
}

// writeColumns writes scenarios down one column after the other.
func writeColumns(out io.Writer, all []suite.Listed, width int) {
	name, labels := 0, 0
	for _, s := range all {
		name, labels = max(name, len(s.Name)), max(labels, len(lettersOf(s)))
	}
	cell := 2 + name + len(" 10.0 ") + labels
	columns := max(1, width/cell)
	rows := (len(all) + columns - 1) / columns
	for row := range rows {
		var line strings.Builder
		for n := row; n < len(all); n += rows {
			fmt.Fprintf(&line, "  %-*s %4s %-*s", name, all[n].Name, minutesOf(all[n]), labels, lettersOf(all[n]))
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

func lettersOf(s suite.Listed) string {
	text := ""
	for _, l := range letters {
		if slices.Contains(s.Labels, l.label) {
			text += l.letter
		}
	}
	return text
}

// minutesOf is how long a run on real processes takes; "-" if the scenario does not run on them.
func minutesOf(s suite.Listed) string {
	if s.Minutes <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", s.Minutes)
}
