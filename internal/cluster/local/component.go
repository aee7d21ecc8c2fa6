package local

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Programs that servers are made of.
const (
	ProgramAPIServer = "kube-apiserver"
	ProgramProxy     = "skewproof proxy" // the reference proxy as a sidecar; this very executable
)

// Component is one program of a server. It is a description: nothing runs.
type Component struct {
	Program string
	// Args is the command line without the program's name. That of ProgramProxy begins with the command, proxy.
	Args []string
	// Log is the file that gets its output.
	Log string
	// Ready is the URL that answers 200 once it is ready, at a real address.
	Ready string
}

// Components returns the programs that make one server of that version, in the order in which they are started: each when the
// one before it is ready. It is a function of its arguments alone.
func Components(version, subject string, p Place, f Files) ([]Component, error) {
	args, err := APIServerArguments(version, subject, p, f)
	subject, p = p.configured(subject)
	if err != nil {
		return nil, err
	}
	all := []Component{{ProgramAPIServer, args, f.log(p.Name), "https://" + p.Own.String() + "/readyz"}}
	if subject == scenario.SubjectReference {
		all = append(all, Component{ProgramProxy, ProxyArguments(p, f), f.log(p.Name + "-proxy"), "https://" + p.Real.String() + "/readyz"})
	}
	return all, nil
}

// binary is the executable of a component of a server of that version.
func (c *Config) binary(program, version string) (string, error) {
	if program == ProgramProxy {
		if c.Proxy == "" {
			return "", fmt.Errorf("no executable of the proxy was given")
		}
		return c.Proxy, nil
	}
	if path, ok := c.APIServers[version]; ok {
		return path, nil
	}
	return "", fmt.Errorf("no binary of that version was prepared")
}
