// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"guise/internal/hostnet/access"
	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/netns"
	"guise/internal/hostnet/tap"
	"guise/internal/nettest"
	"guise/internal/plan"
)

// host puts the test into a namespace that looks like a host's: an interface
// with addresses of both versions that does not forward.
func host(t *testing.T) {
	t.Helper()
	nettest.Namespace(t)
	t.Setenv("GUISE_RUNDIR", filepath.Join(t.TempDir(), "guise"))
	nettest.Run(t, "ip", "link", "add", "up0", "type", "bridge")
	nettest.Run(t, "ip", "link", "set", "up0", "addrgenmode", "none") // its state would change during the test
	nettest.Run(t, "ip", "address", "add", "192.0.2.7/24", "dev", "up0")
	nettest.Run(t, "ip", "address", "add", "2001:db8::7/64", "dev", "up0", "nodad")
	nettest.Run(t, "ip", "link", "set", "up0", "up")
	nettest.Run(t, "ip", "route", "add", "10.213.0.0/29", "dev", "up0")
	// The kernel adds this route in its own time.
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(
		nettest.Run(t, "ip", "-6", "route", "show", "table", "local"), "2001:db8::7"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("2001:db8::7 is not routed to this host")
		}
	}
}

// state is all of the host that guise could change.
func state(t *testing.T) string {
	t.Helper()
	all := nettest.Run(t, "nft", "list", "ruleset") + nettest.Run(t, "ip", "-o", "link") + nettest.Run(t, "ip", "-o", "address") +
		nettest.Run(t, "ip", "route", "show", "table", "all") + nettest.Run(t, "ip", "-6", "route", "show", "table", "all") +
		nettest.Run(t, "sh", "-c", "grep -r . /proc/sys/net/ipv[46]/conf/*/*forward* /proc/sys/net/ipv6/conf/*/accept_ra /proc/sys/net/ipv4/ip_forward | sort")
	left, _ := filepath.Glob(journal.Directory() + "*")
	return all + strings.Join(left, "\n")
}

// Whether a stack is just ending.
func yes() bool { return true }
func no() bool  { return false }

func prepare(t *testing.T, specs ...string) (*Host, []*plan.Link) {
	t.Helper()
	links, err := plan.ParseLinks(specs, true)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare("test", links, no)
	if err != nil {
		t.Fatal(err)
	}
	return h, links
}

func undone(t *testing.T, before string) {
	t.Helper()
	after := state(t)
	for _, line := range missing(before, after) {
		t.Errorf("is gone: %s", line)
	}
	for _, line := range missing(after, before) {
		t.Errorf("is left: %s", line)
	}
}

// missing are the lines of a that b does not have.
func missing(a, b string) []string {
	had := map[string]bool{}
	for line := range strings.Lines(b) {
		had[line] = true
	}
	var gone []string
	for line := range strings.Lines(a) {
		if !had[line] {
			gone = append(gone, strings.TrimSpace(line))
		}
	}
	return gone
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

func TestHostIsAsBeforeAfterUndo(t *testing.T) {
	host(t)
	before := state(t)
	h, links := prepare(t, "tap", "tap,mtu=1300")
	during := state(t)
	contains(t, during,
		"inet 10.213.0.9/30", "inet 10.213.0.13/30", "inet6 fd67:7569:7365:1::1/64", "inet6 fd67:7569:7365:2::1/64", "mtu 1300",
		"table ip guise_test", "table ip6 guise_test", "ip saddr 10.213.0.8/30 oifname != \"guise*\" masquerade",
		"iifname \"guise1\" accept", "oifname \"guise0\" accept", "iifname \"up0\" oifname != \"guise*\" drop",
		"conf/up0/forwarding:1", "conf/guise0/forwarding:1", "ipv4/conf/all/forwarding:0")
	if got := links[1].Addresses[0].String(); got != "10.213.0.14/30" {
		t.Errorf("the second link has %s", got)
	}
	if got := links[0].Gateways; len(got) != 2 || got[0].String() != "10.213.0.9" || got[1].String() != "fd67:7569:7365:1::1" {
		t.Errorf("the first link has the gateways %v", got)
	}
	if err := h.Undo(); err != nil {
		t.Error(err)
	}
	undone(t, before)
	if err := h.Undo(); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestSysctlsStayWhileAnotherStackNeedsThem(t *testing.T) {
	host(t)
	before := state(t)
	first, _ := prepare(t, "tap")
	second, _ := prepare(t, "tap")
	if err := first.Undo(); err != nil {
		t.Error(err)
	}
	contains(t, state(t), "conf/up0/forwarding:1", "table ip guise_test_2", "iifname \"up0\" oifname != \"guise*\" drop")
	third, _ := prepare(t, "tap")
	if err := second.Undo(); err != nil {
		t.Error(err)
	}
	contains(t, state(t), "conf/up0/forwarding:1")
	if err := third.Undo(); err != nil {
		t.Error(err)
	}
	undone(t, before)
}

// abandoned makes the owner of a journal a process that is dead.
func abandoned(t *testing.T, h *Host) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := h.HandOver(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(h.Journal()); err != nil {
		t.Errorf("the journal of a living holder was swept: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// The tap is still open here, as it is in programs whose holder was killed.
func TestSweepUndoesWhatAKilledHolderLeft(t *testing.T) {
	host(t)
	before := state(t)
	h, _ := prepare(t, "tap")
	abandoned(t, h)
	if err := Sweep(); err != nil {
		t.Error(err)
	}
	undone(t, before)
	h.CloseLinks()
	if err := Sweep(); err != nil {
		t.Errorf("with nothing to sweep: %v", err)
	}
}

func TestSweepFromAnotherNamespace(t *testing.T) {
	host(t)
	before := state(t)
	h, _ := prepare(t, "tap")
	abandoned(t, h)
	h.CloseLinks()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	// A process that is left there makes the namespace one that can be found.
	stays := exec.Command("sleep", "1000")
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stays.Process.Kill(); stays.Wait() }()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(); err != nil {
		t.Error(err)
	}
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	undone(t, before)
}

func TestNamespaceThatIsGoneNeedsNoUndoing(t *testing.T) {
	host(t)
	h, _ := prepare(t, "tap")
	defer h.CloseLinks()
	l, err := journal.Lock()
	if err != nil {
		t.Fatal(err)
	}
	h.journal.Namespace = netns.ID{Inode: 1, Cookie: 1}
	if err := l.Save(h.journal); err != nil {
		t.Fatal(err)
	}
	l.Unlock()
	before := nettest.Run(t, "nft", "list", "ruleset")
	abandoned(t, h)
	if err := Sweep(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(h.Journal()); err == nil {
		t.Error("the journal is left")
	}
	if after := nettest.Run(t, "nft", "list", "ruleset"); after != before {
		t.Error("another namespace's journal was undone in this one")
	}
}

func TestAddressesTheUserNames(t *testing.T) {
	host(t)
	before := state(t)
	links, _ := plan.ParseLinks([]string{"tap"}, true)
	if err := plan.AddAddress(links, "198.51.100.9/24"); err != nil {
		t.Fatal(err)
	}
	h, err := Prepare("test", links, no)
	if err != nil {
		t.Fatal(err)
	}
	during := state(t)
	contains(t, during, "inet 198.51.100.1/24", "ip saddr 198.51.100.0/24")
	if strings.Contains(during, "table ip6") || strings.Contains(during, "up0/force_forwarding:1") {
		t.Error("IPv6 was touched for a stack without")
	}
	if err := h.Undo(); err != nil {
		t.Error(err)
	}

	links, _ = plan.ParseLinks([]string{"tap"}, true)
	if err := plan.AddAddress(links, "192.0.2.9/25"); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare("test", links, no); !errors.As(err, &access.Refusal{}) || !strings.Contains(err.Error(), "192.0.2.0/24") &&
		!strings.Contains(err.Error(), "192.0.2.7/24") || !strings.Contains(err.Error(), " on up0,") {
		t.Errorf("an address of the host's network: %v", err)
	}
	undone(t, before)
}

func TestAddressesOfAStackThatIsJustEnding(t *testing.T) {
	host(t)
	before := state(t)
	named := func() []*plan.Link {
		links, _ := plan.ParseLinks([]string{"tap"}, true)
		if err := plan.AddAddress(links, "198.51.100.9/24"); err != nil {
			t.Fatal(err)
		}
		return links
	}
	first, err := Prepare("first", named(), no)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare("second", named(), no); !errors.As(err, &access.Refusal{}) || !strings.Contains(err.Error(), "198.51.100.1/24") {
		t.Errorf("the address of a stack that stays: %v", err)
	}
	ending := exec.Command("sh", "-c", "sleep 0.1; ip link delete guise0")
	if err := ending.Start(); err != nil {
		t.Fatal(err)
	}
	second, err := Prepare("second", named(), yes)
	if err := ending.Wait(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatalf("the address of a stack that ended meanwhile: %v", err)
	}
	if err := first.Undo(); err != nil {
		t.Error(err)
	}
	if err := second.Undo(); err != nil {
		t.Error(err)
	}
	undone(t, before)
}

func TestOneStackAfterAnotherHasTheSameAddresses(t *testing.T) {
	host(t)
	before := state(t)
	first, had := prepare(t, "tap")
	beside, others := prepare(t, "tap")
	if had[0].Addresses[0] == others[0].Addresses[0] {
		t.Errorf("two stacks have %v", had[0].Addresses)
	}
	ending := exec.Command("sh", "-c", "sleep 0.1; ip link delete guise0")
	if err := ending.Start(); err != nil {
		t.Fatal(err)
	}
	links, _ := plan.ParseLinks([]string{"tap"}, true)
	second, err := Prepare("second", links, func() bool {
		_, err := net.InterfaceByName("guise0")
		return err == nil
	})
	if err := ending.Wait(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(links[0].Addresses, had[0].Addresses) || len(second.Notes) > 0 {
		t.Errorf("after a stack with %v: one with %v, %q", had[0].Addresses, links[0].Addresses, second.Notes)
	}
	for _, h := range []*Host{first, second, beside} {
		if err := h.Undo(); err != nil {
			t.Error(err)
		}
	}
	undone(t, before)
}

func TestStackThatEndsForLongIsNotWaitedFor(t *testing.T) {
	host(t)
	before := state(t)
	first, _ := prepare(t, "tap")
	links, _ := plan.ParseLinks([]string{"tap"}, true)
	second, err := Prepare("second", links, yes)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Notes) != 1 || !strings.Contains(second.Notes[0], "10.213.0.9/32 is still in use") &&
		!strings.Contains(second.Notes[0], "10.213.0.9/30 is still in use") {
		t.Errorf("notes: %q", second.Notes)
	}
	for _, h := range []*Host{first, second} {
		if err := h.Undo(); err != nil {
			t.Error(err)
		}
	}
	undone(t, before)
}

func TestFailureInTheMiddleIsUndone(t *testing.T) {
	host(t)
	before := state(t)
	links, _ := plan.ParseLinks([]string{"tap", "tap:up0"}, true)
	if _, err := Prepare("test", links, no); !errors.As(err, &access.Refusal{}) || !strings.Contains(err.Error(), "up0") {
		t.Errorf("a bridge as a tap: %v", err)
	}
	undone(t, before)
}

func TestTapOfTheUsersIsOpenedAndLeftAlone(t *testing.T) {
	host(t)
	nettest.Run(t, "ip", "tuntap", "add", "mine", "mode", "tap", "vnet_hdr")
	before := state(t)
	h, links := prepare(t, "tap:mine")
	if h.Journal() != "" || len(h.Links) != 1 || len(links[0].Addresses) != 0 {
		t.Errorf("got the journal %q, %d taps, %v", h.Journal(), len(h.Links), links[0].Addresses)
	}
	if _, err := Prepare("test", links, no); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second time: %v", err)
	}
	fd := int(h.Links[0].Fd())
	if err := tap.Check(plan.Tap, fd); err != nil {
		t.Error(err)
	}
	if len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "ip link set mine up") {
		t.Errorf("on a tap that is down: %q", h.Notes)
	}
	h.CloseLinks()
	if err := tap.Check(plan.Tap, fd); !errors.As(err, &access.Refusal{}) {
		t.Errorf("a closed descriptor: %v", err)
	}
	undone(t, before)
}

func TestEndOfAPathInANamespace(t *testing.T) {
	host(t)
	name := neighbour(t, "end")
	before := state(t)
	end, err := plan.ParseEnd(name + ":x0,ip=192.0.2.1/24,ip=2001:db8:1::1/64")
	if err != nil {
		t.Fatal(err)
	}
	device, err := tap.OpenEnd(end, 1400)
	if err != nil {
		t.Fatal(err)
	}
	there := nettest.Run(t, "ip", "-n", name, "-o", "address") + nettest.Run(t, "ip", "-n", name, "-o", "link")
	contains(t, there, "inet 192.0.2.1/24", "inet6 2001:db8:1::1/64", "mtu 1400")
	undone(t, before)
	device.Close()
	if there := nettest.Run(t, "ip", "-n", name, "-o", "link"); strings.Contains(there, "x0") {
		t.Errorf("the tap is left: %s", there)
	}
	if _, err := tap.OpenEnd(plan.End{Namespace: "guise-no-such", Device: "x"}, 0); !errors.As(err, &access.Refusal{}) ||
		!strings.Contains(err.Error(), "ip netns add") {
		t.Errorf("a namespace that is not: %v", err)
	}
}

func TestMistypedTapIsRefusedWithThoseThatThereAre(t *testing.T) {
	host(t)
	for spec, parts := range map[string][]string{
		"tap:mien": {"--link tap:mien", "no tap mien", "the host has none", "--ip ADDR/LEN", "guise setup"},
		"tun:mien": {"--link tun:mien", "no tun mien", "the host has none", "ip tuntap add mien mode tun"},
	} {
		links, _ := plan.ParseLinks([]string{spec}, true)
		if _, err := Prepare("test", links, no); !errors.As(err, &access.Refusal{}) {
			t.Errorf("%s: %v", spec, err)
		} else {
			contains(t, err.Error(), parts...)
		}
	}
	nettest.Run(t, "ip", "tuntap", "add", "mine", "mode", "tap", "vnet_hdr")
	nettest.Run(t, "ip", "tuntap", "add", "mien7", "mode", "tun", "vnet_hdr")
	before := state(t)
	for spec, part := range map[string]string{
		"tap:mien": "did you mean mine?", "tap:other": "valid are mine)", "tun:mien": "did you mean mien7?",
	} {
		links, _ := plan.ParseLinks([]string{spec}, true)
		if _, err := Prepare("test", links, no); !errors.As(err, &access.Refusal{}) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	undone(t, before)
}

func TestTapThatIsMadeForAnAddressIsSaid(t *testing.T) {
	host(t)
	nettest.Run(t, "ip", "tuntap", "add", "mine", "mode", "tap", "vnet_hdr")
	before := state(t)
	links, _ := plan.ParseLinks([]string{"tap:mien"}, true)
	if err := plan.AddAddress(links, "198.51.100.9/24"); err != nil {
		t.Fatal(err)
	}
	h, err := Prepare("test", links, no)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Notes) != 1 {
		t.Fatalf("notes: %q", h.Notes)
	}
	contains(t, h.Notes[0], "--link tap:mien", "there was no tap mien", "has made it", "did you mean mine?")
	h.CloseLinks()
	undone(t, before)
}

func TestAddressOfTheHostsIsRefusedOnATapThatIsThere(t *testing.T) {
	host(t)
	nettest.Run(t, "ip", "tuntap", "add", "mine", "mode", "tap", "vnet_hdr")
	nettest.Run(t, "ip", "address", "add", "198.51.100.1/24", "dev", "mine")
	nettest.Run(t, "ip", "link", "set", "mine", "up")
	before := state(t)
	// Of the tap itself, of another interface, and in IPv6.
	for address, owner := range map[string]string{"198.51.100.1/24": "mine", "192.0.2.7/32": "up0", "2001:db8::7/64": "up0"} {
		for _, spec := range []string{"tap:mine", "tap:new"} {
			links, _ := plan.ParseLinks([]string{spec}, true)
			if err := plan.AddAddress(links, address); err != nil {
				t.Fatal(err)
			}
			if _, err := Prepare("test", links, no); !errors.As(err, &access.Refusal{}) {
				t.Errorf("%s on %s: %v", address, spec, err)
			} else {
				contains(t, err.Error(), "--ip "+address, "the host has this address itself, on "+owner)
			}
		}
	}
	undone(t, before)
	// What is at the other end of a descriptor may be far away.
	device, err := tap.Open(plan.Tap, "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for address, notes := range map[string]int{"198.51.100.1/24": 1, "198.51.100.2/24": 0} {
		fd, err := unix.Dup(int(device.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		links, _ := plan.ParseLinks([]string{fmt.Sprintf("tap:fd=%d", fd)}, true)
		if err := plan.AddAddress(links, address); err != nil {
			t.Fatal(err)
		}
		h, err := Prepare("test", links, no)
		if err != nil || len(h.Notes) != notes {
			t.Fatalf("%s: %v, notes %q", address, err, h.Notes)
		}
		if notes > 0 {
			contains(t, h.Notes[0], "on mine", "another network namespace")
		}
		h.CloseLinks()
	}
}
