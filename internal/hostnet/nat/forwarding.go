// SPDX-License-Identifier: GPL-2.0-only

package nat

import (
	"errors"
	"fmt"
	"io/fs"

	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/sysctl"
)

// Forwarding has the sysctls that the host needs to pass packets between the
// stacks' taps and its other interfaces, and no others.
//
// For IPv4, the sysctl of the interface on which a packet came decides. So every
// interface that does not forward yet is set to do so. For IPv6, kernels from
// 6.17 on have the same sysctl, named force_forwarding. Older kernels have only
// one switch for all interfaces. With it on, an interface no longer accepts router
// advertisements unless its accept_ra is 2: the host would lose its own default
// route.
//
// A host that was no router must not become one between its other interfaces.
// Closed are the interfaces that forward only because of guise: the firewall
// passes nothing from them except to a stack.
type Forwarding struct {
	Steps   []journal.Step // the new steps, in the order in which they are made
	Writes  []journal.Step // old and new steps whose value is not set yet
	Closed4 []string
	Closed6 []string
}

// Forward finds what must change. interfaces are those of the host, without the
// taps. j has what earlier stacks have changed already.
func Forward(s sysctl.Directory, j *journal.Journal, interfaces []string, ipv6 bool) (*Forwarding, error) {
	f := &Forwarding{}
	for _, name := range interfaces {
		changed, err := f.want(s, j, "net/ipv4/conf/"+name+"/forwarding", "1")
		if err != nil {
			return nil, err
		}
		if changed {
			f.Closed4 = append(f.Closed4, name)
		}
	}
	if !ipv6 {
		return f, nil
	}
	const all = "net/ipv6/conf/all/forwarding"
	before, err := s.Read(all)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", all, err)
	}
	if _, ours := j.Sysctl(all); before != "0" && !ours {
		return f, nil
	}
	oneByOne := s.Has("net/ipv6/conf/all/force_forwarding")
	for _, name := range interfaces {
		conf := "net/ipv6/conf/" + name
		if oneByOne {
			changed, err := f.want(s, j, conf+"/force_forwarding", "1")
			if err != nil {
				return nil, err
			}
			if changed {
				f.Closed6 = append(f.Closed6, name)
			}
			continue
		}
		f.Closed6 = append(f.Closed6, name)
		_, ours := j.Sysctl(conf + "/accept_ra")
		if now, _ := s.Read(conf + "/accept_ra"); now == "1" || ours {
			if _, err := f.want(s, j, conf+"/accept_ra", "2"); err != nil {
				return nil, err
			}
		}
		// When the switch for all is turned off again, it turns this one off, too.
		if now, _ := s.Read(conf + "/forwarding"); now == "1" && before == "0" {
			f.Steps = append(f.Steps, journal.Step{Kind: journal.Sysctl, Key: conf + "/forwarding", Set: "0", Old: "1"})
		}
	}
	if !oneByOne {
		if _, err := f.want(s, j, all, "1"); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// want adds a step that gives key the value. It reports whether guise has given, or
// will give, it that value.
func (f *Forwarding) want(s sysctl.Directory, j *journal.Journal, key, value string) (bool, error) {
	now, err := s.Read(key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the interface is gone, or does not have this protocol
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w", key, err)
	}
	step, ours := j.Sysctl(key)
	if !ours && now == value {
		return false, nil
	}
	if !ours {
		step = journal.Step{Kind: journal.Sysctl, Key: key, Set: value, Old: now}
		f.Steps = append(f.Steps, step)
	}
	if now != value {
		f.Writes = append(f.Writes, step)
	}
	return true, nil
}
