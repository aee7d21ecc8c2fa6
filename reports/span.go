package reports

import "fmt"

// span is a labelled stretch of time in a row of its own.
type span struct {
	rect
	Label          string
	LabelX, LabelY float64
	Before         bool // the label stands before the span, since there is no room behind it
}

// stepSpans lays the steps out in as few rows as their labels allow, and returns where the next row would begin.
func stepSpans(steps []Step, s scale, top float64) ([]span, float64) {
	var rows rows
	var out []span
	for n, step := range steps {
		v := newSpan(s, step.StartSeconds, step.EndSeconds, fmt.Sprintf("%d %s", n+1, step.Sentence))
		v.Class = "step"
		if step.Error != "" {
			v.Class = "step failed"
		}
		v.Title = fmt.Sprintf("step %d: %s, %s to %s", n+1, step.Sentence, clock(step.StartSeconds), clock(step.EndSeconds))
		rows.place(&v, top)
		out = append(out, v)
	}
	return out, top + float64(len(rows))*rowHeight
}

// faultSpans does the same for faults.
func faultSpans(faults []Fault, s scale, top float64) ([]span, float64) {
	var rows rows
	var out []span
	for _, f := range faults {
		v := newSpan(s, f.StartSeconds, f.EndSeconds, f.Kind+" "+f.Target())
		v.Class, v.Title = "fault-bar", f.title()
		if !f.Evidence.Bit {
			v.Class = "fault-bar no-effect"
		}
		rows.place(&v, top)
		out = append(out, v)
	}
	return out, top + float64(len(rows))*rowHeight
}

func (f Fault) title() string {
	s := fmt.Sprintf("fault %d: %s %s, %s to %s", f.ID, f.Kind, f.Target(), clock(f.StartSeconds), clock(f.EndSeconds))
	if f.Detail != "" {
		s += ", " + f.Detail
	}
	if !f.Evidence.Bit {
		s += "; it touched nothing"
	}
	return s
}

// newSpan puts the label behind the span, or before it where it would not fit.
func newSpan(s scale, start, end Seconds, label string) span {
	const longest = 60
	if r := []rune(label); len(r) > longest {
		label = string(r[:longest-1]) + "…"
	}
	v := span{rect: rect{X: s.x(start), W: max(3, s.width(start, end)), H: rowHeight - 14}, Label: label}
	v.LabelX = round(v.X + v.W + 5)
	if v.LabelX+textWidth(label) > chartRight && v.X-textWidth(label) > chartLeft {
		v.LabelX, v.Before = v.X-5, true
	}
	return v
}

// extent is what the span and its label take up.
func (v span) extent() (from, to float64) {
	if v.Before {
		return v.LabelX - textWidth(v.Label), v.X + v.W
	}
	return v.X, v.LabelX + textWidth(v.Label)
}

// rows are the stretches that are taken in each row.
type rows [][][2]float64

// place puts v into the first row with room for it.
func (r *rows) place(v *span, top float64) {
	const gap = 12
	from, to := v.extent()
	n := 0
	for ; n < len(*r); n++ {
		free := true
		for _, taken := range (*r)[n] {
			free = free && (to+gap < taken[0] || from > taken[1]+gap)
		}
		if free {
			break
		}
	}
	if n == len(*r) {
		*r = append(*r, nil)
	}
	(*r)[n] = append((*r)[n], [2]float64{from, to})
	v.Y = top + float64(n)*rowHeight + 7
	v.LabelY = v.Y + (rowHeight-14)/2
}
