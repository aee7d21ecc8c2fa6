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
	// Signature is that of the violation, with its circumstances.
	Signature invariant.Signature
	// Sentence and Cause are those of the evidence.
	Sentence, Cause string
}

// violations lists the violations of a run, each kind once. known explains some.
func violations(known findings.Catalogue, verdicts []invariant.Verdict) []Violation {
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

// requestKind is what sets the request of a violation apart.
func requestKind(s invariant.Signature) reports.RequestKind {
	switch s.Mechanism {
	case invariant.MechanismForgedHop:
		return reports.ForgedRequest
	case invariant.MechanismSubresource:
		return reports.SubresourceRequest
	}
	return reports.PlainRequest
}
