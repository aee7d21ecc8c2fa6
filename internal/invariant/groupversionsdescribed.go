package invariant

// groupVersionsDescribed is about what clients ask for that have found a version in merged discovery: client-go's ServerResourcesForGroupVersion does.
var groupVersionsDescribed = Invariant{
	Name:  "GroupVersionsDescribed",
	Grade: GradeExtended,
	Sentence: "An apiserver that is asked for the discovery document of one group or version (/apis/GROUP, /apis/GROUP/VERSION) of which it serves nothing itself does " +
		"not say that there is none while some live apiserver serves anything of it, and so merged discovery lists it.",
	Source:  "beyond KEP-4020, whose Summary, note 2, leaves these documents to each apiserver by itself",
	Outside: true,
	judge:   judgeDescribed,
}

func judgeDescribed(f *Facts) *tally {
	t, tolerated := f.judgeDenials(func(o *observation) ruling {
		if !o.leftLocal() {
			return rulingNone
		}
		return f.ruleDenied(o)
	}, "anything of it")
	t.fact("tolerated while knowledge spread", tolerated)
	return t
}
