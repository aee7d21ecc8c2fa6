package reports

import (
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// classes are the classes of requests in the order in which they are shown.
var classes = []classInWords{
	{invariant.ClassServedHere, "Served here", "the server that was asked serves the resource itself"},
	{invariant.ClassSkewed, "Skewed", "the server that was asked does not serve the resource, another live one does"},
	{invariant.ClassUnserved, "Unserved", "no live server serves the resource"},
	{invariant.ClassDiscovery, "Discovery", "about no resource"},
	{invariant.ClassDown, "Down", "the server that was asked was not running"},
	{invariant.ClassUnknown, "Unknown", "what was served changed meanwhile, or was not known"},
}

// classInWords is a class with its name and its meaning for someone who sees it for the first time.
type classInWords struct {
	class          invariant.Class
	title, meaning string
}

func order(c invariant.Class) int {
	return slices.IndexFunc(classes, func(w classInWords) bool { return w.class == c })
}
