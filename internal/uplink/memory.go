// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"encoding/binary"
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
