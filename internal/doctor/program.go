// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/guests"
)

// Ways of a program to its stack.
const (
	WayPreload = "preload" // it joins the stack, by libguise-preload.so
	WayTun     = "tun"     // it is a guest, in a namespace whose only way out is the stack
	WayRefused = "refused"
)

// Program has what a run of a program would get.
type Program struct {
	Version  int       `json:"version"`
	Program  string    `json:"program"`
	Way      string    `json:"way"`
	Text     string    `json:"text"`
	Findings []Finding `json:"findings"`
}

func (p *Program) find(name, status, next, text string, args ...any) {
	p.Findings = append(p.Findings, Finding{name, status, fmt.Sprintf(text, args...), next})
}

// ExamineProgram finds the way of the program at path to its stack. whyNot is why it
// cannot be preloaded, or "". binary is the file that would be loaded: for a script, its
// interpreter. seen is whether guise would see raw system calls.
func ExamineProgram(path, binary, whyNot string, seen bool) *Program {
	p := &Program{Version: 1, Program: path}
	if binary != path {
		p.find("script", OK, "", "%s is a script, which %s runs", path, binary)
	}
	if whyNot == "" {
		p.Way = WayPreload
		p.Text = fmt.Sprintf("guise run %s: it joins its stack (preload)", path)
		p.examineObjects(binary, seen)
		return p
	}
	p.find("preload", Note, "", "%s, so it cannot be preloaded", whyNot)
	if err := guests.Try(); err != nil {
		p.find("namespace", Bad, "guise doctor says what this machine allows; root may always make one", "nor can it be put into "+
			"a network namespace of its own: %v", err)
		p.Way, p.Text = WayRefused, fmt.Sprintf("guise run %s: refused, with status 126", path)
		return p
	}
	p.Way = WayTun
	p.find("namespace", OK, "", "it gets a network namespace of its own, whose only way out is the stack; nothing escapes from there")
	p.find("setuid", Note, "", "programs that would gain privileges (sudo, su) do not, in that namespace, unless root starts them")
	p.Text = fmt.Sprintf("guise run %s: in a network namespace of its own (tun); its TCP ends at the stack and is carried on by the stack's own", path)
	return p
}

// object has what is examined of a program or a library.
type object struct {
	path    string
	imports []string
	raw     []int // numbers of the raw system calls in it
}

// examineObjects examines the program and the libraries that are loaded with it, except the
// C library: guise sees the system calls of that one.
func (p *Program) examineObjects(binary string, seen bool) {
	if err := access.TrustedFile(binary); err != nil && !errors.Is(err, fs.ErrPermission) {
		p.find("libraries", Note, "guise doctor as its owner", "not looked at, because the loader that %s names would be executed, and %v", binary, err)
		return
	}
	loaded, missing := libraries(binary)
	for _, name := range missing {
		p.find("libraries", Bad, "install what has it, or name its folder in $LD_LIBRARY_PATH", "%s is not found, so the program does not start", name)
	}
	var names []string
	for _, path := range append([]string{binary}, loaded...) {
		if isLibc(path) {
			continue
		}
		o, err := openObject(path)
		if err != nil {
			continue // the loader accepts it, or reports what is wrong
		}
		names = append(names, filepath.Base(path))
		p.examineObject(o, seen)
	}
	p.find("looked at", OK, "", "%s; what it loads later (dlopen) was not looked at", strings.Join(names, ", "))
}

func (p *Program) examineObject(o *object, seen bool) {
	base := filepath.Base(o.path)
	if calls := networkCalls(o.raw); len(calls) > 0 {
		which := fmt.Sprintf("%s makes system calls of its own, not libc's: %s", base, strings.Join(calls, ", "))
		if seen {
			p.find("raw calls", Note, "", "%s. They are seen, and go to the stack; each costs 2 us more", which)
		} else {
			p.find("raw calls", Bad, "guise run --mode tun keeps them from escaping", "%s. They are not seen here, and would be the host's", which)
		}
	}
	if slices.ContainsFunc(o.imports, func(s string) bool { return strings.HasPrefix(s, "io_uring_") }) || slices.Contains(o.raw, ioUringSetup) {
		p.find("io_uring", Note, "", "%s uses io_uring, which answers ENOSYS on a stack; programs then use other calls, or end", base)
	}
	if slices.Contains(o.imports, "dlmopen") {
		p.find("dlmopen", Note, "guise run --mode tun keeps it from escaping", "%s can load libraries past what is preloaded; their sockets would be the host's", base)
	}
	if slices.ContainsFunc(o.imports, startsPrograms) {
		p.find("children", Note, "guise doctor CMD for each; guise run --mode tun takes all of them",
			"%s can start programs: one that cannot be preloaded (static, Go, setuid) would be on the host's stack, which guise run then says", base)
	}
}

func startsPrograms(symbol string) bool {
	return strings.HasPrefix(symbol, "exec") || strings.HasPrefix(symbol, "posix_spawn") ||
		slices.Contains([]string{"fexecve", "system", "popen"}, symbol)
}

// libraries returns the libraries that the loader would load, from the loader's own list.
func libraries(path string) (loaded, missing []string) {
	loader := loaderOf(path)
	if loader == "" {
		return nil, nil
	}
	// $ORIGIN is the folder of the real file, not of a symbolic link to it (/usr/bin/java).
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	cmd := exec.Command(loader, path)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_PRELOAD=") })
	cmd.Env = append(cmd.Env, "LD_TRACE_LOADED_OBJECTS=1") // as ldd does: nothing is executed
	listing, _ := cmd.Output()
	for line := range strings.Lines(string(listing)) {
		name, rest, found := strings.Cut(strings.TrimSpace(line), " => ")
		if !found && strings.HasPrefix(name, "/") { // a library named by its path, or the loader
			rest, found = name, true
		}
		target, _, _ := strings.Cut(rest, " (")
		switch {
		case !found:
		case strings.HasPrefix(target, "not found"):
			missing = append(missing, name)
		default:
			loaded = append(loaded, target)
		}
	}
	return loaded, missing
}

func loaderOf(path string) string {
	program, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer program.Close()
	if section := program.Section(".interp"); section != nil {
		if text, err := section.Data(); err == nil {
			return strings.TrimRight(string(text), "\x00")
		}
	}
	return ""
}

// isLibc reports whether a library is a part of the C library.
func isLibc(path string) bool {
	base := filepath.Base(path)
	for _, part := range []string{"libc.", "libpthread.", "libresolv.", "libdl.", "librt.", "libm.", "libnss_", "ld-linux", "libanl.", "libutil."} {
		if strings.HasPrefix(base, part) {
			return true
		}
	}
	return false
}

func openObject(path string) (*object, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	o := &object{path: path}
	symbols, _ := file.ImportedSymbols()
	for _, s := range symbols {
		o.imports = append(o.imports, s.Name)
	}
	for _, section := range file.Sections {
		if section.Type != elf.SHT_PROGBITS || section.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		if text, err := section.Data(); err == nil {
			o.raw = append(o.raw, rawCalls(file.Machine, text)...)
		}
	}
	return o, nil
}

// rawCalls returns the numbers of the raw system calls in code. It finds a number that is
// loaded shortly before the instruction; it does not find one that a function gets as an
// argument.
func rawCalls(machine elf.Machine, text []byte) (numbers []int) {
	switch machine {
	case elf.EM_X86_64:
		const near = 24
		for at := 0; ; at += 2 {
			next := bytes.Index(text[at:], []byte{0x0f, 0x05}) // syscall
			if next < 0 {
				return numbers
			}
			at += next
			window := text[max(0, at-near):at]
			if load := bytes.LastIndexByte(window, 0xb8); load >= 0 && load+5 <= len(window) { // mov $N, %eax
				if n := binary.LittleEndian.Uint32(window[load+1:]); n < 1024 {
					numbers = append(numbers, int(n))
				}
			}
		}
	case elf.EM_AARCH64:
		for at := 0; at+4 <= len(text); at += 4 {
			if binary.LittleEndian.Uint32(text[at:]) != 0xd4000001 { // svc #0
				continue
			}
			for back := at - 4; back >= max(0, at-32); back -= 4 {
				// mov x8 or w8, #N
				if word := binary.LittleEndian.Uint32(text[back:]); word&0x7fe0001f == 0x52800008 {
					numbers = append(numbers, int(word>>5&0xffff))
					break
				}
			}
		}
	}
	return numbers
}
