package fault

import "time"

// Passage returns how long data takes through the toxics of one stream: from the arrival of the
// first byte to the departure of the last one, on a stream that was idle. The toxics are in the
// order of their injection, with the latency that each really adds. Kinds that do not delay data
// take no time.
//
// It computes what toxiproxy v2.12.0 does. A toxic handles one chunk after the other, and waits
// until the next toxic takes what it emits. A latency waits for its time since the chunk was read,
// so behind a toxic that took longer it adds nothing. It buffers chunks (at most 1024, which
// Passage does not count). A bandwidth emits pieces of 100 ms. A slicer halves chunks, and pauses
// behind each slice.
func Passage(toxics []Fault, bytes int64) time.Duration {
	p := passage{toxics: toxics, free: make([]time.Duration, len(toxics)+1)}
	for at := time.Duration(0); bytes > 0; bytes -= maxSlice {
		at = p.push(0, chunk{min(bytes, maxSlice), at}, at)
	}
	return p.last
}

// chunk is data that toxics handle at once.
type chunk struct {
	bytes int64
	// stamp is toxiproxy's time of the chunk: when it was read, moved by each latency.
	stamp time.Duration
}

type passage struct {
	toxics []Fault
	free   []time.Duration // when each stage can take its next chunk
	last   time.Duration   // when the last chunk left
}

// push gives a chunk to a stage, and returns the time at which the stage takes it. Stage 0 is the
// one that toxiproxy puts in front of all toxics; it only passes chunks on.
func (p *passage) push(stage int, c chunk, at time.Duration) time.Duration {
	if stage > len(p.toxics) {
		p.last = at
		return at
	}
	now := max(at, p.free[stage])
	taken := now
	emit := func(bytes int64) { now = p.push(stage+1, chunk{bytes, c.stamp}, now) }
	var f Fault
	if stage > 0 {
		f = p.toxics[stage-1]
	}
	switch f.Kind {
	case Latency:
		taken = at // its buffer
		wait := f.Latency - (now - c.stamp)
		now += max(0, wait)
		c.stamp += wait
		emit(c.bytes)
	case Bandwidth:
		const step = 100 * time.Millisecond
		wait := time.Duration(c.bytes * int64(time.Second) / f.Rate)
		for piece := f.Rate / int64(time.Second/step); c.bytes > piece; c.bytes -= piece {
			now += step
			wait -= step
			emit(piece)
		}
		now += max(0, wait)
		emit(c.bytes)
	case Slicer:
		halve(c.bytes, f.Size+f.Variation, func(bytes int64) {
			emit(bytes)
			now += f.Delay
		})
	default:
		emit(c.bytes)
	}
	p.free[stage] = now
	return taken
}

// halve calls each for the slices that the slicer makes of a chunk.
func halve(bytes, largest int64, each func(int64)) {
	if bytes <= largest {
		each(bytes)
		return
	}
	halve(bytes/2, largest, each)
	halve(bytes-bytes/2, largest, each)
}
