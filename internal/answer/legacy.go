package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/api/apidiscovery/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// legacy decodes the forms of /apis and /api for older clients.
var legacy = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(v2beta1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// ParseLegacy parses a discovery document of /apis or /api in an older format, in JSON or protobuf.
// The result has each group version as a resource without a name; the hash is the hash of the exact
// bytes.
func ParseLegacy(body []byte) (history.Document, error) {
	if !bytes.HasPrefix(body, protobufMagic) {
		if err := json.Unmarshal(body, &struct{}{}); err != nil { // otherwise the decoder would parse it as YAML
			return history.Document{}, fmt.Errorf("parse legacy discovery: %w", err)
		}
	}
	object, of, err := legacy.Decode(body, &schema.GroupVersionKind{Version: "v1"}, nil)
	if err != nil {
		return history.Document{}, fmt.Errorf("parse legacy discovery: %w", err)
	}
	var versions []history.GVR
	switch root := object.(type) {
	case *metav1.APIVersions: // of the core group
		for _, v := range root.Versions {
			versions = append(versions, history.GVR{Version: v})
		}
	case *metav1.APIGroupList:
		for _, g := range root.Groups {
			for _, v := range g.Versions {
				versions = append(versions, history.GVR{Group: g.Name, Version: v.Version})
			}
		}
	case *v2beta1.APIGroupDiscoveryList:
		for _, g := range root.Items {
			for _, v := range g.Versions {
				versions = append(versions, history.GVR{Group: g.Name, Version: v.Version})
			}
		}
	default:
		return history.Document{}, fmt.Errorf("parse legacy discovery: got kind %q", of.Kind)
	}
	return groupVersions(body, versions), nil
}

// ParseOpenAPI returns the group versions of the paths in an OpenAPI description in JSON. The
// description is the index of version 3, the document of one group version, or a whole document of
// version 2. The result has each group version as a resource without a name.
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
