package traffic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// The paths of OpenAPI descriptions.
const (
	openAPIv2 = "/openapi/v2"
	openAPIv3 = "/openapi/v3"
)

// ParseOpenAPI reads what an OpenAPI description is of: the index of version 3, the document of one group version, or a whole document of version 2, in JSON. The result lists
// each group version that it has paths of, as a resource without a name.
func ParseOpenAPI(body []byte) (history.Document, error) {
	var description struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(body, &description); err != nil {
		return history.Document{}, fmt.Errorf("parse OpenAPI: %w", err)
	}
	if len(description.Paths) == 0 {
		return history.Document{}, fmt.Errorf("parse OpenAPI: it describes no path")
	}
	versions := map[history.GVR]bool{}
	for path := range description.Paths {
		switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
		case parts[0] == "api" && len(parts) > 1:
			versions[history.GVR{Version: parts[1]}] = true
		case parts[0] == "apis" && len(parts) > 2:
			versions[history.GVR{Group: parts[1], Version: parts[2]}] = true
		}
	}
	doc := history.Document{Hash: hashOf(body), Bytes: len(body)}
	for v := range versions {
		doc.Resources = append(doc.Resources, history.Resource{GVR: v})
	}
	slices.SortFunc(doc.Resources, func(a, b history.Resource) int { return compareGVR(a.GVR, b.GVR) })
	return doc, nil
}
