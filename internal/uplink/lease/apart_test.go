// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// apart follows a device by a process apart; command is what that is.
func (w *network) apart(namespace *os.File, device string, command ...string) *states {
	w.Helper()
	if _, _, err := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); err != 0 && command[0] == Command {
		w.Skip("skipped: with cgo rights cannot be given up in all threads; guise is built without (CGO_ENABLED=0)")
	}
	port, err := Open(namespace, device)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	want := Want{Name: "up0", IPv4: true, IPv6: true}
	s := &states{network: w, device: device, channel: port.followApart(ctx, want, fast, command...), end: cancel, port: port}
	w.client = namespace
	w.Cleanup(s.finish)
	return s
}

// statuses are the lines of /proc of the processes apart that this process has started, by pid.
func statuses(t *testing.T) map[int]map[string]string {
	t.Helper()
	found := map[int]map[string]string{}
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	for _, path := range all {
		text, _ := os.ReadFile(path)
		for _, child := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if string(command) != "guise\x00"+Command+"\x00" {
				continue
			}
			lines := map[string]string{}
			text, _ := os.ReadFile("/proc/" + child + "/status")
			for _, line := range strings.Split(string(text), "\n") {
				key, value, _ := strings.Cut(line, ":")
				lines[key] = strings.TrimSpace(value)
			}
			var pid int
			fmt.Sscan(child, &pid)
			found[pid] = lines
		}
	}
	return found
}

func TestTheProcessApartHasNoRights(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	server := w.dnsmasq("srv0", range9, "--dhcp-option=option:dns-server,10.9.0.53")
	s := w.apart(client, "cl0", Command)
	got := s.await("a lease", has("10.9.0.0/24"))
	if len(got.DNS) == 0 || !got.Addresses[0].Valid.IsZero() {
		t.Errorf("expected a name server, and no times: %+v", got)
	}
	ours := map[string]bool{}
	inherited, _ := filepath.Glob("/proc/self/fd/*")
	for _, path := range inherited {
		to, _ := os.Readlink(path)
		ours[to] = strings.HasPrefix(to, "pipe:")
	}
	all := statuses(t)
	checked := 0
	for pid, lines := range all {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, task := range tasks {
			text, err := os.ReadFile(task + "/status")
			if err != nil {
				continue
			}
			for _, line := range strings.Split(string(text), "\n") {
				key, value, _ := strings.Cut(line, ":")
				lines[key] = strings.TrimSpace(value)
			}
			for key, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "Groups": "",
				"Uid": "65534\t65534\t65534\t65534", "Gid": "65534\t65534\t65534\t65534",
				"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapAmb": "0000000000000000"} {
				if lines[key] != want {
					t.Errorf("%s: %s is %q, expected %q", task, key, lines[key], want)
				}
			}
			checked++
		}
		for _, kind := range []string{"net", "pid", "ipc"} {
			own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			ours, _ := os.Readlink("/proc/self/ns/" + kind)
			if err != nil || own == ours {
				t.Errorf("its namespace %s is %s (%v), ours %s", kind, own, err, ours)
			}
		}
		if root, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/", pid)); err == nil && len(root) > 64 {
			t.Errorf("its root: %v", root)
		}
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, one := range open {
			to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, one.Name()))
			if ours[to] { // it was this test's, from whoever has started it
				continue
			}
			if !strings.HasPrefix(to, "socket:") && !strings.HasPrefix(to, "anon_inode:") && to != "/dev/null" {
				t.Errorf("it has %s", to)
			}
		}
		if err != nil || len(open) == 0 {
			t.Errorf("its descriptors: %v", err)
		}
	}
	if checked == 0 {
		t.Fatal("there is no process apart")
	}
	s.end()
	server.says("DHCPRELEASE", 1)
	s.finish()
	for pid := range all {
		if unix.Kill(pid, 0) == nil && len(statuses(t)[pid]) > 0 {
			t.Errorf("the process %d goes on", pid)
		}
	}
}

func TestAKilledProcessApartIsStartedAgain(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	server := w.dnsmasq("srv0", range9)
	s := w.apart(client, "cl0", Command)
	before := s.await("a lease", has("10.9.0.0/24"))
	mine := 0
	for pid := range statuses(t) {
		if strings.Contains(server.log(), "DHCPACK") && ofPort(t, pid, s.port) {
			mine = pid
		}
	}
	if mine == 0 {
		t.Fatal("there is no process apart")
	}
	unix.Kill(mine, unix.SIGKILL)
	server.says("DHCPACK", 2)
	if word := "DHCPACK(srv0) " + before.Addresses[0].Prefix.Addr().String(); strings.Count(server.log(), word) < 2 {
		t.Errorf("it is not given the same address again:\n%s", server.log())
	}
	select {
	case next := <-s.channel:
		t.Errorf("all that is known is the same, but it says %+v", next)
	case <-time.After(3 * pace):
	}
}

// ofPort reports whether a process has the port's packet socket.
func ofPort(t *testing.T, pid int, p *Port) bool {
	t.Helper()
	conn, err := p.packets.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var ours string
	conn.Control(func(fd uintptr) { ours, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, packetsFD))
	return ours != "" && ours == theirs
}

// Someone has taken over the process apart, and says what it likes.

const liesCommand = "lies"

var lies = map[string]func() []byte{
	"garbage": func() []byte { return bytes.Repeat([]byte{0xff, 0, 0x1b}, 100) },
	"nothing": func() []byte { return nil },
	"huge":    func() []byte { return bytes.Repeat([]byte(" "), 100_000) },
	"half":    func() []byte { return good()[:len(good())/2] },
	"two":     func() []byte { return append(good(), good()...) },
	"deep":    func() []byte { return bytes.Repeat([]byte("["), mostRecord) },
	"more":    func() []byte { return bytes.Replace(good(), []byte("{"), []byte(`{"Other":1,`), 1) },
	"an MTU":  func() []byte { return bytes.Replace(good(), []byte(`"MTU":0`), []byte(`"MTU":-1`), 1) },
	"a huge MTU": func() []byte {
		return bytes.Replace(good(), []byte(`"MTU":0`), []byte(`"MTU":99999999999999999999`), 1)
	},
	"a length":    func() []byte { return bytes.Replace(good(), []byte("10.9.0.5/24"), []byte("10.9.0.5/1"), 1) },
	"a loopback":  func() []byte { return bytes.Replace(good(), []byte("10.9.0.5/24"), []byte("127.0.0.5/24"), 1) },
	"guise's own": func() []byte { return bytes.Replace(good(), []byte("10.9.0.5/24"), []byte("169.254.77.5/24"), 1) },
	"a zone":      func() []byte { return bytes.Replace(good(), []byte("10.9.0.1"), []byte("fe80::1%lo"), 1) },
	"a line":      func() []byte { return bytes.Replace(good(), []byte("home"), []byte(`home\nnameserver 1.2.3.4`), 1) },
	"a terminal":  func() []byte { return bytes.Replace(good(), []byte("bad luck"), []byte(`\u001b[2J`), 1) },
	"a lifetime":  func() []byte { return bytes.Replace(good(), []byte("0001-01"), []byte("9999-01"), 1) },
	"all":         func() []byte { return bytes.Replace(good(), []byte("fd09::/64"), []byte("::/0"), 1) },
	"many addresses": func() []byte {
		return bytes.Replace(good(), []byte(`"Gateways":[`), []byte(`"Gateways":[`+strings.Repeat(`"10.9.0.9",`, 200)), 1)
	},
}

// good is a record that is none of these.
func good() []byte {
	b, err := encode(fit(State{Addresses: []Address{{Prefix: netip.MustParsePrefix("10.9.0.5/24")}},
		Gateways: []netip.Addr{netip.MustParseAddr("10.9.0.1")}, OnLink: []netip.Prefix{netip.MustParsePrefix("fd09::/64")},
		Search: []string{"home"}, Trouble: []string{"bad luck"}}))
	if err != nil {
		panic(err)
	}
	return b
}

// lie is such a process. It has the rights of its user only, and does not end by itself.
func lie(how string) {
	channel := os.NewFile(channelFD, "channel")
	unix.SetNonblock(channelFD, false)
	unix.SetsockoptInt(channelFD, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20)
	channel.Write(good())
	channel.Write(lies[how]())
	channel.Write(good())
	time.Sleep(time.Hour)
}

func TestAProcessApartThatLiesIsNotBelieved(t *testing.T) {
	for how, what := range lies {
		t.Run(how, func(t *testing.T) {
			b := what()
			if s, err := decode(b); err == nil {
				t.Errorf("%q is taken for %+v", b, s)
			}
			w := newNetwork(t)
			s := w.apart(w.move("cl0"), "cl0", liesCommand, how)
			s.device = "none" // the client's kernel gets no address
			s.await("the first record", has("10.9.0.0/24"))
			s.await("the end", func(s State) bool {
				return len(s.Addresses) == 0 && len(s.Trouble) == 1 && strings.Contains(s.Trouble[0], "started again")
			})
		})
	}
}

func TestARecordHasRoomForAllThatANetworkMayGive(t *testing.T) {
	var s State
	for i := range 100 {
		six := netip.MustParseAddr(fmt.Sprintf("2001:db8:ffff:ffff:ffff:ffff:ffff:f%03x", i))
		s.Addresses = append(s.Addresses, Address{Prefix: netip.PrefixFrom(six, 128), Valid: time.Now()})
		s.Gateways = append(s.Gateways, netip.MustParseAddr(fmt.Sprintf("fe80::ffff:ffff:ffff:f%03x", i)))
		s.OnLink = append(s.OnLink, netip.PrefixFrom(six, 128))
		s.Routes = append(s.Routes, Route{netip.MustParsePrefix(fmt.Sprintf("200.100.%d.200/32", i+100)), netip.MustParseAddr(fmt.Sprintf("200.200.200.%d", i+100))})
		s.DNS = append(s.DNS, six)
		s.Search = append(s.Search, strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 62)+".", 4), ".")[:248]+fmt.Sprint(100+i))
		s.Trouble = append(s.Trouble, strings.Repeat("y", mostText))
	}
	f := fit(s)
	b, err := encode(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decode(b); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if !fit(f).equal(f) {
		t.Error("what is fit is not")
	}
	sane(t, State{Addresses: f.Addresses, Gateways: f.Gateways, OnLink: f.OnLink, Routes: f.Routes, DNS: f.DNS, Search: f.Search, Trouble: f.Trouble})
}

// The reader of the records has rights; who writes them has none.
func FuzzRecord(f *testing.F) {
	f.Add(good())
	for _, what := range lies {
		if b := what(); len(b) < 1000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b)
		if err != nil {
			return
		}
		if s.MTU > 0 && s.MTU < 1500 || s.MTU == 0 {
			sane(t, s)
		}
		for _, text := range append(append([]string{}, s.Trouble...), s.Search...) {
			if len(text) > mostText || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("%q", text)
			}
		}
		if again, err := encode(s); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q is read as %q", b, again)
		}
		if again, err := decode(b); err != nil || !again.equal(s) {
			t.Error("it is read in two ways")
		}
	})
}
