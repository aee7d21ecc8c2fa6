package fieldskew

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Object makes the smallest object of a resource that has the field at a path, and that two servers
// accept, or one of them if the other accepts none. The path has the form of
// [recorded.FieldSkew]; an empty one is for the smallest object. Nothing is stored.
func Object(ctx context.Context, sides [2]Side, r Resource, path string) (map[string]any, error) {
	s := &sweep{sides: sides, schemas: [2]Schemas{sides[0].Schemas, sides[1].Schemas}, slots: make(chan struct{}, 1)}
	if err := json.Unmarshal(dataFile, &s.data); err != nil {
		return nil, fmt.Errorf("read the data of the sweep: %w", err)
	}
	var root pair
	for i, schemas := range s.schemas {
		root.name, root.side[i] = schemas.resolve(schemas.kind(r.GVR, r.Kind))
	}
	smallest, _ := s.smallest(root, 0).(tree)
	var object any = merge(tree{"apiVersion": strings.TrimPrefix(r.Group+"/"+r.Version, "/"), "kind": r.Kind, "metadata": tree{"name": "skewproof"}},
		merge(smallest, s.data.Objects[r.String()]))
	for _, place := range [][]string{nil, s.placeOf(root, path)} {
		a := attempt{object: object, root: root, target: place, tried: map[string]int{}}
		if place != nil {
			of, _ := root.at(s.schemas, place)
			a.object = s.set(object, root, place, s.smallest(of, 0))
		}
		t, err := s.try(ctx, r, &a)
		if err != nil {
			return nil, err
		}
		if t.accepted() == 0 {
			return nil, fmt.Errorf("make an object of %s with %q: no server accepts it: %s", r.GVR, path, t.answers[1].Refusal.Message)
		}
		object = t.object
	}
	made, _ := object.(tree)
	return made, nil
}

// placeOf is the place of a path in an object: the first item of each list, and a key in each map.
func (s *sweep) placeOf(root pair, path string) (place []string) {
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[*]", ".[*]"), ".") {
		of, _ := root.at(s.schemas, place)
		switch {
		case step == "":
			continue
		case step != "[*]":
		case of.shape() == mapping:
			step = cmp.Or(s.data.Keys[of.item(s.schemas).name], s.data.Keys[""])
		default:
			step = "0"
		}
		place = append(place, step)
	}
	return place
}
