// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"guise/internal/holder"
	"guise/internal/plain"
)

// tabulateConnections writes a line for each connection, and below it one for each of its
// subflows.
func tabulateConnections(out io.Writer, stacks []listed) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STACK\tPROTOCOL\tSTATE\tLOCAL\tREMOTE\tINTERFACE\tSENT\tRECEIVED\tRESENT\tRTT\tCWND\tPROGRAM")
	for _, s := range stacks {
		if s.Connections == nil {
			fmt.Fprintf(table, "%s\t%s\n", s.Stack, cmp.Or(plain.Text(s.Error), "does not answer"))
			continue
		}
		programs := programNames{}
		for _, c := range s.Connections {
			protocol := c.Protocol
			if c.Fallback {
				protocol += " (fell back to tcp)"
			}
			writeEnd(table, s.Stack, protocol, &c.End, programs.of(c.PIDs))
			for _, sub := range c.Subflows {
				role := "  subflow"
				if sub.Backup {
					role = "  backup"
				}
				writeEnd(table, s.Stack, role, &sub.End, "")
			}
		}
	}
	return table.Flush()
}

func writeEnd(out io.Writer, stack, protocol string, e *holder.End, program string) {
	sent, received, resent, rtt, cwnd := "", "", "", "", ""
	if b := e.Bytes; b != nil {
		sent, received, resent = size(b.Sent), size(b.Received), size(b.Retransmitted)
	}
	if p := e.Path; p != nil {
		resent = strings.TrimSuffix(fmt.Sprintf("%d (%s)", p.Retransmissions, resent), " ()")
		rtt = roundTrip(p.RTT)
		cwnd = fmt.Sprintf("%d (%s)", p.Cwnd, size(p.CwndBytes))
	}
	fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", stack, protocol, e.State, e.Local, e.Remote,
		e.Interface, sent, received, resent, rtt, cwnd, program)
}

// roundTrip is a time in microseconds as ping writes it; "" before anything was measured.
func roundTrip(us uint32) string {
	if us == 0 {
		return ""
	}
	ms := float64(us) / float64(time.Millisecond/time.Microsecond)
	if ms >= 100 {
		return fmt.Sprintf("%.0fms", ms)
	}
	return fmt.Sprintf("%.3gms", ms)
}

// programNames are processes as netstat names them: 7/curl.
type programNames map[int]string

func (names programNames) of(pids []int) string {
	var words []string
	for _, pid := range pids {
		if _, known := names[pid]; !known {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			names[pid] = fmt.Sprintf("%d/%s", pid, plain.Text(strings.TrimSpace(string(comm))))
		}
		words = append(words, names[pid])
	}
	return strings.Join(words, ",")
}
