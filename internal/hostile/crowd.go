package hostile

import (
	"context"

	"golang.org/x/net/http2"

	"github.com/skewproof/skewproof/internal/scenario"
)

// crowdSide is the number of connections that a crowd has at a time. With 80 requests on each, that
// is more than one connection between two servers carries.
const crowdSide = 4

// Crowd returns the connections of a crowd: of one caller with rights ([Target.Readers]) who sends
// many requests at a time. The clients last until their context ends, except those who give up.
func Crowd(kind scenario.Crowd) []Client {
	c := Client{Name: kind.Does(), Side: crowdSide, Pause: restOfAnswers / 4}
	switch kind {
	case scenario.CrowdOfWatches:
		c.attack = lasting("?watch=true&timeoutSeconds=3600")
	case scenario.CrowdOfBodies:
		c.attack = func(ctx context.Context, t *Target, i int) error { return trickle(ctx, t, i, t.reader(i)) }
	case scenario.CrowdOfReaders:
		c.attack = lasting("", http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	case scenario.CrowdOfAbandoned:
		c.attack = abandoning
	}
	return []Client{c}
}

// lasting sends requests as a user who may, and stays until the context ends.
func lasting(query string, settings ...http2.Setting) func(context.Context, *Target, int) error {
	return func(ctx context.Context, t *Target, i int) error {
		s, err := t.open(ctx, t.reader(i), false, settings...)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		for n := range streams {
			if _, err := s.ask("GET", t.resource(n)+query, true); err != nil {
				return nil // the server has ended the connection
			}
		}
		<-ctx.Done()
		return nil
	}
}

// abandoning sends requests as a user who may, and resets each stream at once.
func abandoning(ctx context.Context, t *Target, i int) error {
	s, err := t.open(ctx, t.reader(i), false)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for n := range streams {
		stream, err := s.ask("GET", t.resource(n), true)
		if err != nil || s.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
			return nil
		}
	}
	return nil
}
