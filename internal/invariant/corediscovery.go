package invariant

// KEP-4020 foresees no merged discovery of the core group (Summary, note 1): no resource will be added to it, only subresources. Elsewhere it speaks of /api
// as of /apis (Discovery Merging), and upstream's servers merge both. So at /api what is below a resource may be each server's own, and all else is held
// to what holds at /apis.

// alike reports whether two answers at a path are what KEP-4020 wants to be the same.
func (f *Facts) alike(path string, a, b edition) bool {
	return a == b || path == pathCore && a.etag != b.etag && f.subresourcesDiffer(a.hash, b.hash)
}

// subresourcesDiffer reports whether two documents differ, and in subresources alone.
func (f *Facts) subresourcesDiffer(a, b string) bool {
	left, right := f.documents[a], f.documents[b]
	if left == nil || right == nil || a == b {
		return false
	}
	d := contrast(Difference{}, setOf(elements(left)), setOf(elements(right)))
	return d.OnlyLeftTotal+d.OnlyRightTotal > 0 && len(lacking(resourcesOf(left), resourcesOf(right)))+len(lacking(resourcesOf(right), resourcesOf(left))) == 0
}

// resourcesOf lists a document without subresources.
func resourcesOf(d *document) map[element]bool {
	set := map[element]bool{}
	for _, e := range elements(d) {
		if e.subresource == "" {
			set[e] = true
		}
	}
	return set
}

// foreignAtCore reports whether all that a core document lacks are subresources that its own server does not serve either.
func foreignAtCore(missing []element, own *document) bool {
	if own == nil {
		return false
	}
	for _, e := range missing {
		if e.subresource == "" || own.lists[e.key] {
			return false
		}
	}
	return true
}
