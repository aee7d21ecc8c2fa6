package lab

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

var measure = flag.Bool("measure", false, "measure what toxiproxy does with each fault on loopback (10 s); with -update also record it")

// toxics are one fault of each kind that has a toxic, on the stream of the requests. None ends a
// stream at a multiple of interval, when a piece is sent: of a write and a read that meet a reset
// together only one gets ECONNRESET, and if it is the write, the reader takes the end for a FIN.
var toxics = []fault.Fault{
	{Kind: fault.Latency, Latency: 500 * time.Millisecond},
	{Kind: fault.Bandwidth, Rate: 10_000},
	{Kind: fault.Slicer, Size: 2000, Delay: 100 * time.Millisecond},
	{Kind: fault.SlowClose, Delay: 600 * time.Millisecond},
	{Kind: fault.Timeout, After: 1100 * time.Millisecond},
	{Kind: fault.Reset, After: 1100 * time.Millisecond},
	{Kind: fault.LimitData, Bytes: 1000},
}

// whole is the data that the conversations of delaying toxics send at once.
const whole = 10_000

// The conversations of toxics that end streams: a piece of data goes up every interval, pieces
// times, and comes back.
const (
	piece    = 256
	pieces   = 10
	interval = 200 * time.Millisecond
)

// row is one line of the table: toxics on one stream, in the order of their injection, and what
// became of a conversation.
type row struct {
	Toxics []fault.Fault `json:"toxics"`
	// Delivered is when the last byte arrived, Ended when and how the connection ended. Both are in
	// tenths of a second from the first byte.
	Delivered int    `json:"delivered"`
	Ended     int    `json:"ended"`
	How       string `json:"how"`
}

func (r row) name() string {
	var words []string
	for _, f := range r.Toxics {
		words = append(words, f.Detail())
	}
	return strings.Join(words, ", then ")
}

// breaks reports whether the toxics end streams by themselves. Such a toxic is always alone.
func (r row) breaks() bool { return r.Toxics[0].Kind.Effect().Breaks }

// rows returns all conversations, without results: each toxic alone, each permitted pair in both
// orders, and the toxics that end streams in each direction. refused are the pairs that no link
// takes.
func rows() (all []row, refused [][2]fault.Fault) {
	on := func(d fault.Direction, faults ...fault.Fault) row {
		var r row
		for _, f := range faults {
			f.From, f.To, f.Direction = fault.Client, "a", d
			r.Toxics = append(r.Toxics, f)
		}
		return r
	}
	for _, f := range toxics {
		if !f.Kind.Effect().Breaks {
			all = append(all, on(fault.Up, f))
			continue
		}
		for _, d := range []fault.Direction{fault.Up, fault.Down, fault.Both} {
			all = append(all, on(d, f))
		}
	}
	for _, f := range toxics {
		for _, g := range toxics {
			r := on(fault.Up, f, g)
			if f, g := r.Toxics[0], r.Toxics[1]; f.Excludes(g) {
				refused = append(refused, [2]fault.Fault{f, g})
				continue
			}
			all = append(all, r)
		}
	}
	return all, refused
}

// TestFaults compares the simulator with the record of what toxiproxy did, for each toxic and each
// pair of toxics on one stream. The comparison is exact, because the record is in tenths of a
// second and the simulator's time is virtual: so it needs neither toxiproxy nor a clock. With
// -measure, it measures again whether toxiproxy still does what is recorded.
func TestFaults(t *testing.T) {
	const file = "testdata/toxiproxy.json"
	if *measure {
		measured, err := json.MarshalIndent(converse(t), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if flag.Lookup("update").Value.String() == "true" {
			golden.Hold(t, file, string(measured)+"\n")
		}
	}
	var recordedRows []row
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &recordedRows); err != nil {
		t.Fatal(err)
	}
	want, refused := rows()
	if len(want) != len(recordedRows) {
		t.Fatalf("%d conversations are recorded, want %d: record them again", len(recordedRows), len(want))
	}
	page := strings.Builder{}
	page.WriteString(faultsPage)
	for i, r := range recordedRows {
		if r.name() != want[i].name() {
			t.Fatalf("conversation %d is recorded for %q, want %q: record them again", i+1, r.name(), want[i].name())
		}
		got := simulated(t, r)
		real := fmt.Sprintf("all after %s", tenths(r.Delivered))
		if r.breaks() {
			real = fmt.Sprintf("%s after %s", r.How, tenths(r.Ended))
			if r.How == "FIN" && got == "reset after "+tenths(r.Ended) {
				got = real // the simulator does not tell the two apart: both break a request off
			}
		}
		if got != real {
			t.Errorf("%s: toxiproxy: %s; the simulator: %s", r.name(), real, got)
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", r.name(), real, got, tenths(r.Ended))
	}
	page.WriteString("\n" + golden.Wrap(fmt.Sprintf("The other %d pairs are refused, because one of the two ends streams by itself: "+
		"see `fault.Excludes`.", len(refused)), "") + "\n")
	golden.Hold(t, "../../docs/lab/faults.md", page.String())
	note("faults", len(recordedRows)+len(refused), fmt.Sprintf("%d conversations, %d refused pairs; measured again: %t", len(recordedRows),
		len(refused), *measure))
}

func tenths(n int) string { return fmt.Sprintf("%d.%d s", n/10, n%10) }

const faultsPage = `# What toxiproxy does with each fault, and what the simulator computes

For each toxic alone and each pair of toxics on one stream, in the order of their injection.
toxiproxy v2.12.0 was measured through this repository's links on loopback, in tenths of a second.
Toxics that delay get 10,000 bytes at once. Toxics that end streams get 256 bytes every 0.2 s, ten
times, which the server sends back. The last column says when toxiproxy ended the connection. The
simulator computes it only for toxics that end streams, because no requester waits for the end of a
connection.

` + "`make net`" + ` compares the recorded column with the simulator, and measures it again with a tolerance
of 0.25 s. The simulator does not compute two messages that wait for each other on one stream (each
message meets an idle stream), nor that healing releases what is held (a message arrives when it
would have arrived with the fault).

| toxics | toxiproxy | simulator | end |
|---|---|---|---|
`

// simulated returns what the simulator computes for a conversation.
func simulated(t *testing.T, r row) string {
	t.Helper()
	if !r.breaks() {
		return fmt.Sprintf("all after %s", tenths(rounded(fault.Passage(r.Toxics, whole))))
	}
	f := r.Toxics[0]
	f.From, f.To = "b", "a"
	const older, newer = "v1.36.3", "v1.37.1"
	c := &sim.Case{
		Servers: []scenario.Server{{Name: "a", Version: newer}, {Name: "b", Version: older}}, Settled: true,
		Steps: []scenario.Step{{Action: scenario.Soak, For: time.Second}, {Action: scenario.Inject, Label: "f", Fault: &f},
			{Action: scenario.Soak, For: time.Minute}},
	}
	for i := range pieces {
		c.Requests = append(c.Requests, sim.Request{Step: 2, After: time.Duration(i) * interval, Server: "b", Request: workload.Request{
			Verb: "list", GVR: history.GVR{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"},
		}})
	}
	s := sim.New(sim.Setup{Version: recorded.Get, Policy: func(string) (proxy.Policy, bool) { return proxy.Upstream137(), true }})
	defer s.Close()
	result, err := s.Run(c, tape.Of([tape.Streams][]uint32{}), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := history.Forever
	began := history.Forever
	for _, o := range result.History.Operations {
		began = min(began, o.Start)
		if o.Status != 200 {
			ended = min(ended, o.End)
		}
	}
	if ended == history.Forever {
		return "no end"
	}
	return "reset after " + tenths(rounded(ended-began))
}

// rounded returns a time in tenths of a second.
func rounded(d time.Duration) int { return int((d + 50*time.Millisecond) / (100 * time.Millisecond)) }

// tolerance is how much a measured time may differ from the recorded one, because the machine may
// be busy. Outcomes that toxiproxy's order of toxics tells apart are at least 0.5 s apart.
const tolerance = 250 * time.Millisecond

// converse measures all conversations at the same time, and compares them with the record.
func converse(t *testing.T) []row {
	t.Helper()
	all, refused := rows()
	var group sync.WaitGroup
	errs := make([]error, len(all))
	measured := make([][2]time.Duration, len(all))
	for i := range all {
		group.Go(func() {
			measured[i][0], measured[i][1], all[i].How, errs[i] = conversation(all[i])
			all[i].Delivered, all[i].Ended = rounded(measured[i][0]), rounded(measured[i][1])
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, pair := range refused {
		if _, _, _, err := conversation(row{Toxics: pair[:]}); err == nil || !strings.Contains(err.Error(), "heal that first") {
			t.Errorf("%s behind %s: %v, want that it is refused", pair[1], pair[0], err)
		}
	}
	content, err := os.ReadFile("testdata/toxiproxy.json")
	var before []row
	if err != nil || json.Unmarshal(content, &before) != nil || len(before) != len(all) {
		return all
	}
	for i, r := range before {
		tenth := 100 * time.Millisecond
		apart := max((measured[i][0] - time.Duration(r.Delivered)*tenth).Abs(), (measured[i][1] - time.Duration(r.Ended)*tenth).Abs())
		if r.How != all[i].How || apart > tolerance {
			t.Errorf("%s: delivered after %s, %s after %s; recorded: %s, %s after %s", r.name(), measured[i][0], all[i].How, measured[i][1],
				tenths(r.Delivered), r.How, tenths(r.Ended))
		}
	}
	return all
}

// conversation measures one conversation through a link of its own: when the last byte arrived, and
// when and how the connection ended.
func conversation(r row) (delivered, ended time.Duration, how string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, "", err
	}
	defer func() { _ = listener.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := listener.Accept(); err == nil {
			accepted <- c
		}
	}()
	links, err := fabric.New(fabric.Config{Destinations: []fabric.Destination{{
		Name: "a", Advertised: netip.MustParseAddrPort("127.0.0.1:0"), Real: listener.Addr().(*net.TCPAddr).AddrPort(),
	}}})
	if err != nil {
		return 0, 0, "", err
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	client, err := net.Dial("tcp", links.Advertised("a").String())
	if err != nil {
		return 0, 0, "", err
	}
	defer func() { _ = client.Close() }()
	server := <-accepted
	defer func() { _ = server.Close() }()
	for _, f := range r.Toxics {
		if _, err := links.Inject(context.Background(), f); err != nil {
			return 0, 0, "", err
		}
	}
	began := time.Now()
	receiver := server
	if r.breaks() {
		receiver = client
		go func() { _, _ = io.Copy(server, server) }()
		go func() {
			for range pieces {
				if _, err := client.Write(make([]byte, piece)); err != nil {
					return
				}
				time.Sleep(interval)
			}
		}()
	} else if _, err := client.Write(make([]byte, whole)); err != nil {
		return 0, 0, "", err
	} else if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		return 0, 0, "", err
	}
	buffer := make([]byte, whole)
	for {
		n, err := receiver.Read(buffer)
		if n > 0 {
			delivered = time.Since(began)
		}
		if err == nil {
			continue
		}
		how = "FIN"
		if errors.Is(err, syscall.ECONNRESET) {
			how = "reset"
		} else if !errors.Is(err, io.EOF) {
			return 0, 0, "", err
		}
		return delivered, time.Since(began), how, nil
	}
}
