package account

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// records hands each record of a log of JSON lines to do, in order. A killed process may leave a last line that is cut short, and its successor goes on
// behind it in the same line: what is whole of that counts.
func records[T any](log io.Reader, do func(T)) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	var broken error
	for n := 1; lines.Scan(); n++ {
		if broken != nil {
			return broken
		}
		for _, text := range whole(lines.Bytes()) {
			var record T
			if err := json.Unmarshal(text, &record); err != nil {
				broken = fmt.Errorf("line %d: %w", n, err)
				continue
			}
			do(record)
		}
	}
	return lines.Err()
}

// whole are the records in a line that ends with one: two if the one before it lacks its newline only. A line that does not end with a record is returned
// as it is. Nothing within a record can be taken for one: the record goes on behind it.
func whole(line []byte) [][]byte {
	if json.Valid(line) {
		return [][]byte{line}
	}
	for from := 1; from < len(line); from++ {
		next := bytes.IndexByte(line[from:], '{')
		if next < 0 {
			break
		}
		from += next
		if !json.Valid(line[from:]) {
			continue
		}
		if json.Valid(line[:from]) {
			return [][]byte{line[:from], line[from:]}
		}
		return [][]byte{line[from:]}
	}
	return [][]byte{line}
}
