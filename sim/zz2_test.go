package sim

import "github.com/skewproof/skewproof/internal/scenario"

func zz(s string) scenario.Traffic { return scenario.Traffic(s) }
