package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/internal/upgrade"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim/recorded"
)

// planForms are the forms of a plan.
var planForms = map[string]func(io.Writer, reports.UpgradePlan) error{
	"text": reports.WritePlanText, "wide": reports.WritePlanWide, "markdown": reports.WritePlanMarkdown, "html": reports.WritePlanHTML, "json": reports.WritePlanJSON,
}

func newPlan() *cobra.Command {
	var from, to, form, version, dir string
	var out string
	var rehearsed bool
	var asked upgrade.Flags
	own := binaries.Overrides{}
	cmd := &cobra.Command{
		Use:   "plan --from VERSION --to VERSION",
		Short: "Say what an upgrade changes, what protects it, and what to do in which order",
		Long: `Say what an upgrade of the kube-apiservers from one version to another changes, what protects clients while both versions
run, which known defects apply, and what to do in which order. The plan contacts no cluster and, without --rehearse, starts nothing.

It reads recordings of what real kube-apiservers serve. --record starts the kube-apiserver of a version in a sandbox, once with every API
on and once with the defaults, and records what it serves. Later plans read this recording.

--feature-gates and --peer-ca-file say which flags your servers have, beside those that kubeadm gives.

--rehearse carries out the scenarios that cover this pair of versions with these flags, on real kube-apiservers on this machine, as
'skewproof run' does. It writes their verdicts into the plan.

Exit code 0: every server starts with these flags; 1: some server does not start, so the upgrade must not begin.`,
		Example: `  skewproof plan --from v1.36.3 --to v1.37.1
  skewproof plan --from v1.35.4 --to v1.36.3 -o html > plan.html
  skewproof plan --from v1.36.3 --to v1.37.1 --peer-ca-file /etc/kubernetes/pki/ca.crt -o markdown
  skewproof plan --from v1.36.3 --to v1.37.1 --rehearse -o html > plan.html
  skewproof plan --record v1.38.0 --binary kube-apiserver@v1.38.0=PATH`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				var err error
				if dir, err = recordings(); err != nil {
					return err
				}
			}
			if version != "" {
				if from != "" || to != "" {
					return usage("--record records one version; make the plan in a second command, without --record")
				}
				return record(cmd.Context(), version, dir, own, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if from == "" || to == "" {
				return usage("a plan needs --from and --to, such as --from %s --to %s", run.DefaultFrom, run.DefaultTo)
			}
			write, ok := planForms[form]
			if !ok {
				return usage("-o %q: want text, wide, markdown, html or json", form)
			}
			if out != "" && !rehearsed {
				return usage("--out is the directory of the runs of --rehearse; give that, too")
			}
			older, newer, err := upgrade.Find(from, to, dir)
			if err != nil {
				return err
			}
			options := upgrade.Options{From: older, To: newer, Flags: asked, Findings: findings.All(), Version: run.Version()}
			plan := upgrade.Make(options)
			if rehearsed {
				if err := rehearse(cmd, options, &plan, out); err != nil {
					return err
				}
			}
			if err := write(cmd.OutOrStdout(), plan); err != nil {
				return err
			}
			if of := plan.Protection[0]; !of.Old.Starts || !of.New.Starts {
				return &exitError{code: exitFail}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "the version that all servers run before the upgrade")
	flags.StringVar(&to, "to", "", "the version that all servers run after it")
	flags.StringVarP(&form, "output", "o", "text", "text, wide (text with everything), markdown, html or json")
	flags.StringVar(&asked.FeatureGates, "feature-gates", "", "the --feature-gates of your kube-apiservers")
	flags.StringVar(&asked.PeerCAFile, "peer-ca-file", "", "the --peer-ca-file of your kube-apiservers, if they have one")
	flags.BoolVar(&rehearsed, "rehearse", false, "carry out the scenarios of the plan on real kube-apiservers, and write their verdicts into the plan")
	flags.StringVar(&out, "out", "", "with --rehearse: directory for the runs (default _out/rehearsal-TIME)")
	flags.StringVar(&version, "record", "", "record what this version serves")
	flags.StringVar(&dir, "documents", "",
		"directory of recordings, in addition to those of released versions (default skewproof/recorded in the user's cache directory)")
	flags.Var(&own, "binary", "with --record: a kube-apiserver of your own, as kube-apiserver@VERSION=PATH")
	return cmd
}

// rehearse carries out the runs of a plan, and writes their verdicts into it. It carries out none if
// a server does not start.
func rehearse(cmd *cobra.Command, o upgrade.Options, p *reports.UpgradePlan, out string) error {
	var plans []*run.Plan
	for _, spec := range upgrade.Rehearsal(o, *p) {
		plan, err := spec.Plan()
		if err != nil {
			return fmt.Errorf("rehearse %s: %w", spec.Scenario, err)
		}
		plans = append(plans, plan)
	}
	if len(plans) == 0 {
		return nil
	}
	progress := cmd.ErrOrStderr()
	runs := suite.Options{Out: out, Console: run.Console{Out: progress, Progress: progress}}
	results, err := runs.Once(cmd.Context(), "rehearsal", plans)
	if err != nil {
		return err
	}
	for i, f := range results {
		s := &p.Rehearsal[i]
		s.Verdict, s.Says = reports.Word(invariant.OutcomeInconclusive), f.Problem
		if f.Problem == "" {
			s.Verdict, s.Says = reports.Word(f.Report.Standing().Outcome()), f.Report.Verdict.Sentence
		}
		fmt.Fprintf(progress, "%d of %d: %s, %.0f s: %s\n", i+1, len(plans), s.Name, f.Took.Seconds(), s.Verdict)
	}
	return cmd.Context().Err()
}

// recordings is the directory of the user's own recordings.
func recordings() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the directory of recordings: %w; give --documents", err)
	}
	return filepath.Join(cache, "skewproof", "recorded"), nil
}

// record records what a version serves, with every API on and by default.
func record(ctx context.Context, version, dir string, own binaries.Overrides, out, progress io.Writer) error {
	var documents [2][2][]byte
	for i, defaults := range []bool{false, true} {
		var err error
		if documents[i], err = run.Documents(ctx, version, defaults, own, progress); err != nil {
			return fmt.Errorf("record what kube-apiserver %s serves: %w", version, err)
		}
	}
	if err := recorded.Write(dir, version, documents[0], documents[1]); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "Recorded what %s serves, with every API on and by default: %s\n", version, dir)
	return err
}
