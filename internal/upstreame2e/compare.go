package upstreame2e

import "github.com/skewproof/skewproof/reports"

// Compare combines the results of the chosen specs on a path with their results on the direct path,
// which are nil if the path is the direct one. The report classifies them.
func Compare(chosen []string, on Results, direct map[string]Result, expected Catalogue, in Circumstances) []reports.UpstreamSpec {
	specs := make([]reports.UpstreamSpec, 0, len(chosen))
	for _, name := range chosen {
		r := on.of(name)
		spec := reports.UpstreamSpec{
			Name: name, Outcome: r.Outcome, Message: r.Message, DurationSeconds: reports.SecondsOf(r.Took), Expected: expected.Why(name, in),
		}
		if in.Path != reports.PathDirect {
			d := Results{Specs: direct}.of(name)
			spec.Direct, spec.DirectMessage = d.Outcome, d.Message
		}
		specs = append(specs, spec)
	}
	return specs
}

// of returns the result of a spec. A spec without a result was not run.
func (r Results) of(name string) Result {
	if result, ok := r.Specs[name]; ok {
		if result.Outcome == reports.SpecNotRun && r.Setup != "" {
			result.Message = r.Setup
		}
		return result
	}
	return Result{Outcome: reports.SpecNotRun, Message: "the tests left no result of it"}
}

// Saved returns the results of an earlier suite, by the full name of the spec.
func Saved(u reports.UpstreamTests) map[string]Result {
	all := map[string]Result{}
	for _, s := range u.Specs {
		all[s.Name] = Result{Outcome: s.Outcome, Message: s.Message}
	}
	return all
}
