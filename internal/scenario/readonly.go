package scenario

import (
	"fmt"
)

// OnlyReads says why a plan cannot be carried out on a control plane that is somebody else's, or nothing if it can: then it changes nothing,
// configures nothing and can do with requests that read.
func (plan *Plan) OnlyReads() error {
	for i, s := range plan.Steps {
		if s.Disturbs() {
			return fmt.Errorf("step %d, %s, changes or harms the control plane", i+1, s)
		}
	}
	for _, s := range plan.Servers {
		if s.Setup != nil {
			return fmt.Errorf("server %s has to be configured: %s", s.Name, s.Setup)
		}
	}
	switch plan.Traffic {
	case GeneralTraffic, WatchTraffic, SubresourceTraffic, DiscoveryTraffic:
		return nil
	default:
		return fmt.Errorf("its traffic, %s, is more than reading", plan.Traffic)
	}
}
