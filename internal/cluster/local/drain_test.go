package local

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

func TestHowAServerEndsConnections(t *testing.T) {
	for name, c := range map[string]struct {
		setup *scenario.Setup
		want  map[string]string
	}{
		"usually": {nil, map[string]string{"goaway-chance": "-", "shutdown-delay-duration": "-", "shutdown-watch-termination-grace-period": "-"}},
		"set up": {&scenario.Setup{Goaway: scenario.On, ShutdownDelay: 7 * time.Second, WatchTermination: 3 * time.Second}, map[string]string{
			"goaway-chance": "0.02", "shutdown-delay-duration": "7s", "shutdown-watch-termination-grace-period": "3s",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(1, "b")
			p.Setup = c.setup
			args, err := APIServerArguments("v1.37.1", scenario.SubjectBuiltin, p, testFiles)
			if err != nil {
				t.Fatal(err)
			}
			hasFlags(t, args, c.want)
		})
	}
}
