package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/scenarios"
)

// dryRun prints what would be done.
func dryRun(out io.Writer, run history.Run, plan scenarios.Plan) error {
	fmt.Fprintf(out, "%s: %s\n\nSteps:\n", run.Scenario, run.Sentence)
	for i, s := range plan.Steps {
		fmt.Fprintf(out, "  %2d. %s\n", i+1, s)
	}
	files := local.Files{Keys: "KEYS", Data: "DATA", Logs: "LOGS"}
	fmt.Fprintf(out, "\netcd\n  %s\n", strings.Join(local.EtcdArguments(files), "\n  "))
	printed := map[string]bool{}
	show := func(version string, p local.Place) error {
		components, err := local.Components(version, run.Subject, p, files)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		for _, c := range components {
			what := fmt.Sprintf("%s %s, %s, on host %s (%s)", c.Program, p.Name, version, p.Name, p.Cable)
			if setup := p.Setup.String(); setup != "" {
				what += ", " + setup
			}
			if !printed[what] {
				fmt.Fprintf(out, "\n%s\n  %s\n", what, strings.Join(c.Args, "\n  "))
			}
			printed[what] = true
		}
		return nil
	}
	setUps := plan.SetUps()
	for _, p := range local.Places(run.Subject, run.Servers) {
		for _, version := range plan.Versions() {
			if err := show(version, p); err != nil {
				return err
			}
		}
		for _, s := range setUps {
			if s.Name != p.Name {
				continue
			}
			p.Setup = s.Setup
			if err := show(s.Version, p); err != nil {
				return err
			}
		}
	}
	encoded, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe plan as data:\n%s\n", encoded)
	return err
}
