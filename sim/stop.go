package sim

import "fmt"

// stopEvery is the number of events between two looks at Options.Stop. It takes milliseconds.
const stopEvery = 1 << 10

// stoppedBefore is the error of a run that was stopped. left is what it has not finished.
func stoppedBefore(left string) string {
	if left == "" {
		return "the run was stopped before its last answers came"
	}
	return "the run was stopped: " + left
}

// left says what a run has not finished; "" if it has finished.
func (s *Simulator) left(c *Case) string {
	done := len(s.history.Steps)
	switch {
	case !s.driver.over && done < len(c.Steps):
		return fmt.Sprintf("step %d of %d, %s, was not over", done+1, len(c.Steps), &c.Steps[done])
	case !s.driver.over:
		return "not every server was ready"
	case s.outstanding > 0:
		return fmt.Sprintf("%d of the requests had not been sent", s.outstanding)
	}
	return ""
}
