package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// Hops reads the audit logs of all servers: every server's own account of every request it handled, whoever asked. epoch is
// the wall time of the run's start.
func (c *Cluster) Hops(epoch time.Time) ([]history.Hop, error) {
	var all []history.Hop
	for _, p := range c.places {
		hops, err := hopsFromFile(c.config.Files.audit(p.Name), p.Name, epoch)
		if errors.Is(err, os.ErrNotExist) {
			continue // never started
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log of server %q: %w", p.Name, err)
		}
		all = append(all, hops...)
	}
	return all, nil
}

func hopsFromFile(path, server string, epoch time.Time) ([]history.Hop, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return hops(f, server, epoch)
}

// hops joins the two stages of each request. A killed server leaves requests without their second stage, and may leave
// a last line that is cut short.
func hops(log io.Reader, server string, epoch time.Time) ([]history.Hop, error) {
	var all []history.Hop
	open := map[string][]int{} // indices of hops by audit ID; more than one if a server saw the same request twice
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	var broken error
	for n := 1; lines.Scan(); n++ {
		if broken != nil {
			return nil, broken // only the very last line may be broken
		}
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			broken = fmt.Errorf("line %d: %w", n, err)
			continue
		}
		id := string(event.AuditID)
		switch event.Stage {
		case auditv1.StageRequestReceived:
			start := event.RequestReceivedTimestamp.Sub(epoch)
			open[id] = append(open[id], len(all))
			all = append(all, history.Hop{
				Operation: id, Server: server, Start: start, End: start, User: event.User.Username,
				// The forwarding server adds itself to X-Forwarded-For, so a second source means a second leg.
				Rerouted: len(event.SourceIPs) > 1,
			})
		case auditv1.StageResponseComplete, auditv1.StagePanic:
			if len(open[id]) == 0 {
				continue // its first stage was before this log began
			}
			// Of nested requests with one ID the inner one, received last, ends first.
			last := len(open[id]) - 1
			i := open[id][last]
			open[id] = slices.Delete(open[id], last, last+1)
			all[i].End = max(all[i].Start, event.StageTimestamp.Sub(epoch))
			if event.ResponseStatus != nil {
				all[i].Status = int(event.ResponseStatus.Code)
			}
		}
	}
	return all, lines.Err()
}
