package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/search"
)

// replayReal carries out the steps of a file on real kube-apiservers, and says whether the same invariant is violated in the same way.
func (f *replayFlags) replayReal(ctx context.Context, r *search.Repro, out, progress io.Writer) error {
	plan, err := f.realPlan(r, out)
	if err != nil {
		return err
	}
	f.spec.Own = &run.Own{
		Name:    "replay",
		Happens: fmt.Sprintf("What broke %s in the simulator (policy %s, seed %d) is done to real processes.", r.Invariant, r.Spec.Policy, r.Seed),
		About:   []string{r.Invariant}, Plan: plan, Command: f.words(),
	}
	result, ran := f.spec.Run(ctx, run.Console{Out: out, Progress: progress, Color: isTerminal(out)})
	if result.Dir == "" || ran != nil && ctx.Err() != nil {
		return ran
	}
	return f.recognise(r, result.Dir, ran, out)
}

// realPlan makes the plan, checks that real processes can carry it out, and says what is not as in the file.
func (f *replayFlags) realPlan(r *search.Repro, out io.Writer) (scenario.Plan, error) {
	fail := func(err error) (scenario.Plan, error) { return scenario.Plan{}, &exitError{exitUsage, err} }
	if n := len(r.Case.Servers); n > local.MaxServers { // no leniency helps: every server needs a place
		return fail(fmt.Errorf("replay %s on real processes: it has %d servers, and there is room for %d", f.file, n, local.MaxServers))
	}
	plan := newRealPlan(r)
	subject, doubts, err := subjectOf(r.Spec, plan.Versions())
	if err != nil {
		return fail(err)
	}
	refused := append(doubts, plan.Refused...)
	if len(refused) > 0 && !f.lenient {
		return fail(fmt.Errorf("replay %s on real processes: they cannot be made to do all of it; --lenient does the rest:\n  %s",
			f.file, strings.Join(refused, "\n  ")))
	}
	f.spec.Backend, f.spec.Out, f.spec.Subject, f.spec.From, f.spec.To = f.backend, f.out, subject, r.Spec.From, r.Spec.To
	f.spec.Servers, f.spec.Seed = len(plan.Servers), &r.Seed
	checked := f.spec
	checked.Own = &run.Own{Name: "replay of " + f.file, Plan: plan.Plan}
	if _, err := checked.Plan(); err != nil {
		return fail(err)
	}
	for _, s := range refused {
		fmt.Fprintln(out, "Left out:", s)
	}
	for _, s := range plan.Changed {
		fmt.Fprintln(out, "Changed:", s)
	}
	return plan.Plan, nil
}

// subjectOf is the subject that a policy of the simulator stands for, and what about it real processes of those versions do not have.
func subjectOf(spec search.Spec, versions []string) (subject string, doubts []string, err error) {
	for _, c := range spec.Changes {
		doubts = append(doubts, "change "+c+": the switches of a real kube-apiserver, and of the sidecar of a run, cannot be turned")
	}
	switch spec.Policy {
	case search.None:
		return scenario.SubjectNone, doubts, nil
	case "reference":
		return scenario.SubjectReference, doubts, nil
	case "alpha-1.28":
		return "", nil, fmt.Errorf("policy %s: the backend local has no subject that works by StorageVersion objects; it has %s",
			spec.Policy, strings.Join(scenario.Subjects, ", "))
	}
	searched, _, err := search.Spec{Policy: spec.Policy}.Build()
	if err != nil {
		return "", nil, err
	}
	for _, v := range versions {
		own, err := run.PresetOf(v)
		if err != nil {
			return "", nil, err
		}
		name := own.Name
		if own.Name = searched.Name; !reflect.DeepEqual(own, searched) {
			doubts = append(doubts, fmt.Sprintf("policy %s in kube-apiserver %s: its own proxy behaves like %s", spec.Policy, v, name))
		}
	}
	return scenario.SubjectBuiltin, doubts, nil
}

// words are the command that makes the plan, to which the flags of the Spec are added.
func (f *replayFlags) words() []string {
	words := []string{"replay", f.file}
	if f.lenient {
		words = append(words, "--lenient")
	}
	return words
}

// recognise says whether the run shows the violation of the file: of the same invariant, in the same way, on what the file asks for. Real
// kube-apiservers serve much that the file does not ask for, and may fail at that in ways of their own.
func (f *replayFlags) recognise(r *search.Repro, dir run.Dir, ran error, out io.Writer) error {
	h, err := history.ReadFile(dir.History())
	if err != nil {
		return errors.Join(ran, notRun(err))
	}
	v := verdictOn(judgeAskedFor(h, r), r.Invariant)
	fmt.Fprintf(out, "\nOn what the file asks for, %s\n", judged(r, v))
	for _, e := range v.Evidence {
		if e.Cause == r.Cause {
			fmt.Fprintf(out, "  in the simulator:  %s\n  on real processes: %s\n", r.Sentence, e.Sentence)
			break
		}
	}
	switch {
	case v.Outcome == invariant.OutcomeFail:
		return &exitError{code: exitFail}
	case ran != nil:
		return ran
	case v.Outcome == invariant.OutcomePass:
		return nil
	default:
		return &exitError{code: exitInconclusive}
	}
}

// judgeAskedFor judges what the file asks for. What is left out has been pressure all the same: if there was enough of it, no more is demanded.
func judgeAskedFor(h *history.History, r *search.Repro) []invariant.Verdict {
	answered := 0
	for _, o := range h.Operations {
		if o.Status != 0 {
			answered++
		}
	}
	if answered >= h.Run.Pressure.Operations {
		h.Run.Pressure.Operations = 0
	}
	onlyAskedFor(h, r)
	return invariant.Judge(h)
}

// onlyAskedFor keeps the operations on those resources that the file asks for; discovery is kept if the file asks for it.
func onlyAskedFor(h *history.History, r *search.Repro) {
	h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool {
		for _, q := range r.Case.Requests {
			if q.GVR == o.GVR && q.Subresource == o.Subresource && (q.Verb == history.VerbDiscovery) == (o.Verb == history.VerbDiscovery) {
				return false
			}
		}
		return true
	})
}
