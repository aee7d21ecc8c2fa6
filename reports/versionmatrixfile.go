package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

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

// ReadMatrix reads a version matrix that was saved as JSON. It refuses any other document, one with fields it does not know, and one whose
// result does not follow from its runs; the error names the file and what is wrong with it.
func ReadMatrix(path string) (VersionMatrix, error) {
	f, err := os.Open(path)
	if err != nil {
		return VersionMatrix{}, fmt.Errorf("read version matrix: %w", err)
	}
	defer func() { _ = f.Close() }()
	m, err := DecodeMatrix(f)
	if err != nil {
		return VersionMatrix{}, fmt.Errorf("read version matrix %s: %w", path, err)
	}
	return m, nil
}

// DecodeMatrix is [ReadMatrix] from a stream.
func DecodeMatrix(in io.Reader) (VersionMatrix, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxReport+1))
	switch {
	case err != nil:
		return VersionMatrix{}, err
	case len(data) > maxReport:
		return VersionMatrix{}, fmt.Errorf("longer than %d MiB, which no version matrix is", maxReport>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return VersionMatrix{}, errors.New("the file is empty: run the matrix again to write a new one")
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return VersionMatrix{}, fmt.Errorf("not a JSON document: %w", err)
	}
	if head.APIVersion != APIVersion || head.Kind != MatrixKind {
		return VersionMatrix{}, fmt.Errorf("apiVersion %q, kind %q: this skewproof reads %q, %q only", head.APIVersion, head.Kind, APIVersion, MatrixKind)
	}
	var m VersionMatrix
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return VersionMatrix{}, fmt.Errorf("not a %s: %w", MatrixKind, err)
	}
	return m, m.check()
}

// check refuses what the renderings could not show truthfully.
func (m VersionMatrix) check() error {
	for n, c := range m.Cells {
		if c.Pair < 0 || c.Pair >= len(m.Pairs) || len(c.Verdicts) != 0 && len(c.Verdicts) != len(m.Invariants) {
			return fmt.Errorf("cells[%d] is of no pair of versions, or has not one verdict for each invariant", n)
		}
		if i := slices.IndexFunc(c.Verdicts, unknown); i >= 0 {
			return fmt.Errorf("cells[%d]: verdict %q is not pass, fail or inconclusive", n, c.Verdicts[i])
		}
		for _, r := range []Result{c.Core.Result, c.Extended.Result} {
			if _, ok := outcomes[r]; !ok {
				return fmt.Errorf("cells[%d]: result %q is not passed, failed, inconclusive or skipped", n, r)
			}
		}
	}
	if result, _ := m.conclusion(); m.Result != result {
		return fmt.Errorf("result is %q, and its runs come to %q: the file was altered", m.Result, result)
	}
	return nil
}
