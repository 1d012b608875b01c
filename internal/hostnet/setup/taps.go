// SPDX-License-Identifier: GPL-2.0-only

package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/survey"
	"guise/internal/hostnet/tap"
)

// entry is a line of /etc/guise/taps.
type entry struct {
	name      string
	uid       int
	four, six netip.Prefix // the host's addresses; six is invalid if there is none
}

func (t entry) String() string {
	six := "-"
	if t.six.IsValid() {
		six = t.six.String()
	}
	return fmt.Sprintf("%s %d %s %s", t.name, t.uid, t.four, six)
}

func readTaps() ([]entry, error) {
	text, err := os.ReadFile(tapsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what was set up before: %w", err)
	}
	var taps []entry
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 4 {
			return nil, fmt.Errorf("%s: %q is no line that guise wrote; expected NAME UID IPV4/LEN IPV6/LEN", tapsFile, line)
		}
		t := entry{name: words[0]}
		var wrong error
		if t.uid, err = strconv.Atoi(words[1]); err != nil {
			wrong = err
		}
		if t.four, err = netip.ParsePrefix(words[2]); err != nil {
			wrong = err
		}
		if words[3] != "-" {
			if t.six, err = netip.ParsePrefix(words[3]); err != nil {
				wrong = err
			}
		}
		if wrong != nil {
			return nil, fmt.Errorf("%s: %q: %w", tapsFile, line, wrong)
		}
		taps = append(taps, t)
	}
	return taps, nil
}

func (t entry) sixText() string {
	if t.six.IsValid() {
		return t.six.String()
	}
	return "(no IPv6)"
}

// wanted returns the taps that there should be.
func (s *Setup) wanted(before []entry, uid int) ([]entry, error) {
	if s.Undo {
		return slices.DeleteFunc(slices.Clone(before), func(t entry) bool { return uid < 0 || t.uid == uid }), nil
	}
	if s.Taps < 0 || s.Taps > MostTaps {
		return nil, access.Refuse("--taps %d: expected a number from 1 to %d", s.Taps, MostTaps)
	}
	found, err := survey.Host()
	if err != nil {
		return nil, err
	}
	have := 0
	var after []entry
	for _, t := range before {
		found.Names[t.name] = true
		found.Taken = append(found.Taken, t.four.Masked())
		if t.six.IsValid() {
			found.Taken = append(found.Taken, t.six.Masked())
		}
		if t.uid == uid {
			if have++; s.Taps != 0 && have > s.Taps {
				continue
			}
		}
		after = append(after, t)
	}
	for want := max(s.Taps, 1); have < want; have++ {
		t := entry{uid: uid}
		for i := 0; ; i++ {
			if t.name = fmt.Sprintf("%s%d", tap.SetupPrefix, i); !found.Names[t.name] {
				break
			}
		}
		found.Names[t.name] = true
		four, err := found.Taken.Free4()
		if err != nil {
			return nil, err
		}
		t.four = four.Host
		found.Taken = append(found.Taken, four.Host.Masked())
		if found.IPv6 {
			six, err := found.Taken.Free6()
			if err != nil {
				return nil, err
			}
			t.six = six.Host
			found.Taken = append(found.Taken, six.Host.Masked())
		}
		after = append(after, t)
	}
	return after, nil
}

// Listed returns the taps that root has set up for this user, even if they do not
// exist now.
func Listed() []string {
	listed, err := readTaps()
	if err != nil {
		return nil
	}
	var names []string
	for _, t := range listed {
		if t.uid == os.Geteuid() {
			names = append(names, t.name)
		}
	}
	return names
}
