package main

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

// kind 0.33 writes first nothing, then ProxyLDSConfigTemplate and ProxyCDSConfigTemplate of its
// pkg/cluster/internal/loadbalancer. The parts that this program ignores are left out here.
const (
	empty = "resources: []"

	ldsFormat = `
resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: listener_apiserver
  address:
    socket_address:
      address: "%s"
      port_value: %s
  filter_chains:
  - filters:
    - name: envoy.filters.network.tcp_proxy
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
        stat_prefix: ingress_tcp
        cluster: kube_apiservers
`
	cdsHead = `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: kube_apiservers
  connect_timeout: 0.25s
  type: STRICT_DNS
  lb_policy: ROUND_ROBIN
  dns_lookup_family: V4_PREFERRED
  health_checks:
  - timeout: 3s
    http_health_check:
      path: /healthz
  load_assignment:
    cluster_name: kube_apiservers
    endpoints:
    - lb_endpoints:
`
	cdsEndpoint = `      - endpoint:
          address:
            socket_address:
              address: %s
              port_value: %s
`
)

func lds(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf(ldsFormat, host, port)
}

func cds(addresses ...string) string {
	text := cdsHead
	for _, a := range addresses {
		host, port, _ := net.SplitHostPort(a)
		text += fmt.Sprintf(cdsEndpoint, host, port)
	}
	return text
}

func TestParseConfig(t *testing.T) {
	for _, tc := range []struct {
		name     string
		lds, cds string
		want     config
		wrong    string
	}{
		{"as kind writes them", lds("0.0.0.0:6443"), cds("b:6443", "a:6443"), config{"0.0.0.0:6443", []string{"a:6443", "b:6443"}}, ""},
		{"IPv6", lds("[::]:6443"), cds("a:6443"), config{"[::]:6443", []string{"a:6443"}}, ""},
		{"before kind has written them", empty, empty, config{}, ""},
		{"half written", "resources:\n- \"@ty", empty, config{}, "read lds.yaml"},
		{"two clusters", lds("0.0.0.0:6443"), cds("a:6443") + strings.TrimPrefix(cds("b:6443"), "\nresources:\n"), config{}, "2 clusters"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseConfig([]byte(tc.lds), []byte(tc.cds))
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("got %+v, %v; want %q", got, err, tc.wrong)
				}
				return
			}
			if err != nil || got.listen != tc.want.listen || !slices.Equal(got.backends, tc.want.backends) {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}
