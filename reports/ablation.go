package reports

import (
	"io"

	"github.com/skewproof/skewproof/sim/search"
)

// WriteAblation writes the table of an ablation into dir, which is made if it does not exist, as text, Markdown and JSON: all three or, with an error,
// none, as [WriteAll] does.
func WriteAblation(dir string, a *search.Ablation) error {
	return save(dir, a, []rendering[*search.Ablation]{
		{"ablation.txt", func(w io.Writer, a *search.Ablation) error { return a.WriteText(w) }},
		{"ablation.md", func(w io.Writer, a *search.Ablation) error { return a.WriteMarkdown(w) }},
		{"ablation.json", writeIndented[*search.Ablation]},
	})
}
