package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/run"
)

// 'judge' and 'report' show a summary for people, or with --output the document from which programs
// read the same.

// registerForm declares the flag --output of a command that shows a report.
func registerForm(flags *pflag.FlagSet, form *string) {
	flags.StringVarP(form, "output", "o", "", "wide, json or yaml; wide shows every invariant of a run, json and yaml the whole document")
}

func checkForm(form string) error {
	if form == "" || form == "wide" || isDocument(form) {
		return nil
	}
	return usage("--output %q: want wide, json or yaml", form)
}

// isDocument reports whether a form is for programs.
func isDocument(form string) bool { return form == "json" || form == "yaml" }

// consoleFor is where a command shows its results in a form. A document takes the place of the
// summary.
func consoleFor(cmd *cobra.Command, form string) run.Console {
	c := console(cmd)
	c.Wide = form == "wide"
	if isDocument(form) {
		c.Out = io.Discard
	}
	return c
}

// writeAs writes a value as JSON or YAML.
func writeAs(out io.Writer, form string, value any) error {
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// writeDocument writes the document in a file, JSON or YAML, in a form for programs. It writes
// nothing in other forms. more is true if another document is before it.
func writeDocument(out io.Writer, form, path string, more bool) error {
	if !isDocument(form) {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the document to show: %w", err)
	}
	isYAML := filepath.Ext(path) == ".yaml"
	switch {
	case form == "json" && isYAML:
		text, err = yaml.YAMLToJSON(text)
		text = append(text, '\n')
	case form == "yaml" && !isYAML:
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("convert %s to %s: %w", path, form, err)
	}
	if form == "yaml" && more {
		text = append([]byte("---\n"), text...)
	}
	_, err = out.Write(text)
	return err
}

// verdictOnly returns an error unless the error is only the exit code of a verdict, for which there
// is a document.
func verdictOnly(err error) error {
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return nil
	}
	return err
}
