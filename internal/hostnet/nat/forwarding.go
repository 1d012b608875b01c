// SPDX-License-Identifier: GPL-2.0-only

package nat

import (
	"errors"
	"fmt"
	"io/fs"

	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/sysctl"
)

// Forwarding is what the host needs in order to pass packets between the
// stacks' taps and its other interfaces, and no more than that.
//
// IPv4 asks the interface that a packet came in on, so every interface that
// does not forward yet is told to. For IPv6, kernels from 6.17 on have the
// same in force_forwarding. Older ones know only a switch for all, and an
// interface that forwards stops listening to router advertisements unless its
// accept_ra is 2: the host would lose its own default route.
//
// A host that was no router must not become one between its other interfaces:
// closed are those that forward only because of guise, and the firewall lets
// nothing through from them but to a stack.
type Forwarding struct {
	Steps   []journal.Step // new ones, in the order of their making
	Writes  []journal.Step // those of old and new that do not stand yet
	Closed4 []string
	Closed6 []string
}

// Forward finds what must change; interfaces are those of the host
// beside the taps. j holds what earlier stacks have changed already.
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
		// The switch for all, turned off again, turns off this one too.
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

// want notes that key must have the value, and says whether it is guise that
// gave, or gives, it that value.
func (f *Forwarding) want(s sysctl.Directory, j *journal.Journal, key, value string) (bool, error) {
	now, err := s.Read(key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the interface is gone, or has no such protocol
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
