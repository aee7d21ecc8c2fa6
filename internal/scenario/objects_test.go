package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestObjectsAndControllersInAPlan(t *testing.T) {
	o, held := &Objects{Name: "x", Dependents: 2}, &Objects{Name: "held", Dependents: 2, Held: true}
	create := Step{Action: CreateObjects, Objects: o}
	whole := []Step{
		{Action: StartControllers, Version: "v1.36.3"}, {Action: StartControllers, Version: "v1.36.3", Server: "b"}, create,
		{Action: CreateQuota, Objects: o}, {Action: RewriteObjects, Objects: o, Server: "b"}, {Action: DeleteOwners, Objects: o, Propagation: Orphan}, {Action: DeleteOwners, Objects: o, Propagation: Foreground},
		{Action: DeleteNamespace, Objects: o}, {Action: CollectObjects, For: time.Minute}, create,
		{Action: CreateObjects, Objects: held}, {Action: DeleteNamespace, Objects: held}, {Action: ReleaseObjects, Objects: held}, {Action: StopControllers},
	}
	plan := Plan{Servers: stateServers, Steps: whole}
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := plan.ControllerVersions(); !slices.Equal(got, []string{"v1.36.3"}) {
		t.Errorf("versions of the controllers: %q", got)
	}
	if got := plan.Versions(); slices.Contains(got, "v1.35.4") || len(got) != 2 {
		t.Errorf("versions of the servers: %q", got)
	}
	for i, s := range whole {
		if text := s.String(); strings.HasPrefix(text, string(s.Action)) || text == "" {
			t.Errorf("step %d has no sentence: %q", i, text)
		}
		if want := i < 2 || i == len(whole)-1; s.Disturbs() != want || !s.AboutControllers() {
			t.Errorf("%s: disturbs is %t, about controllers is %t", s, s.Disturbs(), s.AboutControllers())
		}
	}
	if quiet := (Step{Action: Soak, For: time.Second}); quiet.AboutControllers() || len((&Plan{Steps: []Step{quiet}}).ControllerVersions()) > 0 {
		t.Error("a soak is about controllers")
	}
	if !plan.ReadsEtcd() || !(&Plan{Informers: true}).ReadsEtcd() || (&Plan{}).ReadsEtcd() {
		t.Error("plans with controllers or informers read etcd, and no others")
	}
}

func TestObjectsAndControllersThatCannotBe(t *testing.T) {
	o, held := &Objects{Name: "x", Dependents: 1}, &Objects{Name: "x", Dependents: 1, Held: true}
	create := Step{Action: CreateObjects, Objects: o}
	for want, steps := range map[string][]Step{
		"no name of the objects":                  {{Action: CreateObjects}},
		"at least one dependent":                  {{Action: CreateObjects, Objects: &Objects{Name: "x"}}},
		"objects x: define . (): the group":       {{Action: CreateObjects, Objects: &Objects{Name: "x", Dependents: 1, Of: &Definition{}}}},
		"with workloads has no owners":            {{Action: CreateObjects, Server: "b", Objects: &Objects{Name: "x", Dependents: 1, Workloads: make([]Workload, 1)}}},
		"workloads are created through a server":  {{Action: CreateObjects, Objects: &Objects{Name: "x", Workloads: make([]Workload, 1)}}},
		"and other objects past all faults":       {{Action: CreateObjects, Server: "b", Objects: o}},
		`create-objects: no server "z"`:           {{Action: CreateObjects, Server: "z", Objects: &Objects{Name: "x", Workloads: make([]Workload, 1)}}},
		"x exists already":                        {create, create},
		"no step before has created x":            {{Action: DeleteNamespace, Objects: o}},
		"create-quota: no step before":            {{Action: CreateQuota, Objects: o}},
		"delete-owners: no step before":           {create, {Action: DeleteNamespace, Objects: o}, {Action: DeleteOwners, Objects: o, Propagation: Orphan}},
		"release-objects x: they are not held":    {create, {Action: ReleaseObjects, Objects: o}},
		"release-objects: no step before":         {create, {Action: ReleaseObjects, Objects: held}},
		"or they were released":                   {{Action: CreateObjects, Objects: held}, {Action: ReleaseObjects, Objects: held}, {Action: ReleaseObjects, Objects: held}},
		`propagation "": want one of`:             {create, {Action: DeleteOwners, Objects: o}},
		"migrate-objects 0s: want a positive":     {create, {Action: MigrateObjects, Objects: o, Server: "b"}},
		`migrate-objects: no server "z"`:          {create, {Action: MigrateObjects, Objects: o, Server: "z", For: time.Minute}},
		"migrate-objects: no step before":         {{Action: MigrateObjects, Objects: o, Server: "b", For: time.Minute}},
		"start-controllers: no version":           {{Action: StartControllers}},
		`start-controllers: no server "z"`:        {{Action: StartControllers, Version: "v1.36.3", Server: "z"}},
		"leader election is for controllers":      {{Action: StartControllers, Version: "v1.36.3", Elect: true}},
		"stop-controllers: leader election":       {{Action: StartControllers, Version: "v1.36.3"}, {Action: StopControllers, Elect: true}},
		"stop-controllers: no controllers run":    {{Action: StopControllers}},
		"step 3: stop-controllers: no controller": {{Action: StartControllers, Version: "v1.36.3"}, {Action: StopControllers}, {Action: StopControllers}},
		"collect-objects 0s: want a positive":     {{Action: CollectObjects}},
	} {
		err := (&Plan{Servers: stateServers, Steps: steps}).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
