package answer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// ParseOpenAPI reads which group versions an OpenAPI description in JSON has paths of: the index of version 3, the document
// of one group version, or a whole document of version 2. The result lists each as a resource without a name.
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
	return groupVersions(body, slices.Collect(maps.Keys(versions))), nil
}
