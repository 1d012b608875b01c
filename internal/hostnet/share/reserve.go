// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/sysctl"
)

// Which ports a stack has. It is done once for a stack, whatever interfaces it shares.
//
// The host's list of reserved ports (net.ipv4.ip_local_reserved_ports) keeps the host from
// choosing them for itself, and tells other stacks that they are taken: each stack adds its own,
// under the lock of the journals, and takes them out again at the end. A program of the host that
// binds one of these ports itself is not stopped; what it would receive goes to the stack.

const (
	// DefaultPorts is the number of ports that are taken, at most, if the user names none. TIME_WAIT keeps a
	// port for a minute where a peer's address and port are the same.
	DefaultPorts = 4096
	// leastDefault is how many of them there must be.
	leastDefault = 1024
	// leastNamed is what the longest range that the user names must have: connections take their
	// ports from it.
	leastNamed = 64
	// leastHost is what the host must keep of its own range.
	leastHost = 4096
)

const (
	rangeKey    = "net/ipv4/ip_local_port_range"
	reservedKey = journal.ReservedPorts
	// privilegedKey has the first port that every user may have.
	privilegedKey = "net/ipv4/ip_unprivileged_port_start"
)

// A Journal is where changes of the host are noted before they are made. Its folder is locked.
type Journal interface {
	// Note adds a step, and saves the journal.
	Note(journal.Step) error
	// Others are the journals of other stacks.
	Others() []*journal.Journal
	// Table is the name that tables of this stack begin with.
	Table() string
}

// Noted is a journal of a folder that is locked.
type Noted struct {
	Folder  *journal.Locked
	Journal *journal.Journal
}

// Note adds a step, and saves the journal.
func (n Noted) Note(s journal.Step) error {
	n.Journal.Steps = append(n.Journal.Steps, s)
	return n.Folder.Save(n.Journal)
}

// Others are the journals of other stacks of this network namespace. Those that cannot be read are
// left out: hostnet.Sweep reports them.
func (n Noted) Others() []*journal.Journal {
	all, _ := n.Folder.List()
	return slices.DeleteFunc(all, func(j *journal.Journal) bool {
		return j.Path() == n.Journal.Path() || j.Namespace != n.Journal.Namespace
	})
}

// Table is the name that the stack's tables begin with.
func (n Noted) Table() string { return n.Journal.TableName() }

// Reserve takes ports for a stack from the host. want is a list as ParsePorts reads it, or "" for a
// range that the host does not use. It is undone by the journal.
func Reserve(j Journal, want string) (Ports, error) { return reserve(sysctl.Host, j, want, used) }

func reserve(s sysctl.Directory, j Journal, want string, used func(Ports) ([]use, error)) (Ports, error) {
	own, taken, err := hostPorts(s)
	if err != nil {
		return nil, err
	}
	var chosen Ports
	if want == "" {
		chosen, err = choose(own, taken)
	} else {
		chosen, err = named(want, own, taken, j.Others())
	}
	if err != nil {
		return nil, err
	}
	if added := chosen.Without(taken); len(added) > 0 {
		if err := j.Note(journal.Step{Kind: journal.Ports, Set: added.String()}); err != nil {
			return nil, err
		}
		if err := s.Write(reservedKey, taken.With(added).String()); err != nil {
			return nil, err
		}
	}
	// Only now: the host chooses none of them any more.
	uses, err := used(chosen)
	if err != nil || len(uses) == 0 {
		return chosen, err
	}
	if want != "" {
		return nil, access.Refuse("%s of the host's, and cannot be the stack's; choose other ports, or end it", uses[0])
	}
	for _, u := range uses {
		chosen = chosen.Without(Ports{{u.port, u.port}})
	}
	if chosen.Count() < leastDefault {
		return nil, access.Refuse("the host uses so many of the ports %s that %d are left for the stack, fewer than %d; "+
			"name a range that is free (ports=FIRST-LAST)", chosen, chosen.Count(), leastDefault)
	}
	return chosen, nil
}

// Taken reports whether ports of a list are in the host's list: another stack may have them.
func Taken(want string) bool {
	chosen, err := ParsePorts(want)
	_, taken, e := hostPorts(sysctl.Host)
	return errors.Join(err, e) == nil && len(chosen.Both(taken)) > 0
}

// ReserveForUser is Reserve for a stack of a user who has no rights of its own: none of the ports is in the
// host's list already, and every user may have them.
//
// Where the host forwards, it may translate: then ports of its own range are also those from which others
// connect through it, whatever the list says, and what is for them would come to the stack. So there the
// stack has none of that range, and no more than it needs of what is above.
func ReserveForUser(j Journal, want string) (Ports, error) {
	return reserveForUser(sysctl.Host, j, want, used)
}

func reserveForUser(s sysctl.Directory, j Journal, want string, used func(Ports) ([]use, error)) (Ports, error) {
	own, taken, err := hostPorts(s)
	if err != nil {
		return nil, err
	}
	if want == "" && forwards(s) {
		free := above(own[0].Last).Without(taken)
		uses, err := used(free)
		if err != nil {
			return nil, err
		}
		for _, u := range uses {
			free = free.Without(Ports{{u.port, u.port}})
		}
		if free.Count() < leastDefault {
			return nil, access.Refuse("the host forwards packets of others, and has no room for a stack's ports above those that it chooses "+
				"for them (%s): %d are free, and a stack takes %d; a smaller range of the host makes room "+
				"(sysctl net.ipv4.ip_local_port_range)", own, free.Count(), leastDefault)
		}
		want = free.last(leastDefault).String()
	}
	chosen, err := ParsePorts(want)
	if err != nil {
		return nil, access.Refuse("%w", err)
	}
	text, err := s.Read(privilegedKey)
	if err != nil {
		return nil, fmt.Errorf("cannot read which ports every user may have: %w", err)
	}
	least, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: %w", privilegedKey, text, err)
	}
	least = max(least, 1024)
	both, theirs := chosen.Both(taken), chosen.Both(own)
	switch {
	case len(both) > 0:
		return nil, access.Refuse("ports %s are reserved on the host already; choose others, or leave ports= out for a range that is free", both)
	case len(chosen) > 0 && int(chosen[0].First) < least:
		return nil, access.Refuse("port %d is below %d, and not every user may have it", chosen[0].First, least)
	case len(theirs) > 0 && forwards(s):
		return nil, access.Refuse("the host forwards packets of others, and ports %s are of those that it may choose for them; choose others, "+
			"or leave ports= out for a range that is free", theirs)
	}
	return reserve(s, j, want, used)
}

// forwards reports whether the host forwards what comes in by one of its interfaces.
func forwards(s sysctl.Directory) bool {
	all, _ := filepath.Glob(filepath.Join(string(s), "net/ipv4/conf/*/forwarding"))
	return slices.ContainsFunc(all, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.TrimSpace(string(text)) != "0"
	})
}

// hostPorts returns the range from which the host chooses ports, and the ports that it never chooses.
func hostPorts(s sysctl.Directory) (own, taken Ports, err error) {
	text, e1 := s.Read(rangeKey)
	list, e2 := s.Read(reservedKey)
	if err := errors.Join(e1, e2); err != nil {
		return nil, nil, fmt.Errorf("cannot read which ports the host uses: %w", err)
	}
	own, e1 = ParsePorts(strings.Join(strings.Fields(text), "-"))
	taken, e2 = ParsePorts(list)
	if err := errors.Join(e1, e2); err != nil || len(own) != 1 {
		return nil, nil, fmt.Errorf("%s is %q and %s %q: %w", rangeKey, text, reservedKey, list, err)
	}
	return own, taken, nil
}

// choose finds ports above the host's range, or else at its end.
func choose(own, taken Ports) (Ports, error) {
	if free := above(own[0].Last).Without(taken); free.Count() >= leastDefault {
		return free.last(DefaultPorts), nil
	}
	free := own.Without(taken)
	if free.Count() < leastDefault+leastHost {
		return nil, access.Refuse("the host has no room for a stack's ports: it uses %s, of which %d are free; a stack takes %d "+
			"of them and leaves %d. A smaller range of the host makes room (sysctl net.ipv4.ip_local_port_range)",
			own, free.Count(), leastDefault, leastHost)
	}
	return free.last(min(DefaultPorts, free.Count()-leastHost)), nil
}

// named checks the ports that the user has named.
func named(want string, own, taken Ports, others []*journal.Journal) (Ports, error) {
	chosen, err := ParsePorts(want)
	if err != nil {
		return nil, access.Refuse("%w", err)
	}
	for _, other := range others {
		for _, step := range other.Steps {
			if step.Kind != journal.Ports {
				continue
			}
			theirs, _ := ParsePorts(step.Set)
			if both := chosen.Both(theirs); len(both) > 0 {
				return nil, access.Refuse("ports %s are another stack's (%s); choose others, or leave ports= out for a range that is free",
					both, other.ID())
			}
		}
	}
	if span, _ := chosen.Span(); (Ports{span}).Both(chosen).Count() < leastNamed {
		return nil, access.Refuse("ports %s: connections of the stack take their ports from the longest range, which has %d; "+
			"expected one of at least %d beside the ports of servers", chosen, span.Count(), leastNamed)
	}
	if left := own.Without(taken).Without(chosen).Count(); left < leastHost && len(own.Both(chosen)) > 0 {
		return nil, access.Refuse("ports %s would leave %d of the host's own (%s); expected %d at least", chosen, left, own, leastHost)
	}
	return chosen, nil
}

// Release takes the ports of a journal's step out of the host's list.
func Release(s sysctl.Directory, list string) error {
	ours, err := ParsePorts(list)
	if err != nil {
		return err
	}
	_, taken, err := hostPorts(s)
	if err != nil {
		return err
	}
	left := taken.Without(ours)
	if left.Count() == taken.Count() {
		return nil
	}
	return s.Write(reservedKey, left.String())
}
