package hostile

import (
	"context"

	"github.com/skewproof/skewproof/internal/scenario"
)

// crowdSide is the number of connections that a crowd has at a time. With 80 requests on each, that
// is more than one connection between two servers carries.
const crowdSide = 4

// Crowd returns the connections of a crowd: of one caller with rights ([Target.Readers]) who keeps
// hundreds of watches open until the context ends.
func Crowd() []Client {
	return []Client{{Name: scenario.Crowding, Side: crowdSide, Pause: restOfAnswers / 4, attack: lasting}}
}

// lasting opens watches as a user who may, and stays until the context ends.
func lasting(ctx context.Context, t *Target, i int) error {
	s, err := t.open(ctx, t.reader(i), false)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for n := range streams {
		if _, err := s.ask("GET", t.resource(n)+"?watch=true&timeoutSeconds=3600", true); err != nil {
			return nil // the server has ended the connection
		}
	}
	<-ctx.Done()
	return nil
}
