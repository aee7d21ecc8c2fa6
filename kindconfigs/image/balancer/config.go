package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
)

// config has the fields of kind's two files that this program uses. Before kind has written
// resources into the files, listen is "" and backends is empty.
type config struct {
	listen   string   // host:port
	backends []string // host:port, sorted
}

// socketAddress is Envoy's core.v3.Address.
type socketAddress struct {
	SocketAddress struct {
		Address string `json:"address"`
		Port    int    `json:"port_value"`
	} `json:"socket_address"`
}

func (a socketAddress) String() string {
	return net.JoinHostPort(a.SocketAddress.Address, strconv.Itoa(a.SocketAddress.Port))
}

// listeners has the fields of lds.yaml that this program uses, and clusters those of cds.yaml.
type listeners struct {
	Resources []struct {
		Address socketAddress `json:"address"`
	} `json:"resources"`
}

type clusters struct {
	Resources []struct {
		LoadAssignment struct {
			Endpoints []struct {
				LBEndpoints []struct {
					Endpoint struct {
						Address socketAddress `json:"address"`
					} `json:"endpoint"`
				} `json:"lb_endpoints"`
			} `json:"endpoints"`
		} `json:"load_assignment"`
	} `json:"resources"`
}

func readConfig(dir string) (config, error) {
	lds, err := os.ReadFile(filepath.Join(dir, "lds.yaml"))
	if err != nil {
		return config{}, err
	}
	cds, err := os.ReadFile(filepath.Join(dir, "cds.yaml"))
	if err != nil {
		return config{}, err
	}
	return parseConfig(lds, cds)
}

func parseConfig(lds, cds []byte) (config, error) {
	var l listeners
	if err := yaml.Unmarshal(lds, &l); err != nil {
		return config{}, fmt.Errorf("read lds.yaml: %w", err)
	}
	var c clusters
	if err := yaml.Unmarshal(cds, &c); err != nil {
		return config{}, fmt.Errorf("read cds.yaml: %w", err)
	}
	if len(l.Resources) > 1 || len(c.Resources) > 1 {
		return config{}, fmt.Errorf("%d listeners and %d clusters: one of each is understood", len(l.Resources), len(c.Resources))
	}
	var got config
	for _, r := range l.Resources {
		got.listen = r.Address.String()
	}
	for _, r := range c.Resources {
		for _, e := range r.LoadAssignment.Endpoints {
			for _, lb := range e.LBEndpoints {
				got.backends = append(got.backends, lb.Endpoint.Address.String())
			}
		}
	}
	slices.Sort(got.backends) // kind ranges over a map
	return got, nil
}
