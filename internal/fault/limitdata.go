package fault

import "fmt"

// LimitData closes a connection (FIN at both ends) once one of its streams has carried Bytes. Each
// stream has its own limit. On open connections only data after the injection counts.
const LimitData Kind = "limit-data"

// LimitDataToxic is the type of the toxic of LimitData.
const LimitDataToxic = "limit_data"

var limitData = kind{
	takes:    []string{"bytes"},
	check:    func(f Fault) error { return required("bytes", f.Bytes) },
	sentence: func(f Fault) string { return fmt.Sprintf("%d B", f.Bytes) },
	toxic:    func(f Fault) Toxic { return Toxic{LimitDataToxic, map[string]int64{"bytes": f.Bytes}} },
	Effect:   Effect{Breaks: true, Affects: WhatBreaks},
}
