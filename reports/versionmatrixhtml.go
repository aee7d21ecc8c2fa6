package reports

import (
	"bytes"
	"html/template"
	"io"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/invariant"
)

var matrixPage = template.Must(template.New("matrix.html.tmpl").Funcs(template.FuncMap{
	"sign":      sign,
	"mark":      mark,
	"capital":   capital,
	"clock":     clock,
	"lasting":   lasting,
	"outcome":   func(r Result) invariant.Outcome { return outcomes[r] },
	"firstLine": firstLine,
}).ParseFS(assets, "assets/matrix/*.tmpl"))

// matrixDocument is what the template is given.
type matrixDocument struct {
	VersionMatrix
	Parts  []matrixPart
	Style  template.CSS
	Policy string
	JSON   string
}

// matrixPart is what there is of one pair of versions.
type matrixPart struct {
	VersionPair
	Cells []MatrixCell
	// Told are the cells that have something to tell beside their verdicts.
	Told []MatrixCell
}

// WriteMatrixHTML writes the matrix as one self-contained page, under the rules of [WriteHTML]. It has no script at all. Its links lead to the
// reports of the runs beside it.
func WriteMatrixHTML(w io.Writer, m VersionMatrix) error {
	var style []byte
	for _, name := range []string{"assets/report.css", "assets/matrix/matrix.css"} {
		part, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		style = append(style, part...)
	}
	d := matrixDocument{
		VersionMatrix: m, Style: template.CSS(style), JSON: MatrixJSON,
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + source(style),
	}
	for n, pair := range m.Pairs {
		part := matrixPart{VersionPair: pair}
		for _, c := range m.Cells {
			if c.Pair != n {
				continue
			}
			part.Cells = append(part.Cells, c)
			if c.Trouble != "" || c.Core.Result != ResultPassed && !c.AsItMust() {
				part.Told = append(part.Told, c)
			}
		}
		d.Parts = append(d.Parts, part)
	}
	var b bytes.Buffer
	if err := matrixPage.Execute(&b, d); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// AsItMust reports whether the cell is the negative control and failed.
func (c MatrixCell) AsItMust() bool { return c.Subject == subjectNone && c.Core.Result == ResultFailed }

// Page is where the report of the run lies; empty if there is none.
func (c MatrixCell) Page() string {
	if c.Directory == "" || len(c.Verdicts) == 0 {
		return ""
	}
	return filepath.ToSlash(filepath.Join(c.Directory, HTMLFile))
}
