package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/config"
	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/internal/upgrade"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/recorded"
)

// planForms are the forms of a plan.
var planForms = map[string]func(io.Writer, reports.UpgradePlan) error{
	"text": reports.WritePlanText, "wide": reports.WritePlanWide, "markdown": reports.WritePlanMarkdown, "html": reports.WritePlanHTML, "json": reports.WritePlanJSON,
}

func newPlan() *cobra.Command {
	var from, to, form, version, dir, line, out, list, authority string
	var files []string
	var rehearsed, fields bool
	own := binaries.Overrides{}
	cmd := &cobra.Command{
		Use:   "plan {--from VERSION | --config FILE} --to VERSION",
		Short: "Say what an upgrade changes, what protects it, and what to do in which order",
		Long: `Say what an upgrade of the kube-apiservers from one version to another changes, what protects clients while both versions
run, which known defects apply, and what to do in which order. The plan contacts no cluster and, without --rehearse, starts nothing.

It reads recordings of what real kube-apiservers serve and permit, of what their controllers create by themselves, and of flags and feature
gates. --record starts the kube-apiserver of a version in a sandbox, with every API on and with the defaults, then kube-controller-manager of
that version for a minute, and builds a program that writes the flags. Later plans read this recording.

--record-fields compares how two versions treat the fields of objects: it starts one kube-apiserver of each version on one etcd in a sandbox,
and sends thousands of objects to both.

--config reads the flags and the version of your kube-apiservers from a file: from kubeadm's ClusterConfiguration, from a static pod of
kube-apiserver, or from a configuration of k3s or RKE2. --flags-from reads them from a command line as well, such as
'ps -o args= -C kube-apiserver' prints it. What the file does not say is as by default. --feature-gates and --peer-ca-file say which flags
your servers have in addition, and win.

--rehearse carries out the scenarios that cover this pair of versions with these flags, on real kube-apiservers on this machine, as
'skewproof run' does. It writes their verdicts into the plan.

Exit code 0: every server starts with these flags; 1: some server does not start, so the upgrade must not begin.`,
		Example: `  skewproof plan --from v1.36.3 --to v1.37.1
  skewproof plan --from v1.35.4 --to v1.36.3 -o html > plan.html
  skewproof plan --config kubeadm.yaml --to v1.37.1
  ps -o args= -C kube-apiserver | skewproof plan --from v1.36.3 --to v1.37.1 --flags-from -
  skewproof plan --from v1.36.3 --to v1.37.1 --peer-ca-file /etc/kubernetes/pki/ca.crt -o markdown
  skewproof plan --from v1.36.3 --to v1.37.1 --rehearse -o html > plan.html
  skewproof plan --record v1.38.0 --binary kube-apiserver@v1.38.0=PATH
  skewproof plan --record-fields --from v1.36.3 --to v1.37.1`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				var err error
				if dir, err = recordings(); err != nil {
					return err
				}
			}
			ofPlan := slices.ContainsFunc([]string{"output", "feature-gates", "peer-ca-file", "config", "flags-from", "rehearse", "out"}, cmd.Flags().Changed)
			if version != "" {
				if from != "" || to != "" || fields || ofPlan {
					return usage("--record records one version; make the plan in a second command, without --record")
				}
				return record(cmd.Context(), version, dir, own, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if fields {
				if from == "" || to == "" || ofPlan {
					return usage("--record-fields compares two versions; give --from and --to, and no flags of a plan")
				}
				return recordFields(cmd.Context(), from, to, dir, own, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			write, ok := planForms[form]
			if !ok {
				return usage("-o %q: want text, wide, markdown, html or json", form)
			}
			if out != "" && !rehearsed {
				return usage("--out is the directory of the runs of --rehearse; give that, too")
			}
			file, err := openConfig(cmd.InOrStdin(), files, line, cmd.Flags().Changed("flags-from"))
			if err != nil {
				return err
			}
			asked := upgrade.Flags{Set: file.Flags, Recordings: []string{dir}}.With(history.FeatureGates, list).With(gates.PeerCAFile, authority)
			for _, flag := range asked.Set {
				if flag.Name == history.FeatureGates && !flag.Bare && !flag.Variable() {
					if err := gates.CheckList(flag.Value); err != nil {
						return usage("%s: %w", flag.From, err)
					}
				}
			}
			from, to, notes, err := planVersions(file, from, to, dir)
			if err != nil {
				return err
			}
			older, newer, err := upgrade.Find(from, to, dir)
			if err != nil {
				return err
			}
			plan, specs := upgrade.Make(upgrade.Options{From: older, To: newer, Flags: asked, Notes: notes, Version: run.Version()})
			var failed error
			if rehearsed {
				failed = rehearse(cmd, specs, &plan, out)
			}
			if err := errors.Join(write(cmd.OutOrStdout(), plan), failed); err != nil { // what was rehearsed is not lost
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
	flags.StringVar(&list, "feature-gates", "", "the --feature-gates of your kube-apiservers")
	flags.StringVar(&authority, "peer-ca-file", "", "the --peer-ca-file of your kube-apiservers, if they have one")
	flags.StringArrayVar(&files, "config", nil, "a file with the flags of your kube-apiservers, or - for the standard input")
	flags.StringVar(&line, "flags-from", "", "a file with the command line of a kube-apiserver, or - for the standard input")
	flags.BoolVar(&rehearsed, "rehearse", false, "carry out the scenarios of the plan on real kube-apiservers, and write their verdicts into the plan")
	flags.StringVar(&out, "out", "", "with --rehearse: directory for the runs (default _out/rehearsal-TIME)")
	flags.StringVar(&version, "record", "", "record what this version serves")
	flags.BoolVar(&fields, "record-fields", false, "record the fields that --from and --to treat differently")
	flags.StringVar(&dir, "documents", "",
		"directory of recordings, in addition to those of released versions (default skewproof/recorded in the user's cache directory)")
	flags.Var(&own, "binary", "with --record: a kube-apiserver of your own, as kube-apiserver@VERSION=PATH")
	return cmd
}

// openConfig reads the files of a plan, or the one with a command line if lines is true. Without
// any, the result is empty.
func openConfig(stdin io.Reader, files []string, line string, lines bool) (file config.File, err error) {
	if lines {
		if len(files) > 0 {
			return file, usage("--config and --flags-from: give one of them")
		}
		files = []string{line}
	}
	if len(files) > 0 {
		if file, err = config.Open(files, stdin, lines); err != nil {
			return file, usage("%w", err)
		}
	}
	return file, nil
}

// planVersions completes the versions of a plan from a file, and returns notes for the reader.
func planVersions(file config.File, from, to, dir string) (older, newer string, notes []string, err error) {
	if v := file.Version; v != "" && !semver.IsValid("v"+strings.TrimPrefix(v, "v")) {
		if from == "" {
			return "", "", nil, usage("the file gives the version %q, which names no release by itself: say with --from which version your servers run", v)
		}
		file.Version = ""
	}
	if from != "" && to == "" {
		to = file.Version
	}
	if from = cmp.Or(from, file.Version); from == "" || to == "" {
		return "", "", nil, usage("a plan needs --from and --to, such as --from %s --to %s; a file of --config may say the version of --from", run.DefaultFrom, run.DefaultTo)
	}
	notes = file.Notes
	for _, version := range []*string{&from, &to} {
		release, sentence := config.Release(*version, recorded.Names(dir))
		if *version = release; sentence != "" {
			notes = append(notes, sentence)
		}
	}
	if old := file.OldAPI(to); old != "" {
		notes = append(notes, old)
	}
	return from, to, notes, nil
}

// rehearse carries out the runs of a plan, and writes their verdicts into it. It carries out none
// if a server does not start.
func rehearse(cmd *cobra.Command, specs []run.Spec, p *reports.UpgradePlan, out string) error {
	var plans []*run.Plan
	takes := time.Duration(0)
	for _, spec := range specs {
		plan, err := spec.Plan()
		if err != nil {
			return fmt.Errorf("rehearse %s: %w", spec.Scenario, err)
		}
		plans, takes = append(plans, plan), takes+run.Expected(plan.Schedule)
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
	fmt.Fprintf(progress, "Rehearsing: %d runs in %s, about %.0f min\n", len(plans), runs.Out, takes.Minutes())
	for i, f := range results {
		if cmd.Context().Err() != nil {
			return errors.New("the rehearsal was stopped: the plan has the verdicts of the runs that had ended")
		}
		s := &p.Rehearsal[i]
		s.Verdict, s.Says = reports.Word(invariant.OutcomeInconclusive), f.Problem
		if f.Problem == "" {
			s.Verdict, s.Says = reports.Word(f.Report.Standing().Outcome()), f.Report.Verdict.Sentence
		}
		fmt.Fprintf(progress, "%d of %d: %s, %.0f s: %s\n", i+1, len(plans), s.Name, f.Took.Seconds(), s.Verdict)
	}
	return nil
}

// recordings is the directory of the user's own recordings.
func recordings() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the directory of recordings: %w; give --documents", err)
	}
	return filepath.Join(cache, "skewproof", "recorded"), nil
}

// record records what a version serves, with every API on and by default, what it does and permits,
// and its flags and feature gates.
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
	fmt.Fprintf(out, "Recorded what %s serves, with every API on and by default: %s\n", version, dir)
	for _, part := range []struct {
		what   string
		record func() error
	}{
		{"what controllers of " + version + " do by themselves, and what it permits", func() error { return recordBehaviour(ctx, version, dir, own, progress) }},
		{"the flags and feature gates of " + version, func() error { return recordFlags(ctx, version, dir, progress) }},
	} {
		if err := part.record(); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil { // as for one's own build, which is no published module
			fmt.Fprintf(out, "Not recorded: %s: %v\n", part.what, err)
		} else {
			fmt.Fprintf(out, "Recorded %s.\n", part.what)
		}
	}
	return nil
}

// recordBehaviour records what controllers of a version do by themselves, and what it permits with
// kinds of every recorded version.
func recordBehaviour(ctx context.Context, version, dir string, own binaries.Overrides, progress io.Writer) error {
	var all []*recorded.Version
	for _, name := range recorded.Names(dir) {
		r, err := recorded.Find(name, dir)
		if err != nil {
			return err
		}
		all = append(all, r.All)
	}
	body, err := run.Behaviour(ctx, version, recorded.Kinds(all...), own, progress)
	if err != nil {
		return err
	}
	return recorded.WriteBehaviour(dir, version, body)
}

// recordFlags builds the program that writes the flags of a version, and runs it.
func recordFlags(ctx context.Context, version, dir string, progress io.Writer) error {
	program, err := (&binaries.Store{Progress: progress}).Get(ctx, binaries.KubeAPIServerFlags, version)
	if err != nil {
		return run.BinaryError(err)
	}
	body, err := exec.CommandContext(ctx, program.Path).Output()
	if err != nil {
		return fmt.Errorf("run %s: %w", program.Path, err)
	}
	if _, err := gates.Parse(version, body); err != nil {
		return err
	}
	return recorded.WriteFlags(dir, version, body)
}

// recordFields records the fields that two versions treat differently.
func recordFields(ctx context.Context, from, to, dir string, own binaries.Overrides, out, progress io.Writer) error {
	flips, err := gates.Flips(from, to, dir)
	if err != nil && !errors.Is(err, recorded.ErrNoFlags) {
		return err
	}
	table, err := run.Fields(ctx, from, to, flips, own, progress)
	if err == nil {
		err = recorded.WriteFields(dir, table)
	}
	if err != nil {
		return fmt.Errorf("record the fields of %s and %s: %w", from, to, err)
	}
	c := table.Counts
	_, err = fmt.Fprintf(out, "Recorded %d differences of %s and %s, in %d fields of %d kinds and %d subresources (besides %d refused alike and %d not tried): %s\n",
		len(table.Fields), from, to, c.Judged, c.Kinds, c.Subresources, c.RefusedAlike, c.NotTried, dir)
	return err
}
