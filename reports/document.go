package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// maxDocument bounds the size of a document that is read, in bytes. Those of runs are well below 1 MiB; a campaign has a repro in each finding.
const maxDocument = 64 << 20

// readable is a kind of documents that are read back.
type readable[T any] struct {
	noun  string        // "run report"
	kind  string        // of the object
	again string        // what makes a new one: "judge the saved history again to write a new report"
	yaml  bool          // it is written in YAML rather than JSON
	check func(T) error // refuses what contradicts itself
}

// read reads a file. The error names it, and what is wrong with it.
func (d readable[T]) read(path string) (T, error) {
	f, err := os.Open(path)
	if err != nil {
		return *new(T), fmt.Errorf("read %s: %w", d.noun, err)
	}
	defer func() { _ = f.Close() }()
	document, err := d.decode(f)
	if err != nil {
		return *new(T), fmt.Errorf("read %s %s: %w", d.noun, path, err)
	}
	return document, nil
}

// decode refuses what is no document of this kind and version, has fields that nobody knows, or contradicts itself.
func (d readable[T]) decode(in io.Reader) (T, error) {
	var none, document T
	data, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return none, err
	case len(data) > maxDocument:
		return none, fmt.Errorf("longer than %d MiB, which no %s is", maxDocument>>20, d.noun)
	case len(bytes.TrimSpace(data)) == 0:
		return none, errors.New("the file is empty: " + d.again)
	}
	if d.yaml {
		if data, err = yaml.YAMLToJSONStrict(data); err != nil {
			return none, fmt.Errorf("not a YAML document: %w", err)
		}
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return none, fmt.Errorf("not a JSON document: %w", err)
	}
	if head.APIVersion != APIVersion || head.Kind != d.kind {
		return none, fmt.Errorf("apiVersion %q, kind %q: this skewproof reads %q, %q only", head.APIVersion, head.Kind, APIVersion, d.kind)
	}
	fields := json.NewDecoder(bytes.NewReader(data))
	fields.DisallowUnknownFields()
	if err := fields.Decode(&document); err != nil {
		return none, fmt.Errorf("not a %s: %w", d.kind, err)
	}
	if err := d.check(document); err != nil {
		return none, err
	}
	return document, nil
}

// rendering is one form of a document, in a file of its own.
type rendering[T any] struct {
	name   string
	render func(io.Writer, T) error
}

// save renders a document in each form and writes all files into dir, which is made if it does not exist, or none. others are written with them.
func save[T any](dir string, document T, forms []rendering[T], others ...file) error {
	files := make([]file, 0, len(forms)+len(others))
	for _, f := range forms {
		var b bytes.Buffer
		if err := f.render(&b, document); err != nil {
			return fmt.Errorf("render %s: %w", f.name, err)
		}
		files = append(files, file{filepath.Join(dir, f.name), b.Bytes()})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the report directory %s: %w%s", dir, err, wayOut(err))
	}
	return replace(append(files, others...))
}

// writeIndented writes a document as JSON that people can read.
func writeIndented[T any](w io.Writer, document T) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}
