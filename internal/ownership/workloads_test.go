package ownership

import (
	"slices"
	"testing"
)

func TestLostFields(t *testing.T) {
	named := map[string]any{"a": "x", "b": map[string]any{"c": int64(1), "d": []any{map[string]any{"e": true, "f": "y"}, "z"}}, "g": nil}
	for name, c := range map[string]struct {
		answered any
		want     []string
	}{
		"all is there, and more": {map[string]any{"h": "1", "a": "other", "b": map[string]any{"c": int64(2), "d": []any{map[string]any{"e": false, "f": "y"}, "z", "more"}}}, nil},
		"a leaf and an item":     {map[string]any{"a": "x", "b": map[string]any{"d": []any{map[string]any{"e": true}}}}, []string{"b.c", "b.d[0].f", "b.d[1]"}},
		"whole parts":            {map[string]any{"a": "x"}, []string{"b.c", "b.d[0].e", "b.d[0].f", "b.d[1]"}},
		"nothing":                {nil, []string{"a", "b.c", "b.d[0].e", "b.d[0].f", "b.d[1]"}},
	} {
		got := lost(named, c.answered)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
