package search

import (
	"fmt"
	"io"
	"os"
)

// readFile reads what a file holds. Errors name the kind of thing and the file.
func readFile[T any](what, path string, decode func(io.Reader) (*T, error)) (*T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", what, err)
	}
	defer f.Close()
	v, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("read the %s %s: %w", what, path, err)
	}
	return v, nil
}

// readBounded reads everything, which may be so many MiB at most.
func readBounded(from io.Reader, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, most<<20+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most<<20 {
		return nil, fmt.Errorf("it is longer than %d MiB", most)
	}
	return body, nil
}
