package traffic

import (
	"encoding/binary"
	"testing"
)

func TestEventCounters(t *testing.T) {
	frame := func(body string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body }
	for _, tt := range []struct {
		name, contentType, stream string
		want                      int
	}{
		{"JSON", "application/json", "{}\n{}\n", 2},
		{"JSON, the last one cut short", "application/json", "{}\n{", 1},
		{"protobuf", "application/vnd.kubernetes.protobuf;stream=watch", frame("one") + frame("") + frame("three"), 3},
		{"protobuf, the last one cut short", "application/vnd.kubernetes.protobuf;stream=watch", frame("one") + frame("two")[:5], 1},
		{"protobuf, cut in a length", "application/vnd.kubernetes.protobuf;stream=watch", frame("one") + "\x00\x00", 1},
		{"nothing", "application/json", "", 0},
	} {
		for _, chunk := range []int{1, 3, 1000} {
			t.Run(tt.name, func(t *testing.T) {
				counter := newEventCounter(tt.contentType)
				for stream := []byte(tt.stream); len(stream) > 0; {
					n := min(chunk, len(stream))
					counter.count(stream[:n])
					stream = stream[n:]
				}
				if got := counter.seen(); got != tt.want {
					t.Errorf("%d events in chunks of %d bytes, want %d", got, chunk, tt.want)
				}
			})
		}
	}
}
