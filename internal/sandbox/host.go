package sandbox

import (
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Host is a machine of the sandbox. It has a host name and a network namespace with one interface,
// which leads to the run's own namespace. A host outlives its processes, so a restarted server
// keeps its address and identity.
//
// A host is one OS thread in its own namespaces: children inherit the namespaces of the thread that
// forks them.
type Host struct {
	Name    string
	Address netip.Addr // the host's own address
	Gateway netip.Addr // the run's end of the link
	work    chan func()
}

// NewHost creates a host named name with the address block prefix, a /30 whose first address
// becomes the gateway and whose second becomes the host's. Call it in the run's own namespace.
func NewHost(name string, prefix netip.Prefix) (*Host, error) {
	if prefix.Bits() != 30 {
		return nil, fmt.Errorf("create host %q: address block %s: want a /30", name, prefix)
	}
	gateway := prefix.Masked().Addr().Next()
	h := &Host{Name: name, Gateway: gateway, Address: gateway.Next(), work: make(chan func())}
	namespaces := make(chan error, 1)
	var handle netns.NsHandle
	onOwnThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS)
		if err == nil {
			err = unix.Sethostname([]byte(name))
		}
		if err == nil {
			handle, err = netns.Get()
		}
		namespaces <- err
		if err != nil {
			return
		}
		for f := range h.work {
			f()
		}
	})
	if err := <-namespaces; err != nil {
		return nil, unsupported(fmt.Sprintf("create the namespaces of host %q", name), err)
	}
	defer func() { _ = handle.Close() }()
	if err := h.connect(handle, prefix.Bits()); err != nil {
		h.Close()
		return nil, fmt.Errorf("connect host %q: %w", name, err)
	}
	return h, nil
}

// onOwnThread runs f on a thread that no other goroutine will ever use, because the thread's
// namespaces differ. It never uses the main thread, because /proc shows this thread's namespaces
// for the process.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f() // never unlocked, so that the thread ends with the goroutine
			return
		}
		// While this goroutine holds the main thread, the next goroutine must get another thread.
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked
		runtime.UnlockOSThread()
	}()
}

func (h *Host) connect(ns netns.NsHandle, bits int) error {
	near := netlink.NewLinkAttrs()
	near.Name = "to-" + h.Name
	if len(near.Name) > 15 { // IFNAMSIZ
		near.Name = near.Name[:15]
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: near, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns)}); err != nil {
		return unsupported("create a virtual Ethernet pair", err)
	}
	link, err := netlink.LinkByName(near.Name)
	if err != nil {
		return err
	}
	if err := addAddress(netlink.AddrAdd, link, h.Gateway, bits); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	inner, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer inner.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := inner.LinkByName(name)
		if err != nil {
			return err
		}
		if err := inner.LinkSetUp(link); err != nil {
			return err
		}
		if name == "eth0" {
			if err := addAddress(inner.AddrAdd, link, h.Address, bits); err != nil {
				return err
			}
		}
	}
	return inner.RouteAdd(&netlink.Route{Gw: h.Gateway.AsSlice()})
}

func addAddress(add func(netlink.Link, *netlink.Addr) error, link netlink.Link, a netip.Addr, bits int) error {
	parsed, err := netlink.ParseAddr(netip.PrefixFrom(a, bits).String())
	if err != nil {
		return err
	}
	if err := add(link, parsed); err != nil {
		return fmt.Errorf("add address %s to %s: %w", a, link.Attrs().Name, err)
	}
	return nil
}

// Own adds an address to the loopback interface of the run, so that a server can listen on it.
func Own(a netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("own address %s: %w", a, err)
	}
	return addAddress(netlink.AddrAdd, lo, a, a.BitLen())
}

// Start starts cmd on the host. Waiting for it and signalling it work as usual.
func (h *Host) Start(cmd *exec.Cmd) error {
	return h.do(cmd.Start)
}

// Rename gives the host another name, from now on, also for its running processes.
func (h *Host) Rename(name string) error {
	if err := h.do(func() error { return unix.Sethostname([]byte(name)) }); err != nil {
		return fmt.Errorf("rename host %q to %q: %w", h.Name, name, err)
	}
	return nil
}

func (h *Host) do(f func() error) error {
	done := make(chan error, 1)
	h.work <- func() { done <- f() }
	return <-done
}

// Close ends the host's thread. The namespaces end with the last process in them.
func (h *Host) Close() { close(h.work) }
