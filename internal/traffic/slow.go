package traffic

import (
	"context"
	"io"
	"time"

	"github.com/skewproof/skewproof/internal/workload"
)

// slowBody is a body that a slow client reads. A read ends early if ctx ends.
type slowBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b *slowBody) Read(p []byte) (int, error) {
	pause := time.NewTimer(workload.SlowPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-b.ctx.Done():
		return 0, context.Cause(b.ctx)
	}
	return b.ReadCloser.Read(p[:min(len(p), workload.SlowRead)])
}
