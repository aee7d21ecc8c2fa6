package local

import (
	"net/netip"
	"strconv"

	"github.com/skewproof/skewproof/internal/scenario"
)

// The common names of front-proxy certificates: the one that every server allows, and one that only its own does.
const (
	frontProxyName      = "front-proxy-client"
	otherFrontProxyName = "front-proxy-of-another"
)

// strangerAuthority is the authority that nobody trusts, by the name of its files.
const strangerAuthority = "stranger-ca"

// astrayBlock holds an address for each server that is nobody's; see [astray]. astrayPort is the same of a port.
var astrayBlock = netip.MustParseAddr("198.19.254.0")

const astrayPort = 6440

// setup is that of the place, never nil.
func (p Place) setup() scenario.Setup {
	if p.Setup == nil {
		return scenario.Setup{}
	}
	return *p.Setup
}

// behaves is the version by which a kube-apiserver decides what flags it takes: the one that it emulates, if it does, since features are then as they were in that.
func (p Place) behaves(version string) string {
	if emulated := p.Setup.Like(); emulated != "" {
		return "v" + emulated
	}
	return version
}

// configured is the subject and the place of what really runs there. With its proxy switched off a kube-apiserver stands at its front door, whatever
// the subject of the run.
func (p Place) configured(subject string) (string, Place) {
	switch p.setup().Proxy {
	case scenario.Off:
		p.Own = p.Real
		return scenario.SubjectNone, p
	case scenario.On:
		if subject == scenario.SubjectNone {
			return scenario.SubjectBuiltin, p
		}
	}
	return subject, p
}

// hostname is the name of the host as its programs shall see it.
func (p Place) hostname() string {
	if of := p.setup().HostnameOf; of != "" {
		return of
	}
	return p.Name
}

// serving and frontProxy are the names of the files of its certificates, without their endings.
func (p Place) serving() string { return variant("serving-"+p.Name, "", p.setup().Serving) }
func (p Place) frontProxy() string {
	return variant(frontProxyName, "-"+p.Name, p.setup().FrontProxy)
}

// variant names a certificate that is not the usual one. What comes of another server must not be overwritten, hence of.
func variant(usual, of string, c scenario.Certificate) string {
	if c == "" {
		return usual
	}
	return usual + of + "-" + string(c)
}

// allowedFrontProxies are the common names that the server believes.
func (p Place) allowedFrontProxies() string {
	if p.setup().FrontProxy == scenario.CertificateOther {
		return frontProxyName + "," + otherFrontProxyName
	}
	return frontProxyName
}

// astray is an address of the run's own network at which no server is ever found.
func (p Place) astray() netip.AddrPort {
	octets := p.Advertised.Addr().As4()
	return netip.AddrPortFrom(offset(astrayBlock, int(octets[3])), securePort)
}

// peerCAArguments say whom the server trusts among its peers.
func (p Place) peerCAArguments(f Files) []string {
	switch p.setup().PeerCA {
	case scenario.TrustMissing:
		return nil
	case scenario.TrustStranger:
		return []string{"--peer-ca-file=" + f.key(strangerAuthority+".crt")}
	default:
		return []string{"--peer-ca-file=" + f.key("ca.crt")}
	}
}

// peerAddressArguments say where its peers find the server, by the flags that are for nothing else.
func (p Place) peerAddressArguments() []string {
	at := p.Advertised
	if p.setup().Advertise == scenario.AdvertiseWrong {
		at = p.astray()
	}
	switch p.setup().Advertise {
	case scenario.AdvertiseNothing, scenario.AdvertiseHost:
		return nil
	case scenario.AdvertiseIP:
		return []string{"--peer-advertise-ip=" + p.astray().Addr().String()}
	case scenario.AdvertisePort:
		return []string{"--peer-advertise-port=" + strconv.Itoa(astrayPort)}
	default:
		return []string{"--peer-advertise-ip=" + at.Addr().String(), "--peer-advertise-port=" + strconv.Itoa(int(at.Port()))}
	}
}

// advertiseArguments say where the server is, by the flag that it has in any case.
func (p Place) advertiseArguments() []string {
	if p.setup().Advertise == scenario.AdvertiseHost {
		return nil
	}
	return []string{"--advertise-address=" + p.Advertised.Addr().String()}
}
