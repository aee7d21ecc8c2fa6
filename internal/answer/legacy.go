package answer

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
)

// legacyRoot is as much as is compared of the formats of /apis or /api that older clients ask for: metav1 APIGroupList and
// APIVersions, and apidiscovery.k8s.io/v2beta1.
type legacyRoot struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Versions   []string      `json:"versions"` // of the core group, in APIVersions
	Groups     []legacyGroup `json:"groups"`
	Items      []struct {    // in v2beta1
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		legacyGroup
	} `json:"items"`
}

type legacyGroup struct {
	Name     string `json:"name"`
	Versions []struct {
		Version string `json:"version"`
	} `json:"versions"`
}

// ParseLegacy reads a discovery document of /apis or /api in any format but the present one, in JSON or protobuf. The
// result lists each group version as a resource without a name; the hash is that of the exact bytes.
func ParseLegacy(body []byte) (history.Document, error) {
	versions, err := legacyVersions(body)
	if err != nil {
		return history.Document{}, fmt.Errorf("parse legacy discovery: %w", err)
	}
	return groupVersions(body, versions), nil
}

func legacyVersions(body []byte) ([]history.GVR, error) {
	envelope, isProtobuf := bytes.CutPrefix(body, protobufMagic)
	if isProtobuf {
		return protobufVersions(envelope)
	}
	var root legacyRoot
	if err := json.Unmarshal(body, &root); err != nil {
		return nil, err
	}
	var all []history.GVR
	switch root.Kind {
	case "APIVersions":
		for _, v := range root.Versions {
			all = append(all, history.GVR{Version: v})
		}
	case "APIGroupList":
		for _, g := range root.Groups {
			for _, v := range g.Versions {
				all = append(all, history.GVR{Group: g.Name, Version: v.Version})
			}
		}
	case "APIGroupDiscoveryList":
		if root.APIVersion == "apidiscovery.k8s.io/v2" { // which ParseDiscovery reads, and makes more of
			return nil, fmt.Errorf("got kind %q of %q", root.Kind, root.APIVersion)
		}
		for _, g := range root.Items {
			for _, v := range g.Versions {
				all = append(all, history.GVR{Group: g.Metadata.Name, Version: v.Version})
			}
		}
	default:
		return nil, fmt.Errorf("got kind %q", root.Kind)
	}
	return all, nil
}

func protobufVersions(envelope []byte) ([]history.GVR, error) {
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(envelope); err != nil {
		return nil, err
	}
	var all []history.GVR
	switch unknown.Kind {
	case "APIVersions":
		var versions metav1.APIVersions
		if err := versions.Unmarshal(unknown.Raw); err != nil {
			return nil, err
		}
		for _, v := range versions.Versions {
			all = append(all, history.GVR{Version: v})
		}
	case "APIGroupList":
		var list metav1.APIGroupList
		if err := list.Unmarshal(unknown.Raw); err != nil {
			return nil, err
		}
		for _, g := range list.Groups {
			for _, v := range g.Versions {
				all = append(all, history.GVR{Group: g.Name, Version: v.Version})
			}
		}
	default:
		return nil, fmt.Errorf("got kind %q", unknown.Kind)
	}
	return all, nil
}
