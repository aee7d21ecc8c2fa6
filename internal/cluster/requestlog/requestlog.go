// Package requestlog reads the audit logs of the requests that kube-apiservers handled, for every
// backend.
package requestlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// AuditPolicy makes a kube-apiserver log every request, once when it is received and once when it
// is answered, without the bodies: the run only needs to know which server served which request.
// The kube-apiserver logs a long-running request once more, when its answer begins. It logs a
// request whose sender it cannot authenticate only at this stage. So the policy omits no stage.
const AuditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"

// Logs names the files in which one server logs the requests that it handled.
type Logs struct {
	Server string
	ID     string // its apiserver identity, by which the logs of other servers name it
	Audit  string
}

// Records are the logs of all requests that the servers of a run handled, from any sender. There is
// one record for each time that a server handled a request.
type Records struct {
	all   []handled
	names map[string]string // of servers, by apiserver identity
}

// Read reads the logs of the servers of a run. epoch is the wall time of the start of the run. A
// log that does not exist is empty.
func Read(servers []Logs, epoch time.Time) (Records, error) {
	var all []handled
	names := map[string]string{}
	for _, l := range servers {
		names[l.ID] = l.Server
		requests, err := l.read(epoch)
		if err != nil {
			return Records{}, err
		}
		all = append(all, requests...)
	}
	markRerouted(all)
	markAltered(all)
	return Records{all, names}, nil
}

// Hops returns the records as hops, each with the changes that a peer made to the request.
func (r Records) Hops() []history.Hop { return endInOrder(r.all, r.names) }

// markRerouted marks a request as forwarded at every server except the first, because a client
// sends a request to one server only. An audit record alone is not always enough: it leaves out an
// address that equals the one before (k8s.io/apimachinery, pkg/util/net,
// SourceIPs), and on kind all connections to a node come from one address.
func markRerouted(all []handled) {
	first := map[string]handled{}
	for _, r := range all {
		if f, ok := first[r.Operation]; !ok || r.Start < f.Start {
			first[r.Operation] = r
		}
	}
	for _, r := range all { // all have an entry of their own
		f := first[r.Operation]
		r.Rerouted = r.Rerouted || !f.Rerouted && r.Server != f.Server && r.Start > f.Start
	}
}

// read reads a log. A log that does not exist is empty, because its writer was never started.
func (l Logs) read(epoch time.Time) ([]handled, error) {
	f, err := os.Open(l.Audit)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	all, err := readAuditLog(f, l.Server, epoch)
	if err != nil {
		return nil, fmt.Errorf("read the audit log of server %q: %w", l.Server, err)
	}
	return all, nil
}

// byOperation returns the indices of requests by their ID, in time order.
func byOperation(all []handled) map[string][]int {
	indices := map[string][]int{}
	for i, r := range all {
		indices[r.Operation] = append(indices[r.Operation], i)
	}
	for _, same := range indices {
		slices.SortStableFunc(same, func(i, j int) int { return cmp.Compare(all[i].Start, all[j].Start) })
	}
	return indices
}

// endInOrder changes the end of every hop so that it is not later than the end of the hop that
// forwarded the request and got its answer: the process that waits for this answer may write its
// record first. names maps apiserver identities to servers.
func endInOrder(all []handled, names map[string]string) []history.Hop {
	out := make([]history.Hop, len(all))
	for _, same := range byOperation(all) {
		for n, i := range same {
			out[i] = all[i].Hop
			for _, j := range same[:n] { // the earlier hops are already corrected
				by := out[j]
				if out[i].Rerouted && names[all[j].peer] == out[i].Server && out[i].Start <= by.End {
					out[i].End = min(out[i].End, by.End)
				}
			}
		}
	}
	return out
}

// readRecords calls do for each record of a log of JSON lines, in order. A killed process may leave
// an incomplete line, which its successor continues. The complete records in such a line count.
func readRecords[T any](log io.Reader, do func(T)) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	var broken error
	for n := 1; lines.Scan(); n++ {
		if broken != nil {
			return broken
		}
		for _, text := range completeRecords(lines.Bytes()) {
			var record T
			if err := json.Unmarshal(text, &record); err != nil {
				broken = fmt.Errorf("line %d: %w", n, err)
				continue
			}
			do(record)
		}
	}
	return lines.Err()
}

// completeRecords returns the records in a line that ends with a record. There are two if only the
// newline between them is missing. A line that does not end with a record is returned unchanged. A
// part of a record cannot be mistaken for a record, because it would not reach to the end of the
// line.
func completeRecords(line []byte) [][]byte {
	if json.Valid(line) {
		return [][]byte{line}
	}
	for from := 1; from < len(line); from++ {
		next := bytes.IndexByte(line[from:], '{')
		if next < 0 {
			break
		}
		from += next
		if !json.Valid(line[from:]) {
			continue
		}
		if json.Valid(line[:from]) {
			return [][]byte{line[:from], line[from:]}
		}
		return [][]byte{line[from:]}
	}
	return [][]byte{line}
}
