package discovery

import (
	"net/http"
	"strings"
)

// notModified reports whether a request that has If-None-Match is answered by 304 when the current entity tag is etag: RFC 9110,
// 13.1.2. The comparison is weak, a "*" matches everything that exists, and what is not well formed matches nothing.
func notModified(r *http.Request, etag string) bool {
	for _, value := range r.Header.Values("If-None-Match") {
		if strings.Trim(value, " \t") == "*" {
			return true
		}
		for value != "" {
			var tag string
			tag, value = nextTag(value)
			if tag != "" && tag == etag {
				return true
			}
		}
	}
	return false
}

// nextTag cuts the first entity tag off a list and returns it without its W/. A comma may be part of a tag. Where the list is
// malformed, it ends.
func nextTag(list string) (tag, rest string) {
	list = strings.TrimLeft(list, " \t,") // empty elements are allowed: RFC 9110, 5.6.1.2
	list = strings.TrimPrefix(list, "W/")
	if !strings.HasPrefix(list, `"`) {
		return "", ""
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", ""
	}
	tag, rest = list[:end+2], strings.TrimLeft(list[end+2:], " \t")
	if rest != "" && rest[0] != ',' {
		return "", ""
	}
	return tag, rest
}

// acceptsGzip reads Accept-Encoding: RFC 9110, 12.5.3. Without the header an answer is not compressed, though it might be.
func acceptsGzip(r *http.Request) bool {
	others := false
	for _, value := range r.Header.Values("Accept-Encoding") {
		for _, element := range strings.Split(value, ",") {
			coding, weight, _ := strings.Cut(element, ";")
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "gzip", "x-gzip":
				return !isZero(weight)
			case "*":
				others = !isZero(weight)
			}
		}
	}
	return others
}

// isZero reports whether a weight is q=0, which refuses. What is malformed counts as no weight at all.
func isZero(weight string) bool {
	name, value, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(weight, " ", ""), "\t", ""), "=")
	return strings.EqualFold(name, "q") && value != "" && strings.Trim(value, "0.") == ""
}
