// SPDX-License-Identifier: GPL-2.0-only

// Package imagetest writes images for tests: they have nothing but a description.
package imagetest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"guise/internal/image"
)

// Net is what the image says that comes with guise.
const Net = "linux 6.12.1-guise\nconfig net\ndefault cubic\ncongestion reno\ncongestion bbr\ncongestion cubic\n" +
	"congestion westwood\nscheduler default\n"

// Write writes an image with this description.
func Write(t *testing.T, path, text string) {
	t.Helper()
	names := []byte("\x00.shstrtab\x00" + image.Section + "\x00")
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	const header, section = 64, 64
	at := uint64(header + 3*section)
	var out bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1,
			Ehsize: header, Shoff: header, Shentsize: section, Shnum: 3, Shstrndx: 1,
		},
		elf.Section64{},
		elf.Section64{Name: 1, Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))},
		elf.Section64{Name: 11, Type: uint32(elf.SHT_PROGBITS), Off: at + uint64(len(names)), Size: uint64(len(text))},
		names, []byte(text),
	} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
