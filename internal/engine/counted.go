package engine

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
)

// reroutedTotal is upstream's counter of requests that were passed on (k8s.io/apiserver,
// pkg/util/peerproxy/metrics). The reference proxy has it too.
const reroutedTotal = "apiserver_rerouted_request_total"

// count implements [sender]. A server whose metrics cannot be read is left out, and the status says
// why.
func (l *load) count(ctx context.Context) {
	var all sync.WaitGroup
	for _, server := range l.servers {
		incarnation := l.cluster.Serving(server)
		if incarnation == 0 {
			continue
		}
		all.Go(func() {
			at := l.recorder.Now()
			attempt, cancel := context.WithTimeout(ctx, truthTimeout)
			defer cancel()
			samples, err := readRerouted(attempt, l.truth.clients[server])
			switch {
			case ctx.Err() != nil, l.cluster.Serving(server) != incarnation: // the answer may come from the next process
			case err != nil:
				l.status("%s: its metrics cannot be read, so CountedAlike does not judge what it passed on: %v", server, err)
			default:
				l.recorder.Counted(history.Counted{Server: server, Incarnation: incarnation, At: at, Rerouted: samples})
			}
		})
	}
	all.Wait()
}

// readRerouted reads the samples of [reroutedTotal] from a server's metrics.
func readRerouted(ctx context.Context, server rest.Interface) ([]history.Rerouted, error) {
	status := 0
	text, err := server.Get().AbsPath("/metrics").MaxRetries(0).Do(ctx).StatusCode(&status).Raw()
	if err != nil {
		return nil, fmt.Errorf("GET /metrics: status %d: %w", status, err)
	}
	return parseRerouted(text)
}

// parseRerouted takes the samples of [reroutedTotal] out of metrics in Prometheus' text format.
func parseRerouted(text []byte) (all []history.Rerouted, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse its metrics: %w", err)
	}
	for _, m := range families[reroutedTotal].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		_, byResource := labels["resource"]
		all = append(all, history.Rerouted{
			Code: labels["code"], Together: !byResource, Count: int(m.GetCounter().GetValue() + m.GetUntyped().GetValue()),
			GVR: history.GVR{Group: labels["group"], Version: labels["version"], Resource: labels["resource"]},
		})
	}
	return all, nil
}
