// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func run(t *testing.T, args ...string) *guise {
	t.Helper()
	return newGuise(t, append([]string{"run", "--link", "none"}, args...)...)
}

func TestExitStatusIsTheProgramsOwn(t *testing.T) {
	for status, script := range map[int]string{0: "exit 0", 7: "exit 7", -15: "kill -TERM $$", -9: "kill -KILL $$"} {
		if got := run(t, "--", "sh", "-c", script).status(t); got != status {
			t.Errorf("%s: status %d", script, got)
		}
		want := status
		if want < 0 {
			want = 128 - want
		}
		g := run(t, "-v", "--", "sh", "-c", script)
		g.says(t, want, "guise: westwood within the stack (no link), 1 program, 3 connections, 0 sockets escaped to the host\n")
		if g.stdout.Len() > 0 {
			t.Errorf("on the program's stdout: %q", g.stdout.String())
		}
	}
}

func TestGuiseBecomesTheProgram(t *testing.T) {
	g := run(t, "--", "sh", "-c", "echo $$; cat; cat /proc/$$/task/$$/children")
	g.Stdin = strings.NewReader("from stdin\n")
	if status := g.status(t); status != 0 {
		t.Errorf("status %d: %s", status, g.stderr.String())
	}
	// The cat that asks is the only child: the holder has another parent.
	words := strings.Fields(g.stdout.String())
	if len(words) != 4 || words[0] != fmt.Sprint(g.Process.Pid) || words[1] != "from" {
		t.Errorf("pid %d wrote %q", g.Process.Pid, g.stdout.String())
	}
	if g.stderr.Len() > 0 {
		t.Errorf("it is not quiet: %q", g.stderr.String())
	}
}

func TestEnvironmentOfTheProgram(t *testing.T) {
	g := run(t, "--mptcp", "--", "sh", "-c", `echo $LD_PRELOAD $GUISE_STACK $GUISE_MPTCP; readlink /proc/$$/fd/$GUISE_STACK`)
	g.Env = append(g.Env, "LD_PRELOAD=libc.so.6 /old/libguise-preload.so", "GUISE_STACK=3")
	if status := g.status(t); status != 0 {
		t.Errorf("status %d: %s", status, g.stderr.String())
	}
	words := strings.Fields(g.stdout.String())
	if len(words) != 4 || words[0] != "libc.so.6:"+g.dir+"/libguise-preload.so" || words[2] != "1" || !strings.HasPrefix(words[3], "socket:") {
		t.Errorf("got %q", words)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	// Above what most programs may have, below libguise's own.
	if n, err := strconv.Atoi(words[1]); err != nil || (limit.Max >= 4096 && n != 4096-256-1) {
		t.Errorf("the ticket is descriptor %s", words[1])
	}
	if plan := g.plan(t); !strings.Contains(plan, "sysctl net.mptcp.enabled 1\n") {
		t.Errorf("the plan is %q", plan)
	}
}

func TestTicketFitsUnderASmallLimit(t *testing.T) {
	g := run(t, "--", "sh", "-c", `echo $GUISE_STACK; readlink /proc/$$/fd/$GUISE_STACK`)
	g.Args = append([]string{"sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, g.Path}, g.Args[1:]...)
	g.Path = "/bin/sh"
	if status := g.status(t); status != 0 {
		t.Errorf("status %d: %s", status, g.stderr.String())
	}
	if words := strings.Fields(g.stdout.String()); len(words) != 2 || words[0] != "31" || !strings.HasPrefix(words[1], "socket:") {
		t.Errorf("got %q", words)
	}
}

// The program has what it was given and the ticket, and nothing of guise's.
func TestDescriptorsOfTheUserReachTheProgram(t *testing.T) {
	script := []string{"sh", "-c", "cat <&3; echo $GUISE_STACK; ls /proc/$$/fd"}
	native := exec.Command(script[0], script[1:]...)
	descriptors := func(cmd *exec.Cmd, run func() (string, error)) []string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		cmd.ExtraFiles = []*os.File{r}
		fmt.Fprintln(w, "three")
		w.Close()
		out, err := run()
		words := strings.Fields(out)
		if err != nil || len(words) == 0 || words[0] != "three" {
			t.Fatalf("%v: %q", err, out)
		}
		return words[1:]
	}
	want := descriptors(native, func() (string, error) { out, err := native.Output(); return string(out), err })
	for _, flag := range []string{"--mptcp", "-v"} {
		g := run(t, append([]string{flag, "--"}, script...)...)
		got := descriptors(g.Cmd, func() (string, error) { g.status(t); return g.stdout.String(), nil })
		ticket := got[0]
		got = slices.DeleteFunc(got[1:], func(fd string) bool { return fd == ticket })
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", flag, got, want)
		}
	}
}

// goProgram builds a Go program, with cgo or without.
func goProgram(t *testing.T, dir, cgo, source string) string {
	t.Helper()
	path := filepath.Join(dir, "go-"+cgo)
	if err := os.WriteFile(path+".go", []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", path, path+".go")
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestProgramsThatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run(t, "--", "guise-no-such-program").says(t, 127, "guise-no-such-program", "$PATH")
	run(t, "--", dir+"/none").says(t, 127, dir+"/none")
	run(t, "--", file("plain", "", 0o644)).says(t, 126, "permission denied")
	run(t, "--", dir).says(t, 126, "is a directory")
	run(t, "--", file("lost", "#!/no/such/interpreter\n", 0o755)).says(t, 127, "lost")
	run(t, "-v", "--", dir+"/lost").says(t, 127, "lost")
	run(t, "--", file("script", "exit 9\n", 0o755)).says(t, 9)
	run(t, "-v", "--", dir+"/script").says(t, 9)

	pure := goProgram(t, dir, "0", "package main\n\nfunc main() {}\n")
	run(t, "--mode", "preload", "--", pure).says(t, 126, "is written in Go")
	run(t, "--mode", "preload", "--", file("wrapped", "#! "+pure+" x\n", 0o755)).says(t, 126, "is written in Go")
	cgo := goProgram(t, dir, "1", "package main\n\nimport \"C\"\n\nfunc main() {}\n")
	if rawCallsAreSeen() {
		run(t, "--", cgo).says(t, 0)
	} else {
		run(t, "--mode", "preload", "--", cgo).says(t, 126, "is written in Go")
	}
	if out, err := exec.Command("cc", "-static", "-nostdlib", "-Wl,-e,0", "-o", dir+"/static", "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run(t, "--mode", "preload", "--", dir+"/static").says(t, 126, "is statically linked")
}

func TestBadInputIsNamedWithWhatIsValid(t *testing.T) {
	for _, c := range []struct {
		parts []string
		args  []string
	}{
		{[]string{"--ccc", "--cc?"}, []string{"--ccc", "x", "--", "true"}},
		{[]string{"-x", "--verbose"}, []string{"-x", "--", "true"}},
		{[]string{"--cc", "needs an argument"}, []string{"--cc"}},
		{[]string{"--cc", "westwod", "westwood"}, []string{"--cc", "westwod", "--", "true"}},
		{[]string{"--cc", "lia", "--extension lia"}, []string{"--cc", "lia", "--", "true"}},
		{[]string{"--sysctl", "lowrtt", "--extension lia"}, []string{"--sysctl", "net.mptcp.scheduler=lowrtt", "--", "true"}},
		{[]string{"--extension", "no kernel image has", "mote", "there are lia", "make EXTENSIONS"}, []string{"--extension", "mote", "--", "true"}},
		{[]string{"--link", "wifi", "tap:fd=N", "none"}, []string{"--link", "wifi", "--", "true"}},
		{[]string{"--sysctl", "KEY=VALUE"}, []string{"--sysctl", "net.ipv4.tcp_sack", "--", "true"}},
		{[]string{"--ip", "192.0.2.2/24"}, []string{"--ip", "192.0.2.2", "--", "true"}},
		{[]string{"--gateway", "gw"}, []string{"--gateway", "gw", "--", "true"}},
		{[]string{"--dns", "ns", "192.0.2.53"}, []string{"--dns", "ns", "--", "true"}},
		{[]string{"--offload", "maybe", "off"}, []string{"--offload", "maybe", "--", "true"}},
		{[]string{"--memory", "1M", "32M"}, []string{"--memory", "1M", "--", "true"}},
		{[]string{"--name", "a/b"}, []string{"--name", "a/b", "--", "true"}},
		{[]string{"--link none"}, []string{"--link", "none", "--netem", "delay 1ms", "--", "true"}},
		{[]string{"descriptor 77"}, []string{"--link", "tap:fd=77", "--", "true"}},
		{[]string{"no program", "CMD"}, nil},
	} {
		newGuise(t, append([]string{"run"}, c.args...)...).says(t, 2, c.parts...)
	}
	newGuise(t, "rnu").says(t, 2, `"rnu"`, "run?")
	newGuise(t, "path", "a").says(t, 2, "two")
	newGuise(t, "path", "a", "b", "--").says(t, 2, "no program")
	newGuise(t, "path", "--delay", "20", "a", "b").says(t, 2, "--delay", "20ms")
	newGuise(t, "path", "--limit", "0", "a", "b").says(t, 2, "--limit")
	newGuise(t, "path", "tap:a", "tap:a").says(t, 2, "both ends")
	newGuise(t, "path", "--ready-fd", "77", "tap:a", "tap:b").says(t, 2, "77")
	newGuise(t, "path", "guise-no-a", "guise-no-b").says(t, 2, "guise-no-a", "ip netns add")
}

func TestWhatTheHolderRefusesIsNamedAsTheUserWroteIt(t *testing.T) {
	g := run(t, "--sysctl", "net.ipv4.tcp_sac=0", "--", "true")
	g.Env = append(g.Env, "FAKE_ERROR=tcp_sac")
	g.says(t, 2, "--sysctl net.ipv4.tcp_sac=0: tcp_sac cannot be\n")
	// What the user did not ask for is not the user's mistake.
	g = run(t, "--", "true")
	g.Env = append(g.Env, "FAKE_ERROR=boot")
	g.says(t, 125, "the stack could not be built: boot cannot be")
}

func TestMissingPartsAreNamed(t *testing.T) {
	g := run(t, "--", "true")
	os.Remove(g.dir + "/guise-holder")
	g.says(t, 125, "guise-holder is missing", g.dir, "$GUISE_LIBDIR")
	g = run(t, "--", "true")
	os.Remove(g.dir + "/libguise-preload.so")
	g.says(t, 125, "libguise-preload.so is missing")
	newGuise(t, "bench").says(t, 125, "guise-bench is missing")
}

func TestPrintConfigNamesOriginsAndDoesNothing(t *testing.T) {
	g := newGuise(t, "run", "--link", "tap:tap0", "--ip", "192.0.2.2/24", "--cc", "bbr", "--user", "www-data", "--served", "--print-config", "--", "x")
	if status := g.status(t); status != 0 {
		t.Errorf("status %d: %s", status, g.stderr.String())
	}
	out := strings.Join(strings.Fields(g.stdout.String()), " ")
	for _, part := range []string{"cc bbr # --cc", "memory 256M # default", "ip eth0 192.0.2.2/24 # --ip", "name x # the program's",
		"link eth0 tap fd=6", "kernel guise-kernel # default", "user www-data # --user", "served all programs # --served", "privileges all # default"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in %s", part, g.stdout.String())
		}
	}
	if _, err := os.Stat(g.dir + "/plan"); err == nil {
		t.Error("a holder was started")
	}
}

func TestExtensionChoosesTheImage(t *testing.T) {
	g := newGuise(t, "run", "--link", "none", "--extension", "lia", "--cc", "lia", "--print-config", "--", "x")
	if status := g.status(t); status != 0 {
		t.Errorf("status %d: %s", status, g.stderr.String())
	}
	for _, part := range []string{"guise-kernel-lia", "# --extension", "\nkernel guise-kernel-lia\nboot\n"} {
		if !strings.Contains(g.stdout.String(), part) {
			t.Errorf("no %q in %s", part, g.stdout.String())
		}
	}
}

func TestCompletionKnowsWhatTheChosenImageHas(t *testing.T) {
	for _, words := range [][]string{
		{"lia", "--extension", ""}, {"lia", "--extension", "lia", "--cc", ""}, {"westwood", "--cc", ""},
	} {
		g := newGuise(t, append([]string{"__complete", "run"}, words[1:]...)...)
		if g.status(t); !strings.Contains(g.stdout.String(), words[0]+"\n") {
			t.Errorf("%q completed to %q", words[1:], g.stdout.String())
		}
	}
}

// started waits until the program has written a line.
func started(t *testing.T, g *guise) *bufio.Reader {
	t.Helper()
	g.Stdout = nil
	pipe, err := g.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Process.Kill() })
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("it wrote %q, %v, and said %q", line, err, g.stderr.String())
	}
	return out
}

func TestSignalsReachTheProgram(t *testing.T) {
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR1} {
		// A session of its own has no terminal: what comes is not Ctrl-C.
		g := newGuise(t, "run", "--link", "none", "-v", "--", "sh", "-c",
			fmt.Sprintf("trap 'exit 40' %d; echo; while :; do sleep 0.01; done", int(s)))
		g.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		started(t, g)
		g.Process.Signal(s)
		if status := g.status(t); status != 40 {
			t.Errorf("%v: status %d", s, status)
		}
	}
}

// In a terminal, Ctrl-C goes to the whole foreground group: the program gets
// it once, though guise that stays beside it (-v) gets it as well.
func TestCtrlCInATerminalReachesTheProgramOnce(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("skipped: there are no terminals here: %v", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	g := run(t, "-v", "--", "sh", "-c",
		"trap 'n=$((n+1)); echo caught' INT; trap 'echo times $n; exit 5' TERM; echo; while :; do sleep 0.01; done")
	g.Stdin = slave
	g.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	out := started(t, g)
	fmt.Fprint(master, "\x03")
	if line, err := out.ReadString('\n'); line != "caught\n" {
		t.Fatalf("it wrote %q, %v", line, err)
	}
	g.Process.Signal(unix.SIGTERM)
	if line, err := out.ReadString('\n'); line != "times 1\n" {
		t.Errorf("it wrote %q, %v", line, err)
	}
	g.says(t, 5, "within the stack")
}

func TestKillOfGuiseIsKillOfTheProgram(t *testing.T) {
	g := run(t, "-v", "--", "sh", "-c", "echo; echo $$ >&2; exec sleep 1000")
	out := started(t, g)
	g.Process.Kill()
	// The program had the other end of the pipe.
	if _, err := out.ReadString('\n'); err == nil {
		t.Error("the program wrote another line")
	}
	g.Wait()
	within(t, "the holder ends", func() bool { return ended(g.holder(t)) })
}

func TestCtrlCIsTheProgramsAlone(t *testing.T) {
	// A new process group, as a shell gives each job: what the terminal would
	// send, all of the group gets. The holder is in another session.
	g := run(t, "--", "sh", "-c", "trap 'echo caught; exit 3' INT; echo; while :; do sleep 0.01; done")
	g.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out := started(t, g)
	pid := g.holder(t)
	if group, _ := unix.Getpgid(pid); group == g.Process.Pid {
		t.Error("the holder is in the program's process group")
	}
	unix.Kill(-g.Process.Pid, unix.SIGINT)
	if line, err := out.ReadString('\n'); line != "caught\n" {
		t.Errorf("it wrote %q, %v", line, err)
	}
	if status := g.status(t); status != 3 {
		t.Errorf("status %d", status)
	}
	within(t, "the holder ends", func() bool { return ended(pid) })
}

func TestMissingCapabilityIsNamedWithTheWayAround(t *testing.T) {
	// An ordinary user: without capabilities, whatever the user id is.
	g := newGuise(t, "run", "--link", "tap", "--", "true")
	if os.Geteuid() != 0 {
		g.says(t, 2, "CAP_NET_ADMIN", "sudo", "passt", "guise setup", "--link tap:IFNAME", "--link none")
		return
	}
	g.Args = append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all", g.Path}, g.Args[1:]...)
	path, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("skipped: giving up capabilities takes setpriv(1)")
	}
	g.Path = path
	g.says(t, 2, "CAP_NET_ADMIN", "sudo", "passt", "guise setup", "--link tap:IFNAME", "--link none")
}

func TestWithoutPasstThereIsNoSilentWay(t *testing.T) {
	g := newGuise(t, "run", "--link", "passt", "--", "/bin/true")
	g.Env = append(g.Env, "PATH=/nowhere")
	g.says(t, 125, "passt", "apt-get install passt", "guise setup", "--link none")
}

func TestStreamThatIsNoneIsRefused(t *testing.T) {
	newGuise(t, "run", "--link", "stream:/nowhere/at/all", "--", "true").says(t, 2, "/nowhere/at/all", "QEMU")
	newGuise(t, "run", "--link", "stream", "--", "true").says(t, 2, "--link", "stream:PATH, stream:fd=N for a Unix stream socket")
	newGuise(t, "run", "--link", "stream:fd=99", "--", "true").says(t, 2, "descriptor 99")
	newGuise(t, "run", "--link", "passt:/tmp/x", "--", "true").says(t, 2, "no form of passt", "stream:PATH")
}
