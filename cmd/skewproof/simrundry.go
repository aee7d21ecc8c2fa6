package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// dryRunSimulated prints what would be done.
func (f *runFlags) dryRunSimulated(out io.Writer, run history.Run, plan scenario.Plan) error {
	listSteps(out, run, plan)
	fmt.Fprintln(out, "\nServers, in virtual time:")
	for _, s := range plan.Servers {
		policy, on, err := simulatedPolicy(f.subject, s.Version)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		name := policy.Name
		if !on {
			name = "the feature switched off"
		}
		fmt.Fprintf(out, "  %s, %s, with %s\n", s.Name, s.Version, name)
	}
	encoded, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe plan as data:\n%s\n", encoded)
	return err
}
