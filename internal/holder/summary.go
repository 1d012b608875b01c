// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"guise/internal/plain"
)

// How far a stack's TCP reached.
const (
	ReachWire  = "wire"
	ReachPasst = "passt" // beyond it is the host's TCP
	ReachNone  = "none"  // it had no link
)

// Summary has what happened on a stack from its beginning to its end; guise run --json
// writes it.
type Summary struct {
	Version       int      `json:"version"` // of these keys
	CC            string   `json:"cc"`
	Reach         string   `json:"reach"`
	Connections   uint64   `json:"connections"`
	Sockets       uint64   `json:"sockets"`
	Escaped       uint64   `json:"escaped"`
	Untrapped     uint64   `json:"untrapped"`    // processes whose raw system calls were not seen
	Untraced      uint64   `json:"untraced"`     // processes whose deaths could have lost the stack
	UntracedWhy   []string `json:"untraced_why"` // keys of whyUntraced
	TxBytes       uint64   `json:"tx_bytes"`
	RxBytes       uint64   `json:"rx_bytes"`
	Retransmitted uint64   `json:"retrans_segs"`
	Members       uint64   `json:"members"`
	Served        uint64   `json:"served"`      // of the members: the others called the stack directly
	ServedUser    *uint32  `json:"served_user"` // whose programs most members served, if not those of the stack's user
	Refused       uint64   `json:"refused"`
	Programs
	Unconfined []string `json:"unconfined"` // what the holder's carrier could not give up: keys of whyUnconfined
	Guests     bool     `json:"guests"`     // programs were in a namespace whose only way out was the stack
	Cut        bool     `json:"cut"`        // it was taken down while programs were on it
	Lost       bool     `json:"lost"`       // a member died in the middle of a change to it
}

// Programs counts the programs that were started on a stack.
type Programs struct {
	On      uint64    `json:"programs"` // that ran on the stack
	Outside []Outside `json:"outside"`  // that ran on the host's stack
	Unnamed uint64    `json:"unnamed"`  // that ran there, too, without room for their names
}

// Outside is a program that ran on the host's stack.
type Outside struct {
	Program string `json:"program"`
	Why     string `json:"why"` // a key of whyOutside
	Times   uint64 `json:"times"`
}

var whyOutside = map[string]string{
	"static":     "statically linked",
	"go":         "written in Go",
	"privileged": "gains privileges",
	"machine":    "for another processor",
	"unreadable": "could not read guise's library",
	"off":        "GUISE_PRELOAD=off",
}

var whyUntraced = map[string]string{
	"occupied":   "another program traced it, as strace or gdb",
	"user":       "another user's",
	"undumpable": "it had forbidden that, PR_SET_DUMPABLE",
	"refused":    "the host refused it: guise doctor says why",
}

var whyUnconfined = map[string]string{
	"namespaces": "namespaces of its own",
	"files":      "an empty root",
	"calls":      "a filter of system calls",
}

// namedOutside is how many programs the proof names; the others are only counted.
const namedOutside = 3

// String returns the proof, which is one line. It says that nothing escaped only if all
// programs ran on the stack and guise saw their system calls.
func (s Summary) String() string {
	if s.Lost {
		return "the stack was lost: a program on it was killed, or ended, in the middle of a change to it"
	}
	if s.Cut {
		return "the stack was taken down (guise down) while programs were on it"
	}
	reach := map[string]string{ReachPasst: "as far as passt", ReachNone: "within the stack (no link)"}[s.Reach]
	text := fmt.Sprintf("%s %s, %s, %s%s", s.CC, cmp.Or(reach, "on the wire"), s.Programs.on(s.Guests), s.served(), count(s.Connections, "connection"))
	outside := s.Programs.outside()
	if s.Escaped > 0 || outside == "" && s.Untrapped == 0 {
		text += fmt.Sprintf(", %s escaped to the host", count(s.Escaped, "socket"))
	}
	if outside != "" {
		text += "; " + outside
	}
	// All are with --served. Root's are where root has named another user, and to give root the stack
	// would undo what that was for.
	if s.ServedUser != nil && *s.ServedUser != 0 && s.Served < s.Members {
		name := userName(*s.ServedUser)
		text += fmt.Sprintf("; most members are served because they are %s's, and the stack is another user's: --user %s makes them direct", name, name)
	}
	if s.Untrapped > 0 {
		text += fmt.Sprintf("; whether sockets escaped by raw system calls is not known: these were not seen, %s (host kernel before 5.11, "+
			"or another processor than x86-64)", times(s.Untrapped))
	}
	if s.Untraced > 0 {
		text += fmt.Sprintf("; %s could not be traced (%s), and one that is killed in a bad moment loses the stack for all",
			count(s.Untraced, "process"), words(s.UntracedWhy, whyUntraced))
	}
	if len(s.Unconfined) > 0 {
		text += fmt.Sprintf("; what carried the stack had to do without %s (guise doctor)", words(s.Unconfined, whyUnconfined))
	}
	return text
}

// served says how many members were direct and how many served: "" if all were direct.
func (s Summary) served() string {
	if s.Served == 0 {
		return ""
	}
	return fmt.Sprintf("%s direct and %d served, ", count(s.Members-min(s.Served, s.Members), "member"), s.Served)
}

func userName(id uint32) string {
	number := strconv.FormatUint(uint64(id), 10)
	if found, err := user.LookupId(number); err == nil {
		return plain.Text(found.Username)
	}
	return number
}

// on names the programs that ran on the stack. It does not count those in a namespace.
func (p Programs) on(guests bool) string {
	switch {
	case guests && p.On == 0:
		return "programs in a namespace"
	case guests:
		return "programs in a namespace, " + count(p.On, "program")
	}
	return count(p.On, "program")
}

// outside names the programs that ran on the host's stack: "" if there was none.
func (p Programs) outside() string {
	all := p.Unnamed
	var named []string
	for _, o := range p.Outside {
		all += o.Times
		if len(named) == namedOutside {
			continue
		}
		why := cmp.Or(whyOutside[o.Why], o.Why)
		if o.Times > 1 {
			why += ", " + times(o.Times)
		}
		named = append(named, fmt.Sprintf("%s (%s)", plain.Text(o.Program), why))
	}
	if all == 0 {
		return ""
	}
	if len(p.Outside) > namedOutside || p.Unnamed > 0 {
		named = append(named, "and others (--json)")
	}
	return fmt.Sprintf("%s on the host's stack: %s", count(all, "program"), strings.Join(named, ", "))
}

// JSON returns the summary as JSON, in one line.
func (s Summary) JSON() string {
	s.Version = 1
	if s.Outside == nil {
		s.Outside = []Outside{}
	}
	if s.Unconfined == nil {
		s.Unconfined = []string{}
	}
	if s.UntracedWhy == nil {
		s.UntracedWhy = []string{}
	}
	text, _ := json.Marshal(s) // it cannot fail with these types
	return string(text)
}

// NoSummary returns the JSON to write if there is no summary.
func NoSummary(err error) string {
	text, _ := json.Marshal(map[string]any{"version": 1, "error": err.Error()})
	return string(text)
}

func words(keys []string, meaning map[string]string) string {
	var found []string
	for _, k := range keys {
		found = append(found, cmp.Or(meaning[k], k))
	}
	return strings.Join(found, "; ")
}

func count(n uint64, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
