package sim

import (
	"net/http"
	"strconv"
)

// kept holds values that one run after another reuses. They never move. There are at most mostKept
// of them, because a long run needs millions, few of them at a time.
type kept[T any] struct {
	all  []*T
	used int
}

// mostKept is more values of a kind than a schedule of a search needs.
const mostKept = 1 << 10

// next returns a value that this run has not used yet, in the state in which an earlier run left
// it.
func (k *kept[T]) next() *T {
	if k.used == mostKept {
		return new(T)
	}
	if k.used == len(k.all) {
		k.all = append(k.all, new(T))
	}
	k.used++
	return k.all[k.used-1]
}

// maxKept is the maximum size, in bytes, of the memory that an exchange keeps for the next run.
const maxKept = 16 << 10

// newExchange returns an exchange, which may be one of an earlier run.
func (s *Simulator) newExchange() *exchange {
	x := s.exchanges.next()
	clear(x.answerHeader)
	if cap(x.said) > maxKept {
		x.said = nil
	}
	if x.own == nil {
		x.own = (&http.Request{}).WithContext(&x.context)
	}
	*x = exchange{own: x.own, s: s, children: x.children[:0], coming: x.coming[:0], said: x.said[:0], answerHeader: x.answerHeader}
	return x
}

// newOperation returns an operation, which may be one of an earlier run.
func (s *Simulator) newOperation() *operation {
	op := s.operations.next()
	*op = operation{s: s}
	op.Sent, op.Received = &op.sent, &op.received
	return op
}

// operationID returns the ID of the next operation.
func (s *Simulator) operationID() string {
	s.requests++
	for len(s.ids) < s.requests {
		s.ids = append(s.ids, "op-"+strconv.Itoa(len(s.ids)+1))
	}
	return s.ids[s.requests-1]
}
