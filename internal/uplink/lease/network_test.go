// SPDX-License-Identifier: GPL-2.0-only

package lease

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"guise/internal/hostnet/netns"
	"guise/internal/hostnet/tap"
	"guise/internal/nettest"
	"guise/internal/uplink/macvtap"
)

// These tests have real servers (dnsmasq) at one end of a cable, and the client at the other, in a
// namespace of its own whose kernel does what a stack's does: it answers its neighbours.
//
//	namespace of the test: srv0 ──── cl0 :namespace of the client
//	                       dnsmasq   Follow

const patience = 30 * time.Second

// network is such a cable.
type network struct {
	*testing.T
	client *os.File
}

func newNetwork(t *testing.T) *network {
	t.Parallel()
	if _, err := exec.LookPath("dnsmasq"); err != nil {
		t.Skip("skipped: there is no dnsmasq (package dnsmasq-base)")
	}
	nettest.Namespace(t)
	w := &network{T: t}
	w.quick()
	nettest.Run(t, "ip", "link", "add", "srv0", "type", "veth", "peer", "name", "cl0")
	for _, a := range []string{"10.9.0.1/24", "10.8.0.1/24"} {
		nettest.Run(t, "ip", "address", "add", a, "dev", "srv0")
	}
	nettest.Run(t, "ip", "link", "set", "srv0", "up")
	nettest.Run(t, "ip", "address", "add", "fd09::1/64", "dev", "srv0", "nodad")
	return w
}

// quick lets the kernel use IPv6 addresses at once.
func (w *network) quick() {
	nettest.Run(w.T, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; echo 0 >/proc/sys/net/ipv6/conf/default/dad_transmits")
}

// namespace makes one more.
func (w *network) namespace() *os.File {
	w.Helper()
	var file *os.File
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			file, err = os.Open("/proc/thread-self/ns/net")
		}
		result <- err
	}()
	if err := <-result; err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { file.Close() })
	return file
}

// in runs a shell's line in a namespace.
func (w *network) in(namespace *os.File, line string) {
	w.Helper()
	err := netns.Run(namespace, func() error {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		w.Fatalf("%s: %v", line, err)
	}
}

// move moves a device to a namespace of its own and brings it up.
func (w *network) move(device string) *os.File {
	w.Helper()
	namespace := w.namespace()
	w.in(namespace, "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; echo 0 >/proc/sys/net/ipv6/conf/default/accept_ra; ip link set lo up")
	link, err := netlink.LinkByName(device)
	if err == nil {
		err = netlink.LinkSetNsFd(link, int(namespace.Fd()))
	}
	if err != nil {
		w.Fatal(err)
	}
	w.in(namespace, "ip link set "+device+" up")
	return namespace
}

// server is a running dnsmasq.
type server struct {
	*testing.T
	command *exec.Cmd
	guard   sync.Mutex
	text    bytes.Buffer
	ended   bool
}

func (s *server) Write(b []byte) (int, error) {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.text.Write(b)
}

func (s *server) log() string {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.text.String()
}

// says waits until the server has logged a word so often.
func (s *server) says(word string, times int) {
	s.Helper()
	for end := time.Now().Add(patience); strings.Count(s.log(), word) < times; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("the server does not say %q %d times:\n%s", word, times, s.log())
		}
	}
}

func (s *server) stop() {
	if !s.ended {
		s.ended = true
		s.command.Process.Kill()
		s.command.Wait()
	}
}

// dnsmasq starts a server in the namespace of the calling thread.
func (w *network) dnsmasq(device string, options ...string) *server {
	w.Helper()
	s := &server{T: w.T}
	argv := append([]string{"--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping", "--no-resolv", "--no-hosts",
		"--user=root", "--pid-file=", "--log-facility=-", "--log-dhcp", "--bind-interfaces", "--except-interface=lo", "--interface=" + device,
		"--dhcp-leasefile=" + filepath.Join(w.TempDir(), "leases")}, options...)
	s.command = exec.Command("dnsmasq", argv...)
	s.command.Stdout, s.command.Stderr = s, s
	s.command.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := s.command.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(s.stop)
	s.says("DHCP", 1)
	return s
}

// states are those of a client; each is checked to differ from the one before.
type states struct {
	*network
	device  string
	channel <-chan State
	last    State
	end     context.CancelFunc
	port    *Port
}

func (w *network) follow(namespace *os.File, device string, want Want) *states {
	w.Helper()
	return w.followFast(namespace, device, want, 1)
}

// fast is how many times faster the clocks of some clients are: they renew a lease of dnsmasq's
// shortest time, 120 s, after 3 s.
const fast = 20

func (w *network) followFast(namespace *os.File, device string, want Want, speed time.Duration) *states {
	w.Helper()
	port, err := Open(namespace, device)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	want.Name = "up0"
	s := &states{network: w, device: device, channel: port.follow(ctx, want, speed), end: cancel, port: port}
	w.client = namespace
	w.Cleanup(s.finish)
	return s
}

// finish ends the client and waits for that.
func (s *states) finish() {
	s.end()
	for range s.channel {
	}
}

// await waits for such a state, and gives the client's kernel its addresses of IPv4.
func (s *states) await(what string, right func(State) bool) State {
	s.Helper()
	for end := time.After(patience); ; {
		select {
		case next, ok := <-s.channel:
			if !ok {
				s.Fatalf("the channel is closed before %s", what)
			}
			if next.equal(s.last) {
				s.Errorf("the same state twice: %+v", next)
			}
			s.apply(next)
			s.last = next
			if right(next) {
				return next
			}
		case <-end:
			s.Fatalf("no state with %s; the last is %+v", what, s.last)
		}
	}
}

func (s *states) apply(next State) {
	fresh := slices.DeleteFunc(slices.Clone(next.Addresses), func(a Address) bool {
		return a.Prefix.Addr().Is6() || slices.ContainsFunc(s.last.Addresses, func(o Address) bool { return o.Prefix == a.Prefix })
	})
	if s.device != "cl0" || len(fresh) == 0 {
		return
	}
	err := netns.Run(s.client, func() error {
		link, err := netlink.LinkByName(s.device)
		for _, a := range fresh {
			if err == nil {
				err = tap.AddAddress(link, a.Prefix)
			}
		}
		return err
	})
	if err != nil {
		s.Error(err)
	}
}

func has(network string) func(State) bool {
	p := netip.MustParsePrefix(network)
	return func(s State) bool {
		return slices.ContainsFunc(s.Addresses, func(a Address) bool { return p.Contains(a.Prefix.Addr()) })
	}
}

func troubled(word string) func(State) bool {
	return func(s State) bool { return strings.Contains(strings.Join(s.Trouble, "\n"), word) }
}

const range9 = "--dhcp-range=10.9.0.100,10.9.0.150,255.255.255.0,120"

func TestALeaseIsObtainedRenewedAndGivenBack(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	s := w.dnsmasq("srv0", range9, "--dhcp-option=option:dns-server,10.9.0.53", "--dhcp-option=option:domain-search,lab.example,b.example",
		"--dhcp-option=option:router,10.9.0.1", "--dhcp-option-force=option:mtu,1400",
		"--dhcp-option=option:classless-static-route,0.0.0.0/0,10.9.0.1,192.0.2.0/24,10.9.0.7")
	c := w.followFast(client, "cl0", Want{IPv4: true}, fast)
	got := c.await("an address", has("10.9.0.0/24"))
	want := State{Addresses: got.Addresses, Gateways: []netip.Addr{netip.MustParseAddr("10.9.0.1")}, DNS: []netip.Addr{netip.MustParseAddr("10.9.0.53")},
		Search: []string{"lab.example", "b.example"}, MTU: 1400,
		Routes: []Route{{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParseAddr("10.9.0.7")}}}
	if !got.equal(want) || len(got.Addresses) != 1 || got.Addresses[0].Prefix.Bits() != 24 || !got.Addresses[0].Valid.After(time.Now()) {
		t.Errorf("got %+v", got)
	}
	s.says("DHCPACK", 3)
	c.finish()
	s.says("DHCPRELEASE", 1)
	if n := strings.Count(s.log(), "DHCPDISCOVER"); n > 2 {
		t.Errorf("%d discoveries:\n%s", n, s.log())
	}
}

func TestAServerThatComesBackWithAnotherNetworkIsFollowed(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	s := w.dnsmasq("srv0", range9)
	c := w.followFast(client, "cl0", Want{IPv4: true}, fast)
	c.await("an address", has("10.9.0.0/24"))
	s.stop()
	s = w.dnsmasq("srv0", "--dhcp-range=10.8.0.100,10.8.0.150,255.255.255.0,120", "--dhcp-authoritative")
	got := c.await("another address", has("10.8.0.0/24"))
	s.says("DHCPNAK", 1)
	if len(got.Addresses) != 1 {
		t.Errorf("the old address is there: %+v", got)
	}
}

func TestALeaseThatNobodyRenewsEnds(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	s := w.dnsmasq("srv0", range9)
	c := w.followFast(client, "cl0", Want{IPv4: true}, fast)
	c.await("an address", has("10.9.0.0/24"))
	s.stop()
	if last := c.await("a warning", troubled("10.9.0.1 does not answer on up0 any more; the address 10.9.0.")); len(last.Addresses) != 1 {
		t.Errorf("got %+v", last)
	}
	c.await("no address", func(s State) bool { return len(s.Addresses) == 0 && len(s.Gateways) == 0 })
	c.await("that nobody answers", troubled("no DHCP server answers on up0 since"))
}

func TestWhenTheCarrierComesBackAllIsAskedForAtOnce(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	s := w.dnsmasq("srv0", range9, "--enable-ra", "--dhcp-range=fd09::,ra-only")
	c := w.follow(client, "cl0", Want{IPv4: true, IPv6: true})
	both := func(s State) bool {
		return has("10.9.0.0/24")(s) && has("fd09::/64")(s) && len(s.Gateways) == 2 && s.Trouble == nil
	}
	before := c.await("both addresses", both)
	for range 2 {
		nettest.Run(t, "ip", "link", "set", "srv0", "down")
		if kept := c.await("no carrier", troubled("up0 has no carrier since")); !both(State{Addresses: kept.Addresses, Gateways: kept.Gateways}) {
			t.Errorf("it is forgotten at once: %+v", kept)
		}
		nettest.Run(t, "ip", "link", "set", "srv0", "up")
		nettest.Run(t, "ip", "address", "replace", "fd09::1/64", "dev", "srv0", "nodad") // the kernel has removed it
		after := c.await("both addresses again", both)
		if !after.timeless().equal(before.timeless()) {
			t.Errorf("got %+v, then %+v", before, after)
		}
	}
	s.says("DHCPACK", 3)
	w.in(client, "ip link del cl0")
	c.await("the end of the interface", troubled("up0 is gone"))
}

func TestNobodyAnswers(t *testing.T) {
	w := newNetwork(t)
	c := w.followFast(w.move("cl0"), "cl0", Want{IPv4: true, IPv6: true}, fast)
	c.await("that nobody answers", func(s State) bool {
		return troubled("no DHCP server answers on up0 since")(s) && troubled("no router announces a way out by IPv6 on up0 since")(s)
	})
	w.dnsmasq("srv0", range9)
	got := c.await("an address", has("10.9.0.0/24"))
	if troubled("DHCP")(got) {
		t.Errorf("the trouble stays: %+v", got)
	}
}

// The second server is behind a bridge, whose other port is the first one's and the client's.
func TestOfTwoServersOneIsObeyed(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	nettest.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	nettest.Run(t, "ip", "link", "add", "p0", "type", "veth", "peer", "name", "srv1")
	second := w.move("srv1")
	w.in(second, "ip address add 10.9.0.2/24 dev srv1")
	nettest.Run(t, "sh", "-c", "ip address flush dev srv0; ip link set srv0 master br0; ip link set p0 up master br0; ip address add 10.9.0.1/24 dev br0; ip link set br0 up")
	one := w.dnsmasq("br0", range9)
	var two *server
	if err := netns.Run(second, func() error {
		two = w.dnsmasq("srv1", "--dhcp-range=10.9.0.200,10.9.0.250,255.255.255.0,120")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := w.followFast(client, "cl0", Want{IPv4: true}, fast)
	got := c.await("an address", has("10.9.0.0/24")).Addresses[0].Prefix.Addr()
	chosen, other := one, two
	if netip.MustParsePrefix("10.9.0.192/26").Contains(got) {
		chosen, other = two, one
	}
	chosen.says("DHCPACK", 2)
	other.says("DHCPOFFER", 1)
	if strings.Contains(other.log(), "DHCPACK") {
		t.Errorf("both gave an address:\n%s\n%s", one.log(), two.log())
	}
}

func TestRoutersAreFollowed(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	c := w.follow(client, "cl0", Want{IPv6: true})
	first := w.dnsmasq("srv0", "--enable-ra", "--dhcp-range=fd09::,ra-only", "--ra-param=srv0,mtu:1400,60,600",
		"--dhcp-option=option6:dns-server,[fd09::53]", "--dhcp-option=option6:domain-search,lab.example")
	got := c.await("an address", has("fd09::/64"))
	own := c.port.MAC
	id := netip.AddrFrom16([16]byte{0: 0xfd, 1: 9, 8: own[0] ^ 2, 9: own[1], 10: own[2], 11: 0xff, 12: 0xfe, 13: own[3], 14: own[4], 15: own[5]})
	if len(got.Addresses) != 1 || got.Addresses[0].Prefix != netip.PrefixFrom(id, 64) || len(got.Gateways) != 1 || !got.Gateways[0].IsLinkLocalUnicast() ||
		!slices.Equal(got.DNS, []netip.Addr{netip.MustParseAddr("fd09::53")}) || !slices.Equal(got.Search, []string{"lab.example"}) ||
		got.MTU != 1400 || !slices.Equal(got.OnLink, []netip.Prefix{netip.MustParsePrefix("fd09::/64")}) {
		t.Errorf("got %+v", got)
	}
	first.stop()
	// No default router any more: the address stays.
	w.dnsmasq("srv0", "--enable-ra", "--dhcp-range=fd09::,ra-only", "--ra-param=srv0,60,0")
	got = c.await("no gateway", func(s State) bool { return len(s.Gateways) == 0 })
	if !has("fd09::/64")(got) {
		t.Errorf("got %+v", got)
	}
}

func TestWhereRoutersSaySoAddressesComeFromDHCPv6(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	s := w.dnsmasq("srv0", "--enable-ra", "--dhcp-range=fd09::100,fd09::1ff,64,120", "--dhcp-option=option6:dns-server,[fd09::53]",
		"--dhcp-option=option6:domain-search,lab.example")
	c := w.followFast(client, "cl0", Want{IPv6: true, Identity: []byte("a stack")}, fast)
	got := c.await("an address", func(s State) bool { return has("fd09::100/120")(s) && len(s.OnLink) == 1 })
	if len(got.Addresses) != 1 || got.Addresses[0].Prefix.Bits() != 128 || len(got.Gateways) != 1 || len(got.OnLink) != 1 ||
		!slices.Equal(got.DNS, []netip.Addr{netip.MustParseAddr("fd09::53")}) || !slices.Equal(got.Search, []string{"lab.example"}) {
		t.Errorf("got %+v", got)
	}
	s.says("DHCPRENEW", 1)
	c.finish()
	s.says("DHCPRELEASE", 1)
}

func TestWhereRoutersSaySoNamesComeFromDHCPv6(t *testing.T) {
	w := newNetwork(t)
	client := w.move("cl0")
	s := w.dnsmasq("srv0", "--enable-ra", "--dhcp-range=fd09::,ra-stateless", "--dhcp-option=option6:dns-server,[fd09::53]",
		"--dhcp-option=option6:33,0003666f6f") // an option that nobody needs
	c := w.follow(client, "cl0", Want{IPv6: true, Secret: []byte("a secret")})
	got := c.await("an address and a server", func(s State) bool { return has("fd09::/64")(s) && len(s.DNS) == 1 })
	if mac := c.port.MAC; got.Addresses[0].Prefix.Addr().As16()[11] == 0xff && got.Addresses[0].Prefix.Addr().As16()[8] == mac[0]^2 {
		t.Errorf("the address comes from the MAC address: %+v", got)
	}
	s.says("DHCPINFORMATION-REQUEST", 1)
}

// The device that it is made for: all frames go to the tap, and the packet socket sees them.
func TestItWorksOnAMacvtap(t *testing.T) {
	w := newNetwork(t)
	nettest.Run(t, "ip", "link", "set", "cl0", "up")
	w.dnsmasq("srv0", range9, "--enable-ra", "--dhcp-range=fd09::,ra-only")
	var all []netip.Addr
	for range 2 { // two stacks beside one interface
		d, err := macvtap.Open("cl0", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		c := w.follow(d.Namespace, d.Name, Want{IPv4: true, IPv6: true, LinkLocal: d.LinkLocal})
		got := c.await("both addresses", func(s State) bool { return has("10.9.0.0/24")(s) && has("fd09::/64")(s) })
		for _, a := range got.Addresses {
			all = append(all, a.Prefix.Addr())
		}
	}
	if len(unique(all)) != 4 {
		t.Errorf("got %v", all)
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := RunApart(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == liesCommand {
		lie(os.Args[2])
	}
	if len(os.Args) > 1 && os.Args[1] == attackCommand {
		attack()
	}
	os.Exit(m.Run())
}

func TestAPipeIsNoPort(t *testing.T) {
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if p, err := Inherit([2]*os.File{pipe, pipe}); err == nil {
		t.Errorf("a pipe is a port: %+v", p)
	}
}
