package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/reports"
)

// withHelp makes the help of all commands as wide as other texts.
func withHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		// The library writes a flag that may stand alone as --known string[="true"].
		usage := strings.ReplaceAll(cmd.UsageString(), `--known string[="true"]`, `--known[=FILE]         `)
		fmt.Fprint(cmd.OutOrStdout(), folded(cmp.Or(cmd.Long, cmd.Short)+"\n\n"+usage, reports.Columns(cmd.OutOrStdout())))
	})
}

// entry is the beginning of an entry of a list: a term, such as a flag, and two spaces or more.
var entry = regexp.MustCompile(`^ +\S+(?: \S+)*? {2,}`)

// folded breaks help into lines anew: its paragraphs, and the entries of its lists. Other lines are
// to be copied, and stay as they are, such as examples.
func folded(help string, columns int) string {
	var b strings.Builder
	begin, text := "", ""
	end := func() {
		if text != "" {
			b.WriteString(reports.Wrapped(begin, text, columns))
		}
		text = ""
	}
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		head := entry.FindString(line)
		switch {
		case text != "" && line != "" && indent == utf8.RuneCountInString(begin): // goes on
			text += " " + line[indent:]
		case line != "" && (indent == 0 || head != "" && line[len(head)] != '#'):
			end()
			begin, text = head, line[len(head):]
		default:
			end()
			b.WriteString(line + "\n")
		}
	}
	end()
	return b.String()
}
