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
	for _, p := range local.Places(run.Subject, run.Servers) {
		for _, version := range plan.Versions() {
			components, err := local.Components(version, run.Subject, p, files)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			for _, c := range components {
				fmt.Fprintf(out, "\n%s %s, %s, on host %s (%s)\n  %s\n", c.Program, p.Name, version, p.Name, p.Cable, strings.Join(c.Args, "\n  "))
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
