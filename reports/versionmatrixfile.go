package reports

import (
	"fmt"
	"io"
	"slices"
)

// SaveMatrix writes the matrix into dir, which is made if it does not exist, as [MatrixJSON], [MatrixText] and [MatrixHTML]. As with
// [WriteAll] no reader ever sees half a file.
func SaveMatrix(dir string, m VersionMatrix) error {
	return save(dir, m, []rendering[VersionMatrix]{
		{MatrixJSON, writeIndented[VersionMatrix]},
		{MatrixText, func(w io.Writer, m VersionMatrix) error { return WriteMatrixText(w, m, SummaryOptions{}) }},
		{MatrixHTML, WriteMatrixHTML},
	})
}

var matrices = readable[VersionMatrix]{"version matrix", MatrixKind, "run the matrix again to write a new one", inJSON, VersionMatrix.check}

// ReadMatrix reads a version matrix that was saved as JSON. It refuses any other document, one with fields it does not know, and one whose
// result does not follow from its runs; the error names the file and what is wrong with it.
func ReadMatrix(path string) (VersionMatrix, error) { return matrices.read(path) }

// DecodeMatrix is [ReadMatrix] from a stream.
func DecodeMatrix(in io.Reader) (VersionMatrix, error) { return matrices.decode(in) }

// check refuses what the renderings could not show truthfully.
func (m VersionMatrix) check() error {
	for n, c := range m.Cells {
		if c.Pair < 0 || c.Pair >= len(m.Pairs) || len(c.Verdicts) != 0 && len(c.Verdicts) != len(m.Invariants) {
			return fmt.Errorf("cells[%d] is of no pair of versions, or has not one verdict for each invariant", n)
		}
		if i := slices.IndexFunc(c.Verdicts, unknown); i >= 0 {
			return fmt.Errorf("cells[%d]: verdict %q is not pass, fail or inconclusive", n, c.Verdicts[i])
		}
		for _, p := range []ProfileResult{c.Core, c.Extended} {
			if _, ok := outcomes[p.Result]; !ok {
				return fmt.Errorf("cells[%d]: result %q is not passed, failed, inconclusive or skipped", n, p.Result)
			}
			if err := p.checkPassed(); err != nil {
				return fmt.Errorf("cells[%d] %w", n, err)
			}
		}
	}
	if result, _ := m.conclusion(); m.Result != result {
		return fmt.Errorf("result is %q, and its runs come to %q: the file was altered", m.Result, result)
	}
	return nil
}
