package e2e

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawRequest is a request as bytes. Every "ID" in it is replaced by an Audit-ID.
type rawRequest struct {
	name string
	text string // of HTTP/1.1
	// then is sent after the answer 100.
	then string
	// fields are the HTTP/2 fields, as alternating names and values. data follows as the body.
	fields  []string
	data    string
	trailer []string
	by      string // "": the administrator; "nobody": no certificate
	// differs says how the front door's answer differs from that of the kube-apiserver, and why.
	differs *difference
}

// rawAnswer is the answer to a raw request.
type rawAnswer struct {
	Before  []int  // informational answers
	Code    int    // 0: none
	Type    string // the media type
	Reason  string // of a Status; without one, the shortened body
	Closed  bool   // the server closes the connection after the answer
	Refused string // how HTTP/2 refused the request: a code of RST_STREAM or GOAWAY, or the close of the connection
}

func (a rawAnswer) String() string {
	if a.Refused != "" {
		return a.Refused
	}
	s := fmt.Sprint(a.Code)
	for _, code := range a.Before {
		s = fmt.Sprint(code, " ", s)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s, a.Type, a.Reason))
}

const rawTimeout = 20 * time.Second

// send sends a raw request on a new connection, and reads one answer.
func (r rawRequest) send(address string, config *tls.Config, id string) (rawAnswer, error) {
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	if r.fields != nil {
		config.NextProtos = []string{"h2"}
	}
	if r.by == "nobody" {
		config.Certificates = nil
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 3 * rawTimeout}, "tcp", address, config)
	if err != nil {
		return rawAnswer{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(rawTimeout)); err != nil {
		return rawAnswer{}, err
	}
	if r.fields != nil {
		return r.byHTTP2(conn, id)
	}
	go func() { _, _ = io.WriteString(conn, strings.ReplaceAll(r.text, "ID", id)) }() // the server may answer before it has read everything
	reader := bufio.NewReader(conn)
	var answer rawAnswer
	for {
		method, _, _ := strings.Cut(r.text, " ")
		got, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			return rawAnswer{Before: answer.Before, Refused: "closes the connection"}, nil
		}
		if got.StatusCode < 200 && got.StatusCode != http.StatusSwitchingProtocols {
			answer.Before = append(answer.Before, got.StatusCode)
			if got.StatusCode == http.StatusContinue {
				go func() { _, _ = io.WriteString(conn, r.then) }()
			}
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(got.Body, 1<<20))
		answer.read(got.StatusCode, got.Header, string(body))
		answer.Closed = got.Close
		return answer, nil
	}
}

func (a *rawAnswer) read(code int, h http.Header, body string) {
	a.Code = code
	a.Type, _, _ = strings.Cut(h.Get("Content-Type"), ";")
	if _, rest, ok := strings.Cut(body, `"reason":"`); ok && a.Type == "application/json" && code >= 400 {
		a.Reason, _, _ = strings.Cut(rest, `"`)
	} else if code >= 300 {
		a.Reason = cmp.Or(h.Get("Location"), strings.TrimSpace(body[:min(len(body), 80)]))
	}
}

// byHTTP2 sends the fields unchanged, and reads the answer on their stream.
func (r rawRequest) byHTTP2(conn *tls.Conn, id string) (rawAnswer, error) {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return rawAnswer{}, err
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		return rawAnswer{}, err
	}
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	headers := func(fields []string, last bool) error {
		block.Reset()
		for i := 0; i < len(fields); i += 2 {
			if err := encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: strings.ReplaceAll(fields[i+1], "ID", id)}); err != nil {
				return err
			}
		}
		return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: last})
	}
	err := headers(r.fields, r.data == "" && r.trailer == nil)
	if err == nil && (r.data != "" || r.trailer != nil) {
		err = framer.WriteData(1, r.trailer == nil, []byte(r.data))
	}
	if err == nil && r.trailer != nil {
		err = headers(r.trailer, true)
	}
	if err != nil {
		return rawAnswer{}, err
	}
	var answer rawAnswer
	var body strings.Builder
	h := http.Header{}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return rawAnswer{Refused: "closes the connection"}, nil
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return rawAnswer{Refused: "GOAWAY " + f.ErrCode.String()}, nil
			}
			answer.Closed = true
		case *http2.RSTStreamFrame:
			if f.ErrCode == http2.ErrCodeNo && answer.Code != 0 { // the server does not want the rest of the body
				return answer, nil
			}
			return rawAnswer{Refused: "RST_STREAM " + f.ErrCode.String()}, nil
		case *http2.DataFrame:
			body.Write(f.Data())
		case *http2.MetaHeadersFrame:
			for _, field := range f.RegularFields() {
				h.Add(field.Name, field.Value)
			}
			if status := f.PseudoValue("status"); status != "" {
				if _, err := fmt.Sscan(status, &answer.Code); err != nil {
					return rawAnswer{}, err
				}
			}
			if answer.Code < 200 {
				answer.Before = append(answer.Before, answer.Code)
				continue
			}
		}
		if ended, ok := frame.(interface{ StreamEnded() bool }); ok && ended.StreamEnded() {
			answer.read(answer.Code, h, body.String())
			return answer, nil
		}
	}
}
