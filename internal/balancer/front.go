package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"time"
)

// front accepts connections and passes them on. listen and close are for one goroutine.
type front struct {
	pool     *pool
	address  string
	listener net.Listener
}

// listen makes it listen at that address; "" and the address it has already change nothing.
func (f *front) listen(address string) error {
	if address == "" || address == f.address {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen as lds.yaml says: %w", err)
	}
	f.close()
	f.address, f.listener = address, l
	log.Printf("listening at %s", l.Addr())
	go f.accept(l)
	return nil
}

func (f *front) close() {
	if f.listener != nil {
		_ = f.listener.Close()
	}
}

// acceptPause is how long it waits when the kernel has no connection to give (too many open files):
// trying again at once would take a whole CPU.
const acceptPause = 50 * time.Millisecond

func (f *front) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Printf("accept a connection: %v", err)
			time.Sleep(acceptPause)
			continue
		}
		go f.serve(conn.(*net.TCPConn))
	}
}

// serve passes bytes both ways until both sides have ended.
func (f *front) serve(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	conn, err := f.pool.dial(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	server := conn.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	var wg sync.WaitGroup
	wg.Go(func() { pass(server, client) })
	wg.Go(func() { pass(client, server) })
	wg.Wait()
}

// pass copies one direction. A clean end is passed on as such; after anything else the other
// direction must not be waited for.
func pass(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = to.CloseWrite()
}
