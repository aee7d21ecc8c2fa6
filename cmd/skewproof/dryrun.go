package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// dryRun prints what would be done.
func dryRun(out io.Writer, run history.Run, plan scenario.Plan) error {
	listSteps(out, run, plan)
	files := local.Files{Keys: "KEYS", Data: "DATA", Logs: "LOGS"}
	fmt.Fprintf(out, "\netcd\n  %s\n", strings.Join(local.EtcdArguments(files), "\n  "))
	for i, p := range local.Places(run.Subject, run.Servers) {
		for _, s := range startsOf(plan, plan.Servers[i]) {
			p.Setup = s.Setup
			components, err := local.Components(s.Version, run.Subject, p, files)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			how := s.Version
			if s.Setup != nil {
				how += ", " + s.Setup.String()
			}
			for _, c := range components {
				fmt.Fprintf(out, "\n%s %s, %s, on host %s (%s)\n  %s\n", c.Program, p.Name, how, p.Name, p.Subnet, strings.Join(c.Args, "\n  "))
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

// startsOf is a server in each way in which a plan starts it, as it is first started at first.
func startsOf(plan scenario.Plan, server scenario.Server) []scenario.Server {
	all, now := []scenario.Server{server}, server
	for _, s := range plan.Steps {
		if s.Server != server.Name || !slices.Contains([]scenario.Action{scenario.Start, scenario.Restart, scenario.Replace}, s.Action) {
			continue
		}
		now.Version, now.Setup = cmp.Or(s.Version, now.Version), s.Setup
		if !slices.ContainsFunc(all, func(had scenario.Server) bool {
			return had.Version == now.Version && had.Setup.String() == now.Setup.String()
		}) {
			all = append(all, now)
		}
	}
	return all
}

// listSteps prints what a run does.
func listSteps(out io.Writer, run history.Run, plan scenario.Plan) {
	fmt.Fprintf(out, "%s: %s\n\nSteps:\n", run.Scenario, run.Sentence)
	for i, s := range plan.Steps {
		fmt.Fprintf(out, "  %2d. %s\n", i+1, s)
	}
}
