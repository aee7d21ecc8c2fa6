package reports

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// maxBuckets is the largest number of buckets of a lane. With more, a bucket would be too narrow to
// see.
const maxBuckets = 120

// fewServers is the number of servers up to which a lane has maxBuckets.
const fewServers = 10

// Timeline shows what happened to every server, and on it, over time.
type Timeline struct {
	// EndSeconds is the end of the run. Everything on the timeline lies between 0 and it.
	EndSeconds Seconds `json:"endSeconds"`
	// BucketSeconds is the width of every bucket.
	BucketSeconds Seconds `json:"bucketSeconds"`
	// Lanes are the servers, in the order of [RunReport.Servers].
	Lanes []Lane `json:"lanes"`
}

// Lane is the timeline of one server.
type Lane struct {
	// Server is the name of the server.
	Server string `json:"server"`
	// States are the states of its process, without gaps. A pause is one of them.
	States []StateBand `json:"states"`
	// Buckets are the outcomes of its requests, by the time of the answer, without empty buckets.
	Buckets []Bucket `json:"buckets,omitempty"`
	// Rows are the same answers by class of request, without classes that were not asked for.
	Rows []ClassRow `json:"rows,omitempty"`
	// Turns are changes from 503 to wrong answers, at most one for each class.
	Turns []Turn `json:"turns,omitempty"`
	// Speeds are how long its requests took, by slice of time and way.
	Speeds []Speed `json:"speeds,omitempty"`
	// Late are the times of its slow probes. Probes avoid all links and faults.
	Late []LateBand `json:"late,omitempty"`
}

// LateBand is the time of a slow probe. The machine was overloaded if all servers have a slow
// probe, or if the server's threads were runnable for half of the probe without getting a CPU.
type LateBand struct {
	// StartSeconds and EndSeconds bound the band.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// QueuedSeconds is how long its threads were runnable without getting a CPU, summed over the
	// threads. 0 means unknown.
	QueuedSeconds Seconds `json:"queuedSeconds,omitempty"`
}

// Bucket counts the answers of one server in one slice of time, by kind of answer. Each answer
// counts once.
type Bucket struct {
	// StartSeconds is the beginning of the slice, which is [Timeline.BucketSeconds] long.
	StartSeconds Seconds `json:"startSeconds"`
	// Wrong counts answers of any status that an invariant that counts judged wrong.
	Wrong int `json:"wrong,omitempty"`
	// Success counts 2xx and 304.
	Success int `json:"success,omitempty"`
	// MissingObject counts 404 for an object that does not exist, of a resource that the server
	// knows.
	MissingObject int `json:"missingObject,omitempty"`
	// UnservedResource counts 404 for a resource that no live server serves, as it should be.
	UnservedResource int `json:"unservedResource,omitempty"`
	// MissingResource counts every other 404 for a resource. It was not judged wrong, for example
	// because servers need not know each other yet.
	MissingResource int `json:"missingResource,omitempty"`
	// Unavailable counts 503.
	Unavailable int `json:"unavailable,omitempty"`
	// ServerError counts every other 5xx.
	ServerError int `json:"serverError,omitempty"`
	// NoResponse counts requests without a complete response, except requests that the run
	// cancelled.
	NoResponse int `json:"noResponse,omitempty"`
	// Other counts every other status, such as 403, 409 and 429.
	Other int `json:"other,omitempty"`
}

// runEnd is the end of the run. A history that was cut short ends with its last record.
func runEnd(h *history.History) time.Duration {
	end := h.End.At
	for _, o := range h.Operations {
		end = max(end, o.End)
	}
	for _, l := range h.Lifecycle {
		end = max(end, l.At)
	}
	for _, s := range h.Steps {
		end = max(end, s.Start)
	}
	return end
}

func newTimeline(h *history.History, facts *invariant.Facts, end time.Duration, wrong map[*history.Operation]bool) Timeline {
	width := bucketWidth(end, len(h.Run.Servers))
	t := Timeline{EndSeconds: seconds(end), BucketSeconds: seconds(width), Lanes: []Lane{}}
	answers, speed := countAnswers(facts, width, wrong), speeds(facts, width)
	for _, s := range h.Run.Servers {
		lane := Lane{Server: s.Name, States: stateBands(h, s.Name, end), Speeds: speed[s.Name]}
		if a := answers[s.Name]; a != nil {
			a.into(&lane)
		}
		for _, late := range inOrder(h.SlowProbes, func(l history.SlowProbe) history.Time { return l.Start }) {
			if late.Server == s.Name {
				lane.Late = append(lane.Late, LateBand{
					StartSeconds: seconds(min(late.Start, end)), EndSeconds: seconds(min(late.End, end)), QueuedSeconds: seconds(late.Queued),
				})
			}
		}
		t.Lanes = append(t.Lanes, lane)
	}
	return t
}

// bucketWidth is the smallest round width that needs no more than maxBuckets. With many servers the
// buckets are wider, so that the page stays small.
func bucketWidth(end time.Duration, servers int) time.Duration {
	most := time.Duration(maxBuckets)
	if servers > fewServers {
		most = max(12, maxBuckets*fewServers/time.Duration(servers))
	}
	for unit := 100 * time.Millisecond; ; unit *= 10 {
		for _, factor := range []time.Duration{1, 2, 5} {
			// The division avoids an overflow, because a saved history may end at any time.
			if width := unit * factor; (end-1)/most < width {
				return width
			}
		}
	}
}

// add counts one operation. A request that the run cancelled without an answer says nothing about
// the server. A success that broke off counts only if the run broke it off, as with watches.
func (b *Bucket) add(o *history.Operation, class invariant.Class, wrong bool) {
	success := o.Status >= 200 && o.Status < 300 || o.Status == 304
	switch {
	case wrong:
		b.Wrong++
	case o.Status == 0 && o.Failure == history.FailureCanceled:
	case success && (o.Failure == history.FailureNone || o.Failure == history.FailureCanceled):
		b.Success++
	case success, o.Status == 0:
		b.NoResponse++
	case o.Status == 404 && o.Missing == history.MissingObject:
		b.MissingObject++
	case o.Status == 404 && class == invariant.ClassUnserved:
		b.UnservedResource++
	case o.Status == 404:
		b.MissingResource++
	case o.Status == 503:
		b.Unavailable++
	case o.Status >= 500:
		b.ServerError++
	default:
		b.Other++
	}
}

// Total is how many requests the bucket counts.
func (b Bucket) Total() int {
	return b.Wrong + b.Success + b.MissingObject + b.UnservedResource + b.MissingResource + b.Unavailable + b.ServerError + b.NoResponse +
		b.Other
}
