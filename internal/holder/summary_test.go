// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// That nothing escaped is said only where it is known.
func TestNothingEscapedIsSaidOnlyWhereAllIsKnown(t *testing.T) {
	const none = "0 sockets escaped"
	on, nobody := Programs{On: 2}, uint32(4294967294) // a number that is no user's
	static := Programs{On: 2, Outside: []Outside{{"/bin/x", "static", 3}}}
	for _, c := range []struct {
		s     Summary
		parts []string
		none  bool
	}{
		{Summary{Programs: on}, []string{"bbr on the wire, 2 programs, 4 connections, " + none + " to the host"}, true},
		{Summary{Programs: on, Reach: ReachNone}, []string{"bbr within the stack (no link), "}, true},
		{Summary{Programs: on, Reach: ReachPasst}, []string{"bbr as far as passt, "}, true},
		{Summary{Guests: true}, []string{", programs in a namespace, 4 connections, " + none}, true},
		{Summary{Guests: true, Programs: on}, []string{"programs in a namespace, 2 programs, "}, true},
		{Summary{Programs: on, Members: 3, Served: 2}, []string{"2 programs, 1 member direct and 2 served, 4 connections"}, true},
		{Summary{Programs: on, Members: 3, Served: 2, ServedUser: &nobody},
			[]string{none, "; most members are served because they are 4294967294's, and the stack is another user's: --user 4294967294 makes them direct"}, true},
		{Summary{Programs: on, Members: 3, Served: 2, ServedUser: new(uint32)}, []string{"1 member direct and 2 served, 4 connections, 0 sockets escaped to the host"}, true},
		{Summary{Programs: on, Members: 3, Served: 3, ServedUser: new(uint32)}, []string{"0 members direct and 3 served, 4 connections, 0 sockets escaped to the host"}, true},
		{Summary{Programs: on, Members: 3}, []string{"2 programs, 4 connections"}, true},
		{Summary{Programs: static}, []string{"2 programs, 4 connections; 3 programs on the host's stack: /bin/x (statically linked, 3 times)"}, false},
		{Summary{Programs: static, Escaped: 1}, []string{"1 socket escaped to the host; 3 programs"}, false},
		{Summary{Programs: Programs{Unnamed: 1}}, []string{"0 programs", "1 program on the host's stack: and others (--json)"}, false},
		{Summary{Programs: Programs{Outside: []Outside{{"/a", "go", 1}, {"/b", "off", 1}, {"/c", "new", 1}, {"/d", "go", 1}}}},
			[]string{"4 programs on the host's stack: /a (written in Go), /b (GUISE_PRELOAD=off), /c (new), and others (--json)"}, false},
		{Summary{Programs: on, Untrapped: 1}, []string{"4 connections; whether sockets escaped by raw system calls is not known: these were not seen, once ("}, false},
		{Summary{Programs: on, Untrapped: 2, Escaped: 2}, []string{"2 sockets escaped to the host; whether", "2 times"}, false},
		{Summary{Programs: on, Untraced: 2, UntracedWhy: []string{"occupied", "user"}},
			[]string{none, "2 processes could not be traced (another program traced it, as strace or gdb; another user's)"}, true},
		{Summary{Programs: on, Untraced: 1, UntracedWhy: []string{"refused"}}, []string{"1 process could not", "guise doctor says why"}, true},
		{Summary{Programs: on, Unconfined: []string{"namespaces", "calls"}},
			[]string{none, "had to do without namespaces of its own; a filter of system calls (guise doctor)"}, true},
		{Summary{Lost: true}, []string{"the stack was lost"}, false},
		{Summary{Cut: true}, []string{"taken down"}, false},
	} {
		c.s.CC, c.s.Connections = "bbr", 4
		text := c.s.String()
		for _, part := range c.parts {
			if !strings.Contains(text, part) {
				t.Errorf("%+v: %q has no %q", c.s, text, part)
			}
		}
		if strings.Contains(text, none) != c.none {
			t.Errorf("%+v: %q", c.s, text)
		}
		if strings.Contains(text, "--user") != (c.s.ServedUser != nil && *c.s.ServedUser != 0 && c.s.Served < c.s.Members) {
			t.Errorf("%+v: %q", c.s, text)
		}
		if c.none && strings.Contains(text, "doctor") != (len(c.s.UntracedWhy) == 1 || len(c.s.Unconfined) > 0) {
			t.Errorf("%+v: what does doctor know of it? %q", c.s, text)
		}
	}
}

// For machines there is always one line, an object, whose lists are lists.
func TestSummaryAsJSON(t *testing.T) {
	var got map[string]any
	text := Summary{CC: "bbr", Reach: ReachNone, Programs: Programs{On: 2}}.JSON()
	if err := json.Unmarshal([]byte(text), &got); err != nil || strings.Contains(text, "\n") {
		t.Fatalf("%v: %s", err, text)
	}
	if got["programs"] != 2.0 || got["reach"] != "none" || got["version"] != 1.0 {
		t.Errorf("got %s", text)
	}
	for _, key := range []string{"outside", "untraced_why"} {
		if list, ok := got[key].([]any); !ok || len(list) > 0 {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	got = nil
	if err := json.Unmarshal([]byte(NoSummary(errors.New(`a "reason"`))), &got); err != nil || got["error"] != `a "reason"` {
		t.Errorf("got %v, %v", got, err)
	}
}
