package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

var matrixPage = template.Must(template.New("matrix.html.tmpl").Funcs(template.FuncMap{
	"sign":      sign,
	"mark":      mark,
	"capital":   capital,
	"clock":     clock,
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
			asItMust := c.Subject == subjectNone && c.Core.Result == ResultFailed
			if c.Trouble != "" || c.Core.Result != ResultPassed && !asItMust {
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

// Page is where the report of the run lies; empty if there is none.
func (c MatrixCell) Page() string {
	if c.Directory == "" || len(c.Verdicts) == 0 {
		return ""
	}
	return filepath.ToSlash(filepath.Join(c.Directory, HTMLFile))
}

// SaveMatrix writes the matrix into dir, which is made if it does not exist, as [MatrixJSON], [MatrixText] and [MatrixHTML]. As with
// [WriteAll] no reader ever sees half a file.
func SaveMatrix(dir string, m VersionMatrix) error {
	var files []file
	for _, r := range []struct {
		name   string
		render func(io.Writer, VersionMatrix) error
	}{
		{MatrixJSON, writeMatrixJSON},
		{MatrixText, func(w io.Writer, m VersionMatrix) error { return WriteMatrixText(w, m, SummaryOptions{}) }},
		{MatrixHTML, WriteMatrixHTML},
	} {
		var b bytes.Buffer
		if err := r.render(&b, m); err != nil {
			return fmt.Errorf("render %s: %w", r.name, err)
		}
		files = append(files, file{filepath.Join(dir, r.name), b.Bytes()})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory %s: %w%s", dir, err, wayOut(err))
	}
	return replace(files)
}

func writeMatrixJSON(w io.Writer, m VersionMatrix) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(m)
}

// ReadMatrix reads a version matrix that was saved as JSON. It refuses any other document and one with fields it does not know.
func ReadMatrix(path string) (VersionMatrix, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return VersionMatrix{}, fmt.Errorf("read version matrix: %w", err)
	}
	var m VersionMatrix
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return VersionMatrix{}, fmt.Errorf("read version matrix %s: not a %s: %w", path, MatrixKind, err)
	}
	if m.APIVersion != APIVersion || m.Kind != MatrixKind {
		return VersionMatrix{}, fmt.Errorf("read version matrix %s: apiVersion %q, kind %q: this skewproof reads %q, %q only", path, m.APIVersion, m.Kind, APIVersion, MatrixKind)
	}
	if n := slices.IndexFunc(m.Cells, func(c MatrixCell) bool {
		return c.Pair < 0 || c.Pair >= len(m.Pairs) || len(c.Verdicts) != 0 && len(c.Verdicts) != len(m.Invariants)
	}); n >= 0 {
		return VersionMatrix{}, fmt.Errorf("read version matrix %s: cells[%d] is of no pair of versions, or has not one verdict for each invariant", path, n)
	}
	return m, nil
}
