// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"guise/internal/holder"
	"guise/internal/plain"
	"guise/internal/uplink"
)

// tellTime is how long guise ls waits for what only a stack's kernel can tell.
const tellTime = time.Second

// listed is one stack, as guise ls --json has it.
type listed struct {
	Stack string `json:"stack"` // what guise exec and guise down take
	Named bool   `json:"named"`
	*holder.Status
	Uplinks []uplink.Status `json:"uplinks,omitempty"`
	// Connections are nil when they were not asked for, or not told.
	Connections []holder.Connection `json:"connections"`
	Error       string              `json:"error,omitempty"`
}

func newLs() *cobra.Command {
	var asJSON, connections bool
	cmd := &cobra.Command{
		Use:   "ls [-c] [--json] [STACK]",
		Short: "List the stacks there are, or their connections",
		Long: "Lists this user's stacks: those of guise up by their names, those of guise run by the number of the process\n" +
			"that guise run was. MEMBERS are processes on the stack (and how many of them are served),\n" +
			"SOCKETS those of the stack (its holder's included), LINKS those of the stack, its uplinks with what they are at\n" +
			"the moment (--json says why), SENT and RECEIVED the bytes of all links, MEMORY what it takes of the host's, of what it may take.\n" +
			"A stack with several links has a line for each of them.\n\n" +
			"With -c it lists their TCP connections, and below one of Multipath TCP its subflows: SENT are bytes of data\n" +
			"(with those sent again), RESENT segments that were sent again and their bytes, RTT the smoothed round trip time,\n" +
			"CWND the congestion window in segments and bytes, PROGRAM who has it.",
		Example: "  guise ls\n  guise ls -c web\n  guise ls --json web",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("unexpected %q; expected guise ls [-c] [--json] [STACK]", args[1])
			}
			return nil
		},
		ValidArgsFunction: completeStacks,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			stacks := holder.Stacks()
			if len(args) > 0 {
				stack, err := holder.FindStack(args[0])
				if err != nil {
					return err
				}
				stacks = []holder.Stack{stack}
			}
			found := askAll(stacks, asJSON || connections)
			switch out := cmd.OutOrStdout(); {
			case asJSON:
				return writeJSON(out, found)
			case connections:
				return tabulateConnections(out, found)
			default:
				return tabulate(out, found)
			}
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON array, with an object for each stack, its connections included")
	cmd.Flags().BoolVarP(&connections, "connections", "c", false, "list connections and their subflows, with bytes, RTT and congestion window")
	return cmd
}

// writeJSON writes what others may have named, as it may go to a terminal.
func writeJSON(out io.Writer, what any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(what); err != nil {
		return err
	}
	_, err := io.WriteString(out, plain.JSON(text.String()))
	return err
}

// askAll asks all these stacks at once. One that has just ended is none.
func askAll(stacks []holder.Stack, connections bool) []listed {
	answers := make([]*listed, len(stacks))
	var all sync.WaitGroup
	for i, s := range stacks {
		all.Add(1)
		go func() {
			defer all.Done()
			answer := &listed{Stack: s.ID, Named: s.Named}
			err := answer.ask(s, connections)
			if errors.As(err, &holder.NoStackError{}) {
				return
			}
			if answer.Status != nil {
				answer.Uplinks = uplink.Told(answer.Told)
			}
			if err != nil {
				answer.Error = err.Error()
			}
			answers[i] = answer
		}()
	}
	all.Wait()
	found := []listed{}
	for _, a := range answers {
		if a != nil {
			found = append(found, *a)
		}
	}
	return found
}

func statusOf(s holder.Stack, patience time.Duration) (*holder.Status, error) {
	c, err := s.Dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Status(patience)
}

func (l *listed) ask(s holder.Stack, connections bool) error {
	c, err := s.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	l.Status, err = c.Status(tellTime)
	// One whose kernel did not answer would not tell its connections, either.
	if err == nil && connections && l.Sockets != nil {
		l.Connections, err = c.Connections(l.PIDs)
	}
	return err
}

func tabulate(out io.Writer, stacks []listed) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STACK\tNAME\tAGE\tMEMBERS\tLINKS\tSOCKETS\tSENT\tRECEIVED\tMEMORY\tSTATE")
	for _, s := range stacks {
		if s.Status == nil {
			fmt.Fprintf(table, "%s\t\t\t\t\t\t\t\t\t%s\n", s.Stack, plain.Text(s.Error))
			continue
		}
		links := s.linkNames()
		var sent, received uint64
		for _, l := range s.Links {
			sent, received = sent+l.TxBytes, received+l.RxBytes
		}
		sockets := "?"
		if s.Sockets != nil {
			sockets = fmt.Sprint(*s.Sockets)
		}
		members := fmt.Sprint(s.Members)
		if s.Served > 0 {
			members += fmt.Sprintf(" (%d served)", s.Served)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s of %s\t%s\n", s.Stack, s.Name, age(s.AgeMS), members,
			cmp.Or(strings.Join(links, ","), "none"), sockets, size(sent), size(received), size(s.Memory), size(s.MemoryLimit), s.state())
		if len(links) < 2 {
			continue
		}
		for i, l := range s.Links {
			state := ""
			if l.Lost {
				state = "lost"
			}
			fmt.Fprintf(table, "\t\t\t\t%s\t\t%s\t%s\t\t%s\n", links[i], size(l.TxBytes), size(l.RxBytes), state)
		}
	}
	return table.Flush()
}

// linkNames are those of l.Links, in their order, and then those of uplinks that have no link.
func (l listed) linkNames() (names []string) {
	uplinks := slices.Clone(l.Uplinks)
	named := func(u uplink.Status) string { return fmt.Sprintf("%s (%s)", u.Name, u.State) }
	for _, link := range l.Links {
		i := slices.IndexFunc(uplinks, func(u uplink.Status) bool { return u.Name == link.Name })
		if i < 0 {
			names = append(names, link.Kind+":"+link.Name)
			continue
		}
		names = append(names, named(uplinks[i]))
		uplinks = slices.Delete(uplinks, i, i+1)
	}
	for _, u := range uplinks {
		names = append(names, named(u))
	}
	return names
}

func (l listed) state() string {
	switch {
	case l.Lost:
		return "lost"
	case l.Ending:
		return "ending"
	case l.Sockets == nil:
		return "does not answer"
	}
	return "up"
}

func age(ms uint64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// size is a number of bytes with at most four digits.
func size(n uint64) string {
	units := "BKMGT"
	i, x := 0, float64(n)
	for x >= 1024 && i < len(units)-1 {
		x, i = x/1024, i+1
	}
	if i == 0 || x >= 10 {
		return fmt.Sprintf("%.0f%c", x, units[i])
	}
	return fmt.Sprintf("%.1f%c", x, units[i])
}
