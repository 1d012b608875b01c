// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"guise/internal/plain"
)

// A holder may be another user's, and say anything. It gets so much time and room for its list.
const (
	mostConnections = 1 << 18 // rows: subflows are some
	listTime        = 30 * time.Second
	mostSubflows    = 64 // of one connection; Linux makes 8 and takes as many
	longestWord     = 16 // bytes: names of interfaces and states are not longer
)

// Connection is one TCP connection of a stack, or one Multipath TCP connection with its subflows.
type Connection struct {
	End
	// Fallback: it was to be Multipath TCP, and is plain TCP.
	Fallback bool   `json:"fallback"`
	Token    uint32 `json:"token,omitempty"` // of Multipath TCP
	UID      int    `json:"uid"`             // in the stack
	// PIDs are the processes that have it: none are known if it is in a server's queue, or
	// belongs to the holder, or to a process that this user may not look at.
	PIDs     []int     `json:"pids"`
	Subflows []Subflow `json:"subflows,omitempty"`

	inode uint32
}

// Subflow is one of the TCP connections of a Multipath TCP connection.
type Subflow struct {
	End
	Backup   bool `json:"backup"` // used when no other is left
	LocalID  int  `json:"local_id"`
	RemoteID int  `json:"remote_id"`
}

// End is what connections and subflows have.
type End struct {
	Protocol  string         `json:"protocol"`
	State     string         `json:"state"`
	Local     netip.AddrPort `json:"local"`
	Remote    netip.AddrPort `json:"remote"`
	Interface string         `json:"interface,omitempty"`
	Bytes     *Bytes         `json:"bytes,omitempty"` // nil: the stack's kernel does not count them
	Path      *Path          `json:"path,omitempty"`  // nil: it has several, or none yet
}

// Bytes are of data, without headers.
type Bytes struct {
	Sent          uint64 `json:"sent"` // with those that were sent again
	Acked         uint64 `json:"acked"`
	Received      uint64 `json:"received"`
	Retransmitted uint64 `json:"retransmitted"`
}

// Path is what TCP has measured.
type Path struct {
	RTT             uint32 `json:"rtt_us"`
	RTTVar          uint32 `json:"rttvar_us"`
	MinRTT          uint32 `json:"min_rtt_us"`
	Cwnd            uint32 `json:"cwnd"` // segments
	MSS             uint32 `json:"mss"`
	CwndBytes       uint64 `json:"cwnd_bytes"`
	Retransmissions uint32 `json:"retransmissions"` // segments
}

// row is a connection or a subflow as the holder tells it (docs/plan.md).
type row struct {
	End
	Inode     uint32 `json:"inode"`
	UID       int    `json:"uid"`
	Cookie    uint64 `json:"cookie"` // of one socket for ever
	Token     uint32 `json:"token"`
	Fallback  bool   `json:"fallback"`
	SubflowOf *struct {
		Token    uint32 `json:"token"`
		Fallback bool   `json:"fallback"`
		Backup   bool   `json:"backup"`
		LocalID  int    `json:"local_id"`
		RemoteID int    `json:"remote_id"`
	} `json:"subflow_of"`
}

type page struct {
	From        uint64  `json:"from"`
	Connections []row   `json:"connections"`
	Next        *uint64 `json:"next"`
}

// Connections asks for the connections of the stack, page by page. pids are the processes on it.
func (c *Client) Connections(pids []int) ([]Connection, error) {
	rows, err := c.rows(time.Now().Add(listTime))
	if err != nil {
		return nil, err
	}
	connections := join(rows)
	name(connections, pids)
	return connections, nil
}

// rows reads all pages. Connections come and go meanwhile, and one may be in two pages.
func (c *Client) rows(end time.Time) ([]row, error) {
	var rows []row
	seen := map[uint64]bool{}
	for from := uint64(0); ; {
		text, err := c.tell("connections " + strconv.FormatUint(from, 10))
		if err != nil {
			return nil, err
		}
		var p page
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return nil, fmt.Errorf("the holder of %s gave connections that cannot be read: %s", c.id, plain.Text(err.Error()))
		}
		for _, r := range p.Connections {
			if !seen[r.Cookie] {
				seen[r.Cookie] = true
				r.makePlain()
				rows = append(rows, r)
			}
		}
		switch {
		case p.Next == nil:
			return rows, nil
		case p.From != from || *p.Next != from+uint64(len(p.Connections)) || *p.Next == from:
			return nil, fmt.Errorf("the holder of %s gave pages of connections that do not follow each other", c.id)
		case *p.Next > mostConnections:
			return nil, fmt.Errorf("the stack %s has more than %d connections, and they are not listed", c.id, mostConnections)
		case time.Now().After(end):
			return nil, fmt.Errorf("the holder of %s did not list its connections within %v: %w", c.id, listTime, ErrTime)
		}
		from = *p.Next
	}
}

func (e *End) makePlain() {
	for _, word := range []*string{&e.Protocol, &e.State, &e.Interface} {
		if len(*word) > longestWord {
			*word = "?"
		}
		*word = plain.Text(*word)
	}
	e.Local, e.Remote = plainEnd(e.Local), plainEnd(e.Remote)
}

// plainEnd has no zone, which could be any text; one of IPv4 is written as such.
func plainEnd(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

const mptcp = "mptcp"

// join makes connections of rows: subflows go to those that have their token. Where there is none
// (the connection has fallen back, or was not there yet when it was to be listed) they are one of
// their own.
func join(rows []row) []Connection {
	connections := []Connection{}
	byToken := map[uint32]int{}
	for _, r := range rows {
		if r.SubflowOf != nil {
			continue
		}
		if r.Protocol == mptcp {
			byToken[r.Token] = len(connections)
		}
		connections = append(connections, Connection{End: r.End, Fallback: r.Fallback, Token: r.Token, UID: r.UID, inode: r.Inode})
	}
	for _, r := range rows {
		of := r.SubflowOf
		if of == nil {
			continue
		}
		i, known := byToken[of.Token]
		if !known {
			i = len(connections)
			if of.Token != 0 && !of.Fallback {
				byToken[of.Token] = i
			}
			whole := r.End
			whole.Protocol, whole.Interface, whole.Bytes, whole.Path = mptcp, "", nil, nil
			connections = append(connections, Connection{End: whole, Fallback: of.Fallback, Token: of.Token, UID: r.UID, inode: r.Inode})
		}
		if c := &connections[i]; len(c.Subflows) < mostSubflows {
			c.Subflows = append(c.Subflows, Subflow{End: r.End, Backup: of.Backup, LocalID: of.LocalID, RemoteID: of.RemoteID})
		}
	}
	for i := range connections {
		connections[i].countSubflows()
	}
	return connections
}

// countSubflows adds up what the kernel does not tell of the whole.
func (c *Connection) countSubflows() {
	if c.Bytes != nil || len(c.Subflows) == 0 {
		return
	}
	sum := Bytes{}
	for _, s := range c.Subflows {
		if s.Bytes == nil {
			return
		}
		sum.Sent += s.Bytes.Sent
		sum.Acked += s.Bytes.Acked
		sum.Received += s.Bytes.Received
		sum.Retransmitted += s.Bytes.Retransmitted
	}
	c.Bytes = &sum
}

// name finds the processes that have each connection. A socket of a stack has the number of its
// placeholder on the host, which is a socket as well, among the descriptors of its process.
func name(connections []Connection, pids []int) {
	byInode := map[uint32][]int{}
	for i := range connections {
		connections[i].PIDs = []int{}
		if inode := connections[i].inode; inode != 0 {
			byInode[inode] = nil
		}
	}
	if len(byInode) == 0 {
		return
	}
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		descriptors, err := os.ReadDir(dir)
		if err != nil {
			continue // it has just ended, or is not this user's
		}
		for _, d := range descriptors {
			target, _ := os.Readlink(filepath.Join(dir, d.Name()))
			number, found := strings.CutPrefix(target, "socket:[")
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
			if !found || err != nil {
				continue
			}
			if of, wanted := byInode[uint32(inode)]; wanted && !slices.Contains(of, pid) {
				byInode[uint32(inode)] = append(of, pid)
			}
		}
	}
	for i := range connections {
		if of := byInode[connections[i].inode]; of != nil {
			connections[i].PIDs = of
		}
	}
}
