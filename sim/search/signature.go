package search

import (
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// Violation is a violation in a run.
type Violation struct {
	reports.ViolationKind
	// Signature is the violation's signature, with its circumstances.
	Signature invariant.Signature
	// Sentence and Cause are those in the evidence.
	Sentence, Cause string
}

// Violations returns the violations of a run, each kind once. known explains some of them.
func Violations(known findings.Catalogue, verdicts []invariant.Verdict) []Violation {
	var all []Violation
	for i := range verdicts {
		v := &verdicts[i]
		if v.Outcome != invariant.OutcomeFail {
			continue
		}
		for j := range v.Evidence {
			e := &v.Evidence[j]
			kind := reports.ViolationKind{Signature: e.Signature.Core()}
			if f, ok := known.Explain(e.Signature); ok {
				kind = reports.ViolationKind{Finding: f.Number, Title: f.Title}
			}
			if !slices.ContainsFunc(all, func(o Violation) bool { return o.ViolationKind == kind && o.Signature.Invariant == v.Name }) {
				all = append(all, Violation{kind, e.Signature, e.Sentence, e.Cause})
			}
		}
	}
	return all
}

// requestKind returns the kind of the violation's request.
func requestKind(s invariant.Signature) reports.RequestKind {
	switch s.Mechanism {
	case invariant.MechanismForgedHop:
		return reports.ForgedRequest
	case invariant.MechanismSubresource:
		return reports.SubresourceRequest
	}
	return reports.PlainRequest
}
