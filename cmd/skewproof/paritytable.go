package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim/parity"
)

func (p *pair) agreement() string {
	n := len(p.local.Invariants)
	return fmt.Sprintf("%d of %d", n-len(p.disagreements), n)
}

// tell prints the table, and what is behind it.
func (f *parityFlags) tell(out io.Writer, pairs []*pair) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "scenario\tsubject\tagree\tdisagree")
	unknown := 0
	var list strings.Builder
	for _, p := range pairs {
		var differing []string
		for _, d := range p.disagreements {
			differing = append(differing, fmt.Sprintf("%s (%s, sim %s)", d.Invariant, d.Local, d.Sim))
			why, ok := parity.Explain(d)
			if !ok {
				unknown++
				why = "NOT KNOWN"
			}
			fmt.Fprintf(&list, "\n%s\n  %s\n", d, why)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.scenario, p.subject, p.agreement(), strings.Join(differing, ", "))
		if f.causes {
			both, onlyLocal, onlySim := parity.Causes(p.local, p.sim)
			fmt.Fprintf(&list, "\n%s, %s: %d kinds of violations on both\n", p.scenario, p.subject, len(both))
			for _, c := range onlyLocal {
				fmt.Fprintf(&list, "  only on real processes: %s\n", c)
			}
			for _, c := range onlySim {
				fmt.Fprintf(&list, "  only in the simulator:  %s\n", c)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, list.String())
	if unknown > 0 {
		fmt.Fprintf(out, "\n%d disagreements are not known: mend the simulator, or explain them in sim/parity/known.json.\n", unknown)
		return outcomeError(invariant.OutcomeFail)
	}
	fmt.Fprintf(out, "\nEvery disagreement is known.\n")
	return nil
}
