// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"encoding/binary"
	"encoding/json"
	"os"

	"guise/internal/plan"
)

// memory is what a follower must know of earlier ones of the same stack: numbers of 8 bytes each, behind
// the config in its memory file. A follower that is killed while it writes leaves the old number or the new.
type memory struct{ file *os.File }

const memoryOffset = 64 << 10

// The numbers.
const (
	usedBytes = 0               // and one for each uplink: what earlier links of it have carried
	opened    = plan.MaxUplinks // how many links were opened
)

// get returns a number; one that was never written is 0.
func (m *memory) get(which int) uint64 {
	b := make([]byte, 8)
	if n, err := m.file.ReadAt(b, memoryOffset+int64(8*which)); err != nil || n != len(b) {
		return 0
	}
	return binary.NativeEndian.Uint64(b)
}

func (m *memory) set(which int, value uint64) {
	m.file.WriteAt(binary.NativeEndian.AppendUint64(nil, value), memoryOffset+int64(8*which))
}

// The lines that the stack has are noted in one of two places in turn; a number says which is the last that
// was written whole.
const (
	linesOffset = 128 << 10
	linesRoom   = 128 << 10
	linesTurn   = opened + 1
)

type noted struct {
	Text string `json:"text"`
	Path int    `json:"path"`
}

func (m *memory) note(lines []line) {
	all := make([]noted, len(lines))
	for i, l := range lines {
		all[i] = noted{l.text, l.path}
	}
	text, err := json.Marshal(all)
	if err != nil || len(text)+8 > linesRoom {
		return
	}
	turn := m.get(linesTurn) + 1
	text = append(binary.NativeEndian.AppendUint64(nil, uint64(len(text))), text...)
	if _, err := m.file.WriteAt(text, linesOffset+int64(turn%2)*linesRoom); err == nil {
		m.set(linesTurn, turn)
	}
}

// lines are those that were noted last; none at the first start.
func (m *memory) lines() []line {
	turn := m.get(linesTurn)
	text := make([]byte, linesRoom)
	n, _ := m.file.ReadAt(text, linesOffset+int64(turn%2)*linesRoom)
	if turn == 0 || n < 8 {
		return nil
	}
	size := binary.NativeEndian.Uint64(text)
	var all []noted
	if size > uint64(n-8) || json.Unmarshal(text[8:8+size], &all) != nil {
		return nil
	}
	lines := make([]line, len(all))
	for i, l := range all {
		if lines[i] = (line{text: l.Text, path: l.Path}); !lines[i].whole() {
			return nil
		}
	}
	return lines
}
