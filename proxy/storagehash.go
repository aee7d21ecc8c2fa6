package proxy

import (
	"encoding/json"
	"maps"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// hashesFresh is how long a peer's list is used. The hashes of a process do not change, but a list
// that was fetched while the process started may lack some of them.
const hashesFresh = 5 * time.Minute

// storageHashes returns the hashes of the storage versions of a version's resources. Only legacy
// lists have these hashes. They come from the local server for the resources that it serves, and
// from a peer for the resources that only peers serve. If no server lists a hash, the result lacks
// it.
func (e *exchange) storageHashes(root Root, group string, v apidiscoveryv2.APIVersionDiscovery) map[string]string {
	if e.h.config.Document == nil {
		return nil
	}
	path := root.Path() + "/" + Resource{Group: group, Version: v.Version}.GroupVersion().String()
	hashes, index := map[string]string{}, e.table.local[root].index
	if index.Version(group, v.Version) {
		if own := e.askLocal(path, runtime.ContentTypeJSON); own != nil {
			told, _ := hashesIn(own.Body.Bytes()) // a list that cannot be decoded has no hashes
			for resource, hash := range told {
				if index.Resource(group, v.Version, resource, "") {
					hashes[resource] = hash
				}
			}
		}
	}
	missing := e.lacking(root, group, v)
	maps.DeleteFunc(missing, func(r Resource, _ string) bool { return r.Subresource != "" })
	missing.from(e, root, func(p PeerView, adds lacking) bool {
		list, err := e.h.peerDocument(p, path, p.Incarnation, hashesFresh)
		if err != nil {
			return false
		}
		told, err := hashesIn(list.body)
		if err != nil {
			e.h.spoilt(p, path, err)
			return false
		}
		for r := range adds { // in any order
			if hash, ok := told[r.Resource]; ok {
				hashes[r.Resource] = hash
			}
		}
		return true
	})
	return hashes
}

// hashesIn reads a legacy list of resources.
func hashesIn(body []byte) (map[string]string, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, r := range list.APIResources {
		if r.StorageVersionHash != "" {
			hashes[r.Name] = r.StorageVersionHash
		}
	}
	return hashes, nil
}
