package hostile

import "time"

// restOfAnswers is how long clients that leave before their answers stay, so that their requests
// are in progress when they leave.
const restOfAnswers = 2 * time.Second

// All returns all kinds of clients. Their rates need only a small part of one CPU: honest clients
// should suffer from the attacks, and not from a lack of CPU.
func All() []Client {
	return []Client{
		{"ask anonymously on a shared connection", 1, 3 * time.Second, anonymous},
		{"ask anonymously for merged discovery", 1, 3 * time.Second, discovering},
		{"make up tokens", 1, 3 * time.Second, makingUpTokens},
		{"use methods that are none", 1, 2 * time.Second, oddMethods},
		{"ask for discovery within a time that is none", 1, 2 * time.Second, oddTimeouts},
		{"announce bodies and send none", 2, time.Second, announcing},
		{"announce bodies on the paths of streams", 2, time.Second, occupying},
		{"send bodies a byte a second", 1, time.Second, trickling},
		{"upload what is refused", 1, 3 * time.Second, uploading},
		{"expect to be told to continue, and do not", 2, time.Second, expecting},
		{"do not read answers", 1, time.Second, notReading},
		{"ask for odd targets", 1, time.Second, oddTargets},
		{"forge headers", 1, time.Second, forging},
		{"send large headers", 1, 3 * time.Second, largeHeaders},
		{"open and reset streams", 1, 5 * time.Second, resetting},
		{"flood with SETTINGS", 1, 10 * time.Second, flooding(20_000, settings)},
		{"flood with PING", 1, 10 * time.Second, flooding(100_000, ping)},
		{"send CONTINUATION without end", 1, 5 * time.Second, continuing},
		{"open watches and leave", 1, 5 * time.Second, watching},
		{"watch with rights, and read nothing", 1, 5 * time.Second, watchingDeaf},
		{"list with rights, and leave", 1, 5 * time.Second, leaving},
		{"ask for upgrades and send something else", 1, time.Second, upgrading},
		{"connect and say nothing", 10, time.Second, idling},
	}
}
