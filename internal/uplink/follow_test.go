// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"guise/internal/nettest"
	"guise/internal/plan"
)

// bench is a follower between the interfaces of a namespace of the test's own and a model of a stack.
type bench struct {
	*follower
	*model
	t      *testing.T
	host   *host
	opened int
	closed int
}

func newBench(t *testing.T, uplinks ...string) *bench {
	t.Helper()
	nettest.Namespace(t)
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHost(here)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.close(); here.Close() })
	b := &bench{t: t, host: h, model: newModel(t)}
	var all []*plan.Uplink
	for _, text := range uplinks {
		u, err := plan.ParseUplink(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	if err := plan.CheckUplinks(all); err != nil {
		t.Fatal(err)
	}
	b.follower = b.another(all)
	return b
}

// another is a follower that knows nothing of the one before.
func (b *bench) another(all []*plan.Uplink) *follower {
	f := &follower{held: -1, mptcp: true, stack: b.model, told: map[string]string{}, say: b.t.Logf}
	for i, u := range all {
		f.paths = append(f.paths, newPath(u, i))
	}
	f.look = func() (map[string]*device, error) { return b.host.look(f.names()) }
	f.open = func(p *path) (*link, error) {
		file, err := os.Open("/dev/null")
		b.opened++
		return &link{kind: plan.Packet, file: file, host: p.device.mac, index: p.device.index,
			closer: func() { b.closed++; file.Close() }}, err
	}
	return f
}

// settle has the follower do all that is to be done.
func (b *bench) settle() string {
	b.t.Helper()
	for range 5 {
		left, err := b.turn(true)
		if err != nil {
			b.t.Fatal(err)
		}
		if !left {
			return b.state()
		}
	}
	b.t.Fatalf("never settled: %v", b.lines)
	return ""
}

// awaits waits for the state: the kernel says that a carrier is back a moment after it is.
func (b *bench) awaits(state string) {
	b.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for b.settle() != state {
		if time.Now().After(deadline) {
			b.t.Fatalf("want\n%s\ngot\n%s\nrequests:\n%s", state, b.state(), strings.Join(b.lines, "\n"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (b *bench) lose() {
	b.t.Helper()
	if _, err := b.turn(false); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) ip(words string) {
	b.t.Helper()
	nettest.Run(b.t, append([]string{"ip"}, strings.Fields(words)...)...)
}

// cable makes a cable: its end NAME has the address, the other one, NAMEx, is up.
func (b *bench) cable(name, address, gateway string) {
	b.t.Helper()
	b.ip("link add " + name + " type veth peer name " + name + "x")
	b.ip("link set " + name + "x up")
	b.ip("link set " + name + " up")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if d, err := b.host.look([]string{name}); err != nil || time.Now().After(deadline) {
			b.t.Fatalf("%s has no carrier: %v", name, err)
		} else if d[name].carrier {
			break
		}
	}
	if address != "" {
		b.ip("address add " + address + " dev " + name)
	}
	if gateway != "" {
		b.ip("route add default via " + gateway + " dev " + name + " metric " + metric(name))
	}
}

// metric is that of the host's default route.
func metric(name string) string {
	if name == "wwan0" {
		return "700"
	}
	return "153"
}

func (b *bench) has(words ...string) {
	b.t.Helper()
	for _, word := range words {
		if !strings.Contains(b.state()+"\n", word+"\n") {
			b.t.Errorf("no %q in\n%s", word, b.state())
		}
	}
}

func (b *bench) lacks(words ...string) {
	b.t.Helper()
	for _, word := range words {
		if strings.Contains(b.state(), word) {
			b.t.Errorf("still %q in\n%s", word, b.state())
		}
	}
}

func TestAnUplinkIsAPathOfItsOwn(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0,backup")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/32", "")
	b.ip("route add 203.0.113.1 dev wwan0")
	b.ip("route add default via 203.0.113.1 dev wwan0 onlink metric 700")
	b.settle()
	b.has("wlan0 up true carrier on mtu 1500 [192.0.2.2/24]",
		"route default via 192.0.2.1 dev wlan0 metric 100",
		"route default via 192.0.2.1 dev wlan0 table 100",
		"route 192.0.2.0/24 dev wlan0 table 100",
		"rule from 192.0.2.2/32 table 100",
		"endpoint 192.0.2.2 dev wlan0 subflow",
		"route 203.0.113.1/32 dev wwan0 metric 101",
		"route default via 203.0.113.1 dev wwan0 metric 101",
		"route default via 203.0.113.1 dev wwan0 table 101",
		"endpoint 198.51.100.7 dev wwan0 backup subflow")
	if b.model.told["uplink.wlan0"] != "usable" {
		t.Errorf("told %v", b.model.told)
	}
}

func TestBothFamiliesAndNoRouterArePaths(t *testing.T) {
	b := newBench(t, "ppp0")
	b.cable("ppp0", "192.0.2.2/24", "")
	b.ip("address add 2001:db8::2/64 dev ppp0 nodad")
	b.ip("route add default dev ppp0")
	b.ip("-6 route add default via fe80::1 dev ppp0")
	b.settle()
	b.has("route default dev ppp0 metric 100", "route default dev ppp0 table 100",
		"route default via fe80::1 dev ppp0 metric 100", "route default via fe80::1 dev ppp0 table 100",
		"rule from 2001:db8::2/128 table 100", "route 2001:db8::/64 dev ppp0 table 100",
		"endpoint 192.0.2.2 dev ppp0 subflow", "endpoint 2001:db8::2 dev ppp0 subflow")
}

// What is lost is passed on at once, what comes only after a while.
func TestALossDoesNotWait(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
	before := b.settle()

	b.ip("link set wlan0x down")
	b.lose()
	b.lacks("endpoint 192.0.2.2")
	b.has("wlan0 up true carrier off mtu 1500 [192.0.2.2/24]", "endpoint 198.51.100.7 dev wwan0 subflow")
	if got := holderText(b.model.told["uplink.wlan0"]); got != "lost: it has no carrier" {
		t.Errorf("told %q", got)
	}
	b.ip("link set wlan0x up")
	b.lose()
	b.lacks("endpoint 192.0.2.2")
	b.awaits(before)
}

func holderText(word string) string {
	return strings.ReplaceAll(strings.ReplaceAll(word, "%20", " "), "%3A", ":")
}

func TestEachFaultIsFollowedAndUndone(t *testing.T) {
	for name, fault := range map[string]struct {
		bad, good []string
		lost      bool
	}{
		"an address":      {[]string{"address del 192.0.2.2/24 dev wlan0"}, []string{"address add 192.0.2.2/24 dev wlan0", "route add default via 192.0.2.1 dev wlan0 metric 153"}, true},
		"a default route": {[]string{"route del default dev wlan0"}, []string{"route add default via 192.0.2.1 dev wlan0 metric 153"}, true},
		"the carrier":     {[]string{"link set wlan0x down"}, []string{"link set wlan0x up"}, true},
		"the interface": {[]string{"link del wlan0"}, []string{"link add wlan0 type veth peer name wlan0x", "link set wlan0x up", "link set wlan0 up",
			"address add 192.0.2.2/24 dev wlan0", "route add default via 192.0.2.1 dev wlan0 metric 153"}, true},
		"down":        {[]string{"link set wlan0 down"}, []string{"link set wlan0 up", "route add default via 192.0.2.1 dev wlan0 metric 153"}, true},
		"the MTU":     {[]string{"link set wlan0 mtu 1280"}, []string{"link set wlan0 mtu 1500"}, false},
		"the router":  {[]string{"route replace default via 192.0.2.9 dev wlan0 metric 153"}, []string{"route replace default via 192.0.2.1 dev wlan0 metric 153"}, false},
		"a new one":   {[]string{"address del 192.0.2.2/24 dev wlan0", "address add 192.0.2.3/24 dev wlan0", "route add default via 192.0.2.1 dev wlan0 metric 153"}, []string{"address del 192.0.2.3/24 dev wlan0", "address add 192.0.2.2/24 dev wlan0", "route add default via 192.0.2.1 dev wlan0 metric 153"}, false},
		"a renaming":  {[]string{"link set wlan0 down", "link set wlan0 name other"}, []string{"link set other name wlan0", "link set wlan0 up", "route add default via 192.0.2.1 dev wlan0 metric 153"}, true},
		"a bridge":    {[]string{"link add br0 type bridge", "link set wlan0 master br0"}, []string{"link set wlan0 nomaster"}, true},
		"a VPN route": {[]string{"route add 10.0.0.0/8 dev wlan0"}, []string{"route del 10.0.0.0/8 dev wlan0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "wlan0", "wwan0")
			b.cable("wlan0", "192.0.2.2/24", "")
			b.ip("route add default via 192.0.2.1 dev wlan0 metric 153")
			b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
			before := b.settle()
			for _, words := range fault.bad {
				b.ip(words)
				b.lose()
			}
			b.settle()
			if (b.paths[0].state == Lost) != fault.lost {
				t.Errorf("it is %s: %s", b.paths[0].state, b.paths[0].why)
			}
			if fault.lost {
				b.lacks("endpoint 192.0.2.2")
			} else if b.state() == before {
				t.Error("nothing changed")
			}
			b.has("endpoint 198.51.100.7 dev wwan0 subflow")
			for _, words := range fault.good {
				b.ip(words)
				b.lose()
			}
			b.awaits(before)
		})
	}
}

func TestOneThatIsNotThereIsTakenWhenItComes(t *testing.T) {
	b := newBench(t, "wlan0", "usb0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.settle()
	b.lacks("usb0")
	if b.paths[1].state != Absent || b.paths[1].why != "there is no such interface" {
		t.Errorf("it is %s: %s", b.paths[1].state, b.paths[1].why)
	}
	b.cable("usb0", "", "")
	b.settle()
	b.lacks("usb0")
	if b.paths[1].state != Present || b.paths[1].why != "it has no address" {
		t.Errorf("it is %s: %s", b.paths[1].state, b.paths[1].why)
	}
	b.ip("address add 198.51.100.7/24 dev usb0")
	b.settle()
	b.has("endpoint 198.51.100.7 dev usb0 subflow")
}

func TestTheAddressOfAnotherUplinkIsRefused(t *testing.T) {
	b := newBench(t, "wlan0", "usb0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("usb0", "192.0.2.2/24", "")
	b.settle()
	if b.paths[1].why != "it has the address 192.0.2.2, as wlan0 has" {
		t.Errorf("it is %s: %s", b.paths[1].state, b.paths[1].why)
	}
	b.lacks("usb0")
}

// Who asks the network of one uplink, and whoever is there, can say what they like (lease/apart.go).
func TestALiarOnOneUplinkTakesNoOtherAway(t *testing.T) {
	for _, other := range []string{"wwan0", "wwan0,own", "wwan0,address=192.0.3.2/24,gateway=192.0.3.1"} {
		b := newBench(t, "wlan0,own", other)
		b.cable("wlan0", "", "")
		if other == "wwan0" {
			b.cable("wwan0", "192.0.3.2/24", "192.0.3.1")
		} else {
			b.cable("wwan0", "", "")
		}
		grant := func(p *path, address, router string) {
			p.leased = &granted{addresses: []netip.Prefix{netip.MustParsePrefix(address)}, gateways: []gateway{{true, netip.MustParseAddr(router)}}}
		}
		grant(b.paths[0], "192.0.2.2/24", "192.0.2.1")
		if b.paths[1].Way == plan.Own {
			grant(b.paths[1], "192.0.3.2/24", "192.0.3.1")
		}
		b.settle()
		// All that is not the liar's own: by its name, and its table.
		of := func() (lines []string) {
			for _, line := range strings.Split(b.settle(), "\n") {
				if words := strings.Fields(line); !slices.Contains(words, "wlan0") && !strings.HasSuffix(line, "table 100") {
					lines = append(lines, line)
				}
			}
			return lines
		}
		before := of()
		grant(b.paths[0], "192.0.3.2/8", "192.0.3.1")
		after := of()
		if b.paths[1].state != Usable || !slices.Equal(before, after) || !slices.Contains(after, "rule from 192.0.3.2/32 table 101") {
			t.Errorf("%s: it is %s (%s), and has\n%s\ninstead of\n%s", other, b.paths[1].state, b.paths[1].why,
				strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		if b.paths[0].state == Usable || !strings.Contains(b.paths[0].why, "192.0.3.2, which wwan0 has") || strings.Contains(b.settle(), "192.0.3.2/8") {
			t.Errorf("%s: the liar is %s (%s)\n%s", other, b.paths[0].state, b.paths[0].why, b.settle())
		}
	}
}

func TestNameServersAreThoseOfTheNetworks(t *testing.T) {
	grant := func(p *path, number int, servers ...string) {
		p.leased = &granted{addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("192.0.%d.2/24", number))}}
		for _, s := range servers {
			p.leased.servers = append(p.leased.servers, netip.MustParseAddr(s))
		}
	}
	b := newBench(t, "up1,own,metric=300", "up2,own")
	b.cable("up1", "", "")
	b.cable("up2", "", "")
	is := func(expected string) {
		t.Helper()
		b.settle()
		if b.servers != expected {
			t.Errorf("expected %q, got %q", expected, b.servers)
		}
	}
	is("")
	grant(b.paths[0], 2, "192.0.2.53", "192.0.2.54")
	is("192.0.2.53 dev up1 192.0.2.54 dev up1")
	grant(b.paths[1], 3, "fe80::53", "192.0.2.53")
	is("fe80::53 dev up2 192.0.2.53 dev up1 192.0.2.53 dev up2")
	b.ip("link set up2x down")
	for deadline := time.Now().Add(10 * time.Second); b.paths[1].state == Usable && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		b.lose()
	}
	is("192.0.2.53 dev up1 192.0.2.54 dev up1")
	grant(b.paths[0], 2)
	is("")

	// The host uses one of the networks: its servers are those of both.
	b = newBench(t, "up1,own", "up2")
	b.cable("up1", "", "")
	b.cable("up2", "192.0.3.2/24", "192.0.3.1")
	grant(b.paths[0], 2, "192.0.2.53")
	is("")
}

func TestThePreferredOneIsUsedFirst(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0")
	b.paths[1].Prefer = true
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
	b.settle()
	b.has("endpoint 192.0.2.2 dev wlan0 backup subflow", "endpoint 198.51.100.7 dev wwan0 subflow",
		"route default via 198.51.100.1 dev wwan0 metric 1")
	b.paths[1].spent = true
	b.settle()
	b.has("endpoint 198.51.100.7 dev wwan0 backup subflow")
}

func TestEightPathsHaveOneEndpointEach(t *testing.T) {
	var uplinks []string
	for i := range 8 {
		uplinks = append(uplinks, fmt.Sprintf("up%d", i))
	}
	b := newBench(t, uplinks...)
	for i, name := range uplinks {
		b.cable(name, fmt.Sprintf("192.0.%d.2/24", i), "")
		b.ip(fmt.Sprintf("address add 2001:db8:%d::2/64 dev %s nodad", i, name))
	}
	b.settle()
	if len(b.endpoints) != 8 {
		t.Errorf("%d endpoints: %v", len(b.endpoints), b.endpoints)
	}
	b.ip("link set up3x down")
	b.settle()
	b.has("endpoint 2001:db8::2 dev up0 subflow")
}

// A connection never loses all its subflows: the last path stays an endpoint until another has come.
func TestTheLastPathIsHeld(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
	b.settle()
	b.ip("link set wwan0x down")
	b.lose()
	b.lacks("endpoint 198.51.100.7")
	b.ip("link set wlan0x down")
	b.ip("address del 192.0.2.2/24 dev wlan0")
	b.lose()
	b.has("wlan0 up true carrier off mtu 1500 [192.0.2.2/24]", "endpoint 192.0.2.2 dev wlan0 subflow")
	if p := b.paths[0]; p.state != Lost {
		t.Errorf("it is %s", p.state)
	}
	// It comes back with another address.
	b.ip("link set wlan0x up")
	b.ip("address add 192.0.2.9/24 dev wlan0")
	b.ip("route add default via 192.0.2.1 dev wlan0 metric 153")
	for deadline := time.Now().Add(10 * time.Second); b.paths[0].state != Usable; b.settle() {
		if time.Now().After(deadline) {
			t.Fatalf("it is %s: %s", b.paths[0].state, b.paths[0].why)
		}
	}
	b.has("endpoint 192.0.2.2 dev wlan0 subflow", "endpoint 192.0.2.9 dev wlan0 subflow")
	if b.until.IsZero() || b.next().IsZero() {
		t.Error("the old address is held for ever")
	}
	b.until = time.Now()
	b.settle()
	b.lacks("192.0.2.2")
	b.has("endpoint 192.0.2.9 dev wlan0 subflow", "wlan0 up true carrier on mtu 1500 [192.0.2.9/24]")
}

// A follower that was killed had another one's links, which go first.
func TestAnotherFollowerBuildsTheSame(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
	before := b.settle()
	note, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer note.Close()
	for _, noted := range []bool{true, false} {
		b.memory = nil
		if noted {
			b.memory = &memory{note}
			b.memory.note(b.have)
		}
		opened := b.opened
		f := b.another([]*plan.Uplink{b.paths[0].Uplink, b.paths[1].Uplink})
		f.memory = b.memory
		b.follower = f
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		for b.opened < opened+2 { // noted: one after the other
			if _, err := b.turn(true); err != nil {
				t.Fatal(err)
			}
			if noted && len(b.endpoints) == 0 {
				t.Error("for a moment there was no path")
			}
			b.replace = time.Time{}
		}
		if got := b.settle(); got != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, got)
		}
	}
}

func TestWhatTheStackRefusesIsTriedAgainWithoutTheOthers(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
	b.refuse = "rule from 192.0.2.2"
	b.settle()
	b.lacks("wlan0")
	b.has("endpoint 198.51.100.7 dev wwan0 subflow")
	if p := b.paths[0]; !strings.Contains(p.why, "not this time") || p.pause != firstPause || b.next() != p.retry {
		t.Errorf("%s: %s, again after %v", p.state, p.why, p.pause)
	}
	b.paths[0].retry = time.Now()
	b.settle()
	b.has("endpoint 192.0.2.2 dev wlan0 subflow")
	if b.paths[0].pause != 0 {
		t.Errorf("the pause is still %v", b.paths[0].pause)
	}
}

func TestAHundredFlapsLeaveNothing(t *testing.T) {
	b := newBench(t, "wlan0", "wwan0")
	b.cable("wlan0", "192.0.2.2/24", "192.0.2.1")
	b.cable("wwan0", "198.51.100.7/24", "198.51.100.1")
	before := b.settle()
	peer, err := netlink.LinkByName("wlan0x")
	if err != nil {
		t.Fatal(err)
	}
	files := len(descriptors(t))
	for i := range 100 {
		if err := netlink.LinkSetDown(peer); err != nil {
			t.Fatal(err)
		}
		b.lose()
		if err := netlink.LinkSetUp(peer); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			b.settle()
		}
	}
	b.awaits(before)
	if now := len(descriptors(t)); now > files || b.opened-b.closed != 2 {
		t.Errorf("%d descriptors, before %d; %d links opened, %d closed", now, files, b.opened, b.closed)
	}
}

func descriptors(t *testing.T) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Changes by chance, of which the follower sees some: in the end the stack has what it would have if the
// follower had begun only then.
func TestAnyChangesEndInTheStateThatFits(t *testing.T) {
	b := newBench(t, "up0", "up1", "up2")
	names := []string{"up0", "up1", "up2"}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i, name := range names {
		b.cable(name, fmt.Sprintf("192.0.%d.2/24", i), "")
	}
	const changes = 400
	for n := range changes {
		change(r, names)
		switch r.IntN(3) {
		case 0:
			b.lose()
		case 1:
			b.settle()
		}
		if n%20 != 0 {
			continue
		}
		var want, got string
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			// The kernel says that a carrier is back a moment after it is.
			if want, got = b.compared(); want == got || time.Now().After(deadline) {
				break
			}
		}
		if want != got {
			t.Fatalf("seed %d, change %d: want\n%s\ngot\n%s\n%s", seed, n, want, got, strings.Join(b.lines[max(0, len(b.lines)-60):], "\n"))
		}
	}
	fmt.Printf("changes of the host: seed=%d changes=%d findings=0\n", seed, changes)
}

// compared are the state of the stack, and that of one whose follower begins now.
func (b *bench) compared() (want, got string) {
	fresh := &bench{t: b.t, host: b.host, model: newModel(b.t)}
	fresh.follower = fresh.another([]*plan.Uplink{b.paths[0].Uplink, b.paths[1].Uplink, b.paths[2].Uplink})
	for i, p := range b.paths { // what it cannot know
		fresh.paths[i].routed = p.routed
	}
	want, got = fresh.settle(), b.settle()
	if b.held >= 0 { // without a carrier, or for a moment
		want, got = without(want, b.paths[b.held].Name), without(got, b.paths[b.held].Name)
		got = strings.Join(slices.DeleteFunc(strings.Split(got, "\n"), func(l string) bool {
			return strings.HasPrefix(l, "endpoint") && strings.Contains(l, b.paths[b.held].Name+" ") && fresh.paths[b.held].state != Usable
		}), "\n")
	}
	for i, p := range fresh.paths {
		if p.state != Usable && b.paths[i].link != nil { // which stays in the stack
			want, got = without(want, p.Name), without(got, p.Name)
		}
	}
	return want, got
}

func without(state, name string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(state, "\n"), func(l string) bool {
		return strings.Contains(l, name+" ") && !strings.HasPrefix(l, "endpoint") || strings.HasPrefix(l, "rule")
	}), "\n")
}

// change does something with one of the interfaces; much of it fails, and that is as good.
func change(r *rand.Rand, names []string) {
	i := r.IntN(len(names))
	name := names[i]
	l, err := netlink.LinkByName(name)
	if err != nil {
		netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "x"})
		return
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, byte(r.IntN(3)), byte(2+r.IntN(2))), Mask: net.CIDRMask(24, 32)}}
	six := &netlink.Addr{Flags: unix.IFA_F_NODAD, IPNet: &net.IPNet{IP: net.ParseIP(fmt.Sprintf("2001:db8:%d::%d", i, 2+r.IntN(2))), Mask: net.CIDRMask(64, 128)}}
	if r.IntN(3) == 0 {
		address = six
	}
	gateway := net.IPv4(192, 0, byte(r.IntN(3)), byte(1+8*r.IntN(2)))
	route := &netlink.Route{LinkIndex: l.Attrs().Index, Gw: gateway, Priority: 100 + 10*i + r.IntN(2), Flags: int(netlink.FLAG_ONLINK)}
	switch r.IntN(14) {
	case 0:
		netlink.LinkDel(l)
	case 1:
		netlink.LinkSetDown(l)
	case 2, 3, 4:
		netlink.LinkSetUp(l)
	case 5, 6, 7:
		netlink.AddrAdd(l, address)
	case 8:
		netlink.AddrDel(l, address)
	case 9, 10:
		netlink.RouteReplace(route)
	case 11:
		netlink.RouteDel(route)
	case 12:
		netlink.LinkSetMTU(l, 1280+r.IntN(300))
	case 13:
		if peer, err := netlink.LinkByName(name + "x"); err == nil {
			if r.IntN(3) == 0 {
				netlink.LinkSetDown(peer)
			} else {
				netlink.LinkSetUp(peer)
			}
		}
	}
}

func TestEventsSayWhenToLook(t *testing.T) {
	b := newBench(t, "wlan0")
	heard := make(chan bool, 100)
	go func() {
		for {
			ours, err := b.host.await([]int{1 << 30})
			if err != nil {
				close(heard)
				return
			}
			heard <- ours
		}
	}()
	b.cable("wlan0", "192.0.2.2/24", "")
	for deadline := time.After(10 * time.Second); ; {
		select {
		case ours := <-heard:
			if ours {
				return
			}
		case <-deadline:
			t.Fatal("nothing was heard")
		}
	}
}
