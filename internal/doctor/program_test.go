// SPDX-License-Identifier: GPL-2.0-only

package doctor

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRawCallsAreFoundWhereTheirNumberIsLoaded(t *testing.T) {
	for name, c := range map[string]struct {
		machine elf.Machine
		text    []byte
		want    []int
	}{
		"mov; syscall":           {elf.EM_X86_64, []byte{0xb8, 41, 0, 0, 0, 0x0f, 0x05}, []int{41}},
		"mov; others; syscall":   {elf.EM_X86_64, []byte{0xb8, 0x20, 1, 0, 0, 0x31, 0xd2, 0x90, 0x0f, 0x05, 0xc3}, []int{288}},
		"two":                    {elf.EM_X86_64, []byte{0xb8, 41, 0, 0, 0, 0x0f, 0x05, 0xb8, 42, 0, 0, 0, 0x0f, 0x05}, []int{41, 42}},
		"a number from far away": {elf.EM_X86_64, append([]byte{0xb8, 41, 0, 0, 0}, append(make([]byte, 40), 0x0f, 0x05)...), nil},
		"no number of a call":    {elf.EM_X86_64, []byte{0xb8, 0, 0, 0, 9, 0x0f, 0x05}, nil},
		"cut":                    {elf.EM_X86_64, []byte{0xb8, 0x0f, 0x05}, nil},
		"arm64":                  {elf.EM_AARCH64, []byte{0xc8, 0x18, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, []int{198}},
		"nothing":                {elf.EM_X86_64, nil, nil},
		"another processor":      {elf.EM_RISCV, []byte{0xb8, 41, 0, 0, 0, 0x0f, 0x05}, nil},
	} {
		if got := rawCalls(c.machine, c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// compiled is a program of that source.
func compiled(t *testing.T, source string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	words := append([]string{"-o", program, "-x", "c", "-"}, flags...)
	cmd := exec.Command("cc", words...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("skipped: takes a C compiler: %v %s", err, out)
	}
	return program
}

func finding(p *Program, name string) (Finding, bool) {
	i := slices.IndexFunc(p.Findings, func(f Finding) bool { return f.Name == name })
	if i < 0 {
		return Finding{}, false
	}
	return p.Findings[i], true
}

func TestProgramThatCallsLibcJoins(t *testing.T) {
	program := compiled(t, "int main(void) { return 0; }")
	p := ExamineProgram(program, program, "", true)
	if p.Way != WayPreload || len(p.Findings) != 1 {
		t.Errorf("got %+v", p)
	}
}

func TestWhatCouldEscapeIsNamed(t *testing.T) {
	if _, err := os.Stat("/lib64/ld-linux-x86-64.so.2"); err != nil {
		t.Skip("skipped: the program is in x86-64's assembler")
	}
	program := compiled(t, `
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdlib.h>
		int main(void)
		{
			long fd;
			__asm__ volatile("syscall" : "=a"(fd) : "a"(41), "D"(2), "S"(1), "d"(0) : "rcx", "r11", "memory");
			return dlmopen(LM_ID_NEWLM, "x", RTLD_NOW) != 0 || system("true") || fd < 0;
		}`)
	p := ExamineProgram(program, program, "", true)
	for name, words := range map[string]string{"raw calls": "socket", "dlmopen": "past what is preloaded", "children": "can start programs"} {
		if f, ok := finding(p, name); !ok || f.Status != Note || !strings.Contains(f.Text, words) {
			t.Errorf("%s: %+v", name, p.Findings)
		}
	}
	if f, _ := finding(ExamineProgram(program, program, "", false), "raw calls"); f.Status != Bad || !strings.Contains(f.Text, "the host's") {
		t.Errorf("where they are not seen: %+v", f)
	}
}

func TestLibraryThatIsMissingIsNamed(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libnosuch.so")
	if out, err := exec.Command("cc", "-shared", "-o", library, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Skipf("skipped: takes a C compiler: %v %s", err, out)
	}
	program := compiled(t, "int main(void) { return 0; }", "-x", "none", "-Wl,--no-as-needed", library)
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	p := ExamineProgram(program, program, "", true)
	if f, ok := finding(p, "libraries"); !ok || f.Status != Bad || !strings.Contains(f.Text, "libnosuch.so") {
		t.Errorf("got %+v", p.Findings)
	}
}

// As java is: /usr/bin/java leads to a file whose libraries lie beside it.
func TestLibraryBesideTheProgramIsFoundThroughALink(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libbeside.so")
	if out, err := exec.Command("cc", "-shared", "-Wl,-soname,libbeside.so", "-o", library, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Skipf("skipped: takes a C compiler: %v %s", err, out)
	}
	program := filepath.Join(dir, "program")
	built := compiled(t, "int main(void) { return 0; }", "-x", "none", "-Wl,--no-as-needed", library, "-Wl,-rpath,$ORIGIN")
	text, err := os.ReadFile(built)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	first, second := filepath.Join(links, "first"), filepath.Join(links, "second")
	if err := errors.Join(os.Symlink(program, first), os.Symlink("first", second)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, first, second} {
		p := ExamineProgram(path, path, "", true)
		if f, ok := finding(p, "libraries"); ok {
			t.Errorf("%s: %+v", path, f)
		}
		if f, _ := finding(p, "looked at"); !strings.Contains(f.Text, "libbeside.so") {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

// The loader of a program is what the program says.
func TestNothingThatAnotherUserHasMadeIsExecuted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: giving a file to another user takes root")
	}
	const stranger = 65534
	mark := filepath.Join(t.TempDir(), "executed")
	// Without a loader of its own, which would only list libraries.
	loader := compiled(t, `#include <fcntl.h>
		int main(void) { return open(MARK, O_CREAT | O_WRONLY, 0600) < 0; }`, "-static", `-DMARK="`+mark+`"`)
	program := compiled(t, "int main(void) { return 0; }", "-Wl,--dynamic-linker="+loader)
	libraries(program)
	if _, err := os.Stat(mark); err != nil {
		t.Fatalf("this loader leaves no mark: %v", err)
	}
	for _, c := range []struct {
		owner int
		mode  os.FileMode
		word  string
	}{{stranger, 0o755, "belongs to user 65534"}, {0, 0o775, "other users may write it"}} {
		if err := errors.Join(os.RemoveAll(mark), os.Chown(program, c.owner, -1), os.Chmod(program, c.mode)); err != nil {
			t.Fatal(err)
		}
		got := ExamineProgram(program, program, "", true)
		if f, found := finding(got, "libraries"); !found || !strings.Contains(f.Text, c.word) {
			t.Errorf("%+v", got)
		}
		if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
			t.Error("the loader was executed")
		}
	}
}
