package account

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// records hands each line of a log of JSON lines to do, in order. The very last line may be cut short, as a killed process leaves it.
func records[T any](log io.Reader, do func(T)) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	var broken error
	for n := 1; lines.Scan(); n++ {
		if broken != nil {
			return broken
		}
		var record T
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			broken = fmt.Errorf("line %d: %w", n, err)
			continue
		}
		do(record)
	}
	return lines.Err()
}
