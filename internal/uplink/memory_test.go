// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"slices"
	"testing"

	"guise/internal/plan"
)

// What a follower notes, the next one reads, behind the config in one file.
func TestWhatIsNotedIsReadByTheNextOne(t *testing.T) {
	c := &Config{MPTCP: true, Journal: "/run/guise/x.json", Ports: "61000-65535", Uplinks: []*plan.Uplink{{Name: "wlan0", Way: plan.Share}}}
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := &memory{file}
	if m.lines() != nil || m.get(opened) != 0 {
		t.Error("there are notes before any was made")
	}
	lines := []line{{text: "link wlan0 packet", path: 0}, {text: "address wlan0 192.0.2.2/24", path: 0}}
	for n := range 3 {
		m.note(lines[:1+n%2])
		if got := m.lines(); !slices.Equal(got, lines[:1+n%2]) {
			t.Errorf("noted %v, read %v", lines[:1+n%2], got)
		}
	}
	m.set(opened, 41)
	m.set(usedBytes+7, 1<<40)
	if m.get(opened) != 41 || m.get(usedBytes+7) != 1<<40 {
		t.Errorf("read %d and %d", m.get(opened), m.get(usedBytes+7))
	}
	read, err := readConfig(file)
	if err != nil || read.Journal != c.Journal || read.Ports != c.Ports || len(read.Uplinks) != 1 || read.Uplinks[0].Name != "wlan0" {
		t.Errorf("read %+v, %v", read, err)
	}
}

// Notes that a killed follower did not write whole, or that another program has changed, are none.
func FuzzNotes(f *testing.F) {
	f.Add([]byte(`[{"text":"link x packet","path":0}]`), uint64(37), uint64(1))
	f.Add([]byte(`[{"text":"link","path":0}]`), uint64(26), uint64(1))
	f.Add([]byte(`[{"text":"link x packet","path":-1}]`), uint64(36), uint64(1))
	f.Add([]byte(`[{"text":"","path":-1}]`), uint64(1<<63), uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, size, turn uint64) {
		file, err := (&Config{}).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		m := &memory{file}
		m.set((linesOffset-memoryOffset+int(turn%2)*linesRoom)/8, size)
		file.WriteAt(text, linesOffset+int64(turn%2)*linesRoom+8)
		m.set(linesTurn, turn)
		follower := &follower{memory: m, stack: newModel(t), paths: []*path{newPath(&plan.Uplink{Name: "x"}, 0)}}
		if err := follower.begin(); err != nil {
			t.Error(err)
		}
		for _, s := range steps(follower.have, nil) {
			s.line.undo()
		}
	})
}

func TestWhatIsToldIsWhatLsShows(t *testing.T) {
	got := Told(map[string]string{"file": "/x", "uplink.wlan0": "lost: it has no carrier", "uplink.eth0": "usable", "uplink.\x1b[1m": "\x1b: \x1b"})
	if len(got) != 3 || got[1] != (Status{"eth0", Usable, ""}) || got[2] != (Status{"wlan0", Lost, "it has no carrier"}) {
		t.Errorf("got %+v", got)
	}
	for _, s := range got {
		if s.Name[0] == 0x1b || s.State == "\x1b" || s.Why == "\x1b" {
			t.Errorf("a terminal would obey %q", s)
		}
	}
}
