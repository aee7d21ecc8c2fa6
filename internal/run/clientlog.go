package run

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"
)

// SilenceClients drops what client-go and the packages of Kubernetes log. They warn of every
// feature gate that is set.
func SilenceClients() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }

// logClients redirects client-go's log to logs/client-go.log, because otherwise its lines would be
// mixed with the progress of the run. The returned function ends that, and deletes an empty log.
func (d Dir) logClients() (end func(), err error) {
	file, err := os.Create(filepath.Join(d.logs(), "client-go.log"))
	if err != nil {
		return nil, fmt.Errorf("write to output directory: %w; choose another with --out", err)
	}
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(file, nil)))
	return func() {
		SilenceClients()
		info, err := file.Stat()
		_ = file.Close()
		if err == nil && info.Size() == 0 {
			_ = os.Remove(file.Name())
		}
	}, nil
}
