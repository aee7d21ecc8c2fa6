package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// fake behaves like etcd's gateway for JSON, and breaks connections off if a test asks for it.
type fake struct {
	mu        sync.Mutex
	changed   chan struct{} // closed at the next change
	events    []event
	compacted int64
	streams   int
	// spoil gets the number of the stream and of the message in it, counted from 1. It may write
	// something else. If it returns false, the connection breaks.
	spoil func(stream, message int, w http.ResponseWriter, line []byte) bool
	// split sends every batch in fragments of one event.
	split bool
	// refuse is the status of every answer, unless it is 0.
	refuse int
	pages  int
}

func serve(t *testing.T, f *fake) Gateway {
	t.Helper()
	f.changed = make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/kv/range", f.rangeKeys)
	mux.HandleFunc("POST /v3/watch", f.watch)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		refuse := f.refuse
		f.mu.Unlock()
		if refuse != 0 {
			http.Error(w, `{"message":"not for you"}`, refuse)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return Gateway{Client: server.Client(), Address: server.Listener.Addr().String()}
}

func (f *fake) now() int64 {
	if len(f.events) == 0 {
		return 1
	}
	return f.events[len(f.events)-1].KV.ModRevision
}

// change changes keys to values in one transaction. An empty value deletes the key.
func (f *fake) change(pairs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	revision := f.now() + 1
	for i := 0; i < len(pairs); i += 2 {
		e := event{KV: keyValue{Key: []byte(pairs[i]), Value: []byte(pairs[i+1]), ModRevision: revision}}
		if pairs[i+1] == "" {
			e.Type = "DELETE"
		}
		f.events = append(f.events, e)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) rangeKeys(w http.ResponseWriter, r *http.Request) {
	var question rangeRequest
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var answer rangeResponse
	answer.Header.Revision = f.now()
	f.pages++
	at := question.Revision
	if at == 0 {
		at = f.now()
	}
	kept := map[string]keyValue{}
	for _, e := range f.events {
		if e.KV.ModRevision > at {
			break
		}
		delete(kept, string(e.KV.Key))
		if e.Type != "DELETE" {
			kept[string(e.KV.Key)] = e.KV
		}
	}
	for key, kv := range kept {
		if key == string(question.Key) || len(question.RangeEnd) > 0 && key > string(question.Key) && key < string(question.RangeEnd) {
			answer.KVs = append(answer.KVs, kv)
		}
	}
	slices.SortFunc(answer.KVs, func(a, b keyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	if limit := int(question.Limit); limit > 0 && len(answer.KVs) > limit {
		answer.KVs, answer.More = answer.KVs[:limit], true
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fake) watch(w http.ResponseWriter, r *http.Request) {
	var question watchRequest
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.streams++
	stream, message, from := f.streams, 0, question.Create.StartRevision
	f.mu.Unlock()
	send := func(format string, args ...any) {
		message++
		line := fmt.Appendf(nil, format+"\n", args...)
		if f.spoil != nil && !f.spoil(stream, message, w, line) {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(line)
		_ = http.NewResponseController(w).Flush()
	}
	send(`{"result":{"header":{"revision":"1"},"created":true}}`)
	for {
		f.mu.Lock()
		changed, compacted := f.changed, f.compacted
		first := slices.IndexFunc(f.events, func(e event) bool { return e.KV.ModRevision >= from })
		var batch []event
		if first >= 0 {
			batch = f.events[first:]
			from = f.now() + 1
		}
		f.mu.Unlock()
		switch {
		case question.Create.StartRevision < compacted:
			send(`{"result":{"canceled":true,"compact_revision":"%d"}}`, compacted)
		case len(batch) > 0 && f.split:
			for i, e := range batch {
				send(`{"result":{"fragment":%t,"events":%s}}`, i < len(batch)-1, encode([]event{e}))
			}
			continue
		case len(batch) > 0:
			send(`{"result":{"events":%s}}`, encode(batch))
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// watching is a call of Watch in progress.
type watching struct {
	t    *testing.T
	stop context.CancelFunc
	done chan error
	mu   sync.Mutex
	seen []history.Object
	more chan struct{}
}

func watch(t *testing.T, g Gateway) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{t: t, stop: cancel, done: make(chan error, 1), more: make(chan struct{}, 1)}
	clock := history.Time(0)
	go func() {
		w.done <- g.Watch(ctx, func() history.Time { clock++; return clock }, func(o history.Object) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, o)
			select {
			case w.more <- struct{}{}:
			default:
			}
		})
	}()
	return w
}

// until waits until Watch has emitted an object of that name.
func (w *watching) until(name string) {
	w.t.Helper()
	late := time.After(30 * time.Second)
	for {
		w.mu.Lock()
		found := slices.ContainsFunc(w.seen, func(o history.Object) bool { return o.Name == name })
		w.mu.Unlock()
		if found {
			return
		}
		select {
		case <-w.more:
		case err := <-w.done:
			w.t.Fatalf("the watch ended before %s was seen: %v", name, err)
		case <-late:
			w.t.Fatalf("%s was not seen", name)
		}
	}
}

// end ends the watch. It returns the emitted objects, as "revision name" with "gone" or "deleting".
func (w *watching) end() ([]string, error) {
	w.t.Helper()
	w.stop()
	err := <-w.done
	var out []string
	last := history.Time(0)
	for _, o := range w.seen {
		line := fmt.Sprintf("%d %s", o.Revision, o.Name)
		if o.Gone {
			line += " gone"
		}
		if o.At <= last {
			w.t.Errorf("%s was emitted at %s, not after the object before it", line, o.At)
		}
		last = o.At
		out = append(out, line)
	}
	return out, err
}

func (w *watching) wants(want ...string) {
	w.t.Helper()
	got, err := w.end()
	if err != nil || !slices.Equal(got, want) {
		w.t.Fatalf("seen %q, %v; want %q", got, err, want)
	}
}

func key(name string) string { return "/registry/configmaps/n/" + name }

// written returns a ConfigMap as it is in etcd. Its UID is "uid-" plus its name.
func written(t *testing.T, name string) string {
	t.Helper()
	return string(encoded(t, inProtobuf, configMap(name, "uid-"+name)))
}

func TestWatchTellsWhatExistsAndThenEveryChange(t *testing.T) {
	f := &fake{}
	g := serve(t, f)
	f.change(key("b"), written(t, "b")) // 2
	f.change(key("a"), written(t, "a")) // 3
	f.change(key("b"), written(t, "b")) // 4
	f.change(key("c"), written(t, "c")) // 5
	f.change(key("c"), "")              // 6
	w := watch(t, g)
	w.until("b")
	f.change("/registry/leases/n/l", "anything", key("d"), written(t, "d")) // 7
	f.change("compact_rev_key", "7")                                        // 8
	f.change(key("a"), "")                                                  // 9
	w.until("d")
	f.change(key("a"), written(t, "a")) // 10
	f.change("compact_rev_key", "10")   // the last revision changes no API object
	w.wants("3 a", "4 b", "7 d", "9 a gone", "10 a")
	gone := w.seen[3]
	if gone.UID != "uid-a" || gone.Kind != "ConfigMap" || gone.Namespace != "n" || gone.Key != key("a") || w.seen[4].Gone {
		t.Errorf("emitted for the removal: %+v, and then %+v", gone, w.seen[4])
	}
}

func TestWatchReadsToTheEndWhenItsContextEnds(t *testing.T) {
	f := &fake{}
	g := serve(t, f)
	f.change(key("a"), written(t, "a"))
	w := watch(t, g)
	w.until("a")
	var want []string
	for i := range 300 {
		f.change(key("x"), written(t, "x"))
		want = append(want, fmt.Sprintf("%d x", i+3))
	}
	w.wants(append([]string{"2 a"}, want...)...)
}

func TestWatchGoesOnAfterABrokenConnection(t *testing.T) {
	for name, spoil := range map[string]func(stream, message int, w http.ResponseWriter, line []byte) bool{
		"between two messages": func(stream, message int, _ http.ResponseWriter, _ []byte) bool { return stream > 3 || message < 3 },
		"in a message": func(stream, message int, w http.ResponseWriter, line []byte) bool {
			if stream < 4 && message == 3 {
				_, _ = w.Write(line[:len(line)/2])
				_ = http.NewResponseController(w).Flush()
			}
			return stream > 3 || message < 3
		},
		"at once": func(stream, _ int, _ http.ResponseWriter, _ []byte) bool { return stream > 2 },
		"with an error of etcd": func(stream, message int, w http.ResponseWriter, _ []byte) bool {
			if stream < 3 && message == 3 {
				_, _ = w.Write([]byte(`{"error":{"code":14,"message":"etcdserver: no leader"}}` + "\n"))
				_ = http.NewResponseController(w).Flush()
			}
			return stream > 2 || message < 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{spoil: spoil}
			g := serve(t, f)
			w := watch(t, g)
			want := []string{}
			for i := range 9 {
				one := fmt.Sprint("x", i)
				f.change(key(one), written(t, one))
				w.until(one)
				want = append(want, fmt.Sprintf("%d %s", i+2, one))
			}
			w.wants(want...)
			if f.streams < 3 {
				t.Errorf("%d streams: the connection did not break", f.streams)
			}
		})
	}
}

// A revision that arrived in part is read again from its beginning, and emitted once.
func TestFragmentsAreToldOnceTheyAreComplete(t *testing.T) {
	f := &fake{split: true, spoil: func(stream, message int, _ http.ResponseWriter, _ []byte) bool { return stream > 1 || message < 3 }}
	g := serve(t, f)
	f.change(key("first"), written(t, "first"))
	w := watch(t, g)
	w.until("first")
	f.change(key("a"), written(t, "a"), key("b"), written(t, "b"), key("c"), written(t, "c"))
	w.until("c")
	w.wants("2 first", "3 a", "3 b", "3 c")
	if f.streams != 2 {
		t.Errorf("%d streams, want 2", f.streams)
	}
}

func TestWatchListsInPages(t *testing.T) {
	f := &fake{}
	g := serve(t, f)
	for i := range 2*pageSize + 1 {
		one := fmt.Sprintf("x%04d", i)
		f.change(key(one), written(t, one))
	}
	w := watch(t, g)
	w.until(fmt.Sprintf("x%04d", 2*pageSize))
	if got, err := w.end(); err != nil || len(got) != 2*pageSize+1 || f.pages < 3 {
		t.Errorf("%d seen in %d pages, %v", len(got), f.pages, err)
	}
}

func TestWatchSaysWhatIsMissing(t *testing.T) {
	t.Run("etcd refuses", func(t *testing.T) {
		w := watch(t, serve(t, &fake{refuse: http.StatusForbidden}))
		if err := <-w.done; err == nil || !strings.Contains(err.Error(), "list what is in etcd") || !strings.Contains(err.Error(), "403 Forbidden") || !strings.Contains(err.Error(), "not for you") {
			t.Error(err)
		}
	})
	t.Run("compacted", func(t *testing.T) {
		f := &fake{}
		f.spoil = func(stream, message int, _ http.ResponseWriter, _ []byte) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.compacted = map[bool]int64{true: 900}[stream > 1]
			return stream > 1 || message < 2
		}
		g := serve(t, f)
		f.change(key("first"), written(t, "first"))
		w := watch(t, g)
		w.until("first")
		f.change(key("a"), written(t, "a"))
		if err := <-w.done; err == nil || !strings.Contains(err.Error(), "compacted all before revision 900") || !strings.Contains(err.Error(), "from revision 3: ") {
			t.Error(err)
		}
	})
	t.Run("a value that cannot be decoded", func(t *testing.T) {
		f := &fake{}
		g := serve(t, f)
		f.change(key("odd"), "odd")
		f.change(key("a"), written(t, "a"))
		w := watch(t, g)
		w.until("a")
		f.change(key("odd"), "")
		got, err := w.end()
		if err == nil || !strings.Contains(err.Error(), "1 values in etcd could not be decoded") || !strings.Contains(err.Error(), "/odd of revision 2") {
			t.Error(err)
		}
		if !slices.Equal(got, []string{"3 a"}) {
			t.Errorf("seen %q", got)
		}
	})
	t.Run("etcd is unreachable at the end", func(t *testing.T) {
		f := &fake{}
		g := serve(t, f)
		f.change(key("a"), written(t, "a"))
		w := watch(t, g)
		w.until("a")
		f.mu.Lock()
		f.refuse = http.StatusServiceUnavailable
		f.mu.Unlock()
		if _, err := w.end(); err == nil || !strings.Contains(err.Error(), "changes after revision 2 may be missing") {
			t.Error(err)
		}
	})
}

func TestGetReadsOneKey(t *testing.T) {
	f := &fake{}
	g := serve(t, f)
	f.change("/a", "1", "/ab", "2")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if got, err := g.Get(ctx, "/a"); err != nil || string(got) != "1" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := g.Get(ctx, "/b"); err != nil || got != nil {
		t.Errorf("%q, %v for a key that does not exist", got, err)
	}
}
