package proxy

import "strconv"

// String is the action's name in metrics, logs and reports.
func (a Action) String() string {
	switch a {
	case ServeLocally:
		return "local"
	case Forward:
		return "forward"
	case NotFound:
		return "not-found"
	case Unavailable:
		return "unavailable"
	}
	return "action " + strconv.Itoa(int(a))
}

// String is the outcome's name in metrics, logs and reports.
func (o Outcome) String() string {
	switch o {
	case NotDelivered:
		return "not-delivered"
	case Undecided:
		return "undecided"
	case Refused:
		return "refused"
	}
	return "outcome " + strconv.Itoa(int(o))
}
