// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// directives are those that a plan for a program may have (docs/plan.md).
var directives = map[string]bool{"name": true, "memory": true, "undo": true, "boot": true, "sysctl": true, "link": true,
	"up": true, "address": true, "route": true, "rule": true, "qdisc": true, "mptcp": true}

// FuzzRun shows that nothing a user types adds a line to the plan, or a line
// of another kind: what passes is on the line that it is meant for.
func FuzzRun(f *testing.F) {
	for _, x := range runSeeds {
		f.Add(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
	}
	f.Fuzz(checkRun)
}

var runSeeds = [][8]string{
	{"tap,mtu=1400", "10.0.0.2/24", "10.0.0.1", "net.ipv4.tcp_sack=0", "delay 20ms loss 1%", "64M", "web", "bbr"},
	{"tap:fd=3,mac=02:00:00:00:00:01,offload=off", "eth0=fd00::2/64", "eth0=fd00::1", "net/core/x=a b", "", "1g", "x-1", ""},
	{"none", "::1/129", "0", "a.b=\nlink eth0 tap fd=3", "delay\n1ms", "99999999999G", "../x", "reno\n"},
	{"tap:a b,mtu=,,", "eth1=1.2.3.4", "eth0=", "=", "\x00", "-1", "", "cubic cubic"},
}

func checkRun(t *testing.T, link, address, gateway, sysctl, netem, memory, name, cc string) {
	links, err := ParseLinks([]string{link}, true)
	if err != nil {
		return
	}
	r := &Run{Name: "x", Memory: DefaultMemory, Links: links, MPTCP: len(name)%2 == 0}
	sentence := func(err error) bool {
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("refused without a word")
		}
		return err == nil
	}
	sentence(AddAddress(r.Links, address))
	sentence(AddGateway(r.Links, gateway))
	if s, err := ParseSysctl(sysctl); sentence(err) {
		r.Sysctls = []Sysctl{s}
	}
	if sentence(CheckNetem(netem)) {
		r.Netem = netem
	}
	if n, err := ParseMemory(memory); sentence(err) {
		if n < LeastMemory || n > MostMemory {
			t.Errorf("%q: %d bytes", memory, n)
		}
		r.Memory = n
	}
	if sentence(CheckName(name)) {
		r.Name = name
	}
	if sentence(CheckCongestionControl(cc, nil)) {
		r.CC = cc
	}
	p := r.Plan(3)
	lines := strings.Split(strings.TrimSuffix(p.Text(), "\n"), "\n")
	if len(lines) != len(p.Lines) {
		t.Fatalf("%d lines of %d directives:\n%s", len(lines), len(p.Lines), p.Text())
	}
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 || !directives[words[0]] || strings.ContainsAny(line, "\r\x00") {
			t.Errorf("no line of a plan: %q", line)
		}
	}
}

// FuzzQuantities shows that what passes for a quantity is one, within its
// bounds, and that rates are read as they are written.
func FuzzQuantities(f *testing.F) {
	for _, text := range quantitySeeds {
		f.Add(text)
	}
	f.Fuzz(checkQuantity)
}

var quantitySeeds = []string{"100mbit", "2.5gbit", "1e3kbit", "0.2%", "NaN%", "-0%", "20ms", "1h1ns", "-1s", "ns:tap0,ip=10.0.0.1/24", "tap:x", ":", "10.0.0.1/33"}

func checkQuantity(t *testing.T, text string) {
	if rate, err := ParseRate(text); err == nil {
		if again, err := ParseRate(FormatRate(rate)); err != nil || again != rate {
			t.Errorf("%q is %d, written %q, read as %d, %v", text, rate, FormatRate(rate), again, err)
		}
	}
	if loss, err := ParseLoss(text); err == nil && !(loss >= 0 && loss <= 100) {
		t.Errorf("%q is a loss of %v", text, loss)
	}
	if delay, err := ParseDelay(text); err == nil && delay < 0 {
		t.Errorf("%q is a delay of %v", text, delay)
	}
	if end, err := ParseEnd(text); err == nil && (end.Device == "" || strings.ContainsAny(end.Device+end.Namespace, "/ \n")) {
		t.Errorf("%q is the end %q %q", text, end.Namespace, end.Device)
	}
	if prefix, err := ParseInterfaceAddress(text); err == nil && !prefix.IsValid() {
		t.Errorf("%q is the address %v", text, prefix)
	}
}

// damaged is text with bytes changed, added and taken away, and parts of other
// seeds in it.
func damaged(r *rand.Rand, text string, others []string) string {
	b := []byte(text)
	for range r.IntN(5) {
		at := r.IntN(len(b) + 1)
		switch r.IntN(4) {
		case 0:
			b = append(b[:at:at], append([]byte{byte(r.IntN(256))}, b[at:]...)...)
		case 1:
			other := others[r.IntN(len(others))]
			from := r.IntN(len(other) + 1)
			b = append(b[:at:at], append([]byte(other[from:from+r.IntN(len(other)-from+1)]), b[at:]...)...)
		default:
			if at < len(b) && r.IntN(2) == 0 {
				b[at] = " \n\t=,:/.%0"[r.IntN(10)]
			} else if at < len(b) {
				b = append(b[:at:at], b[at+1:]...)
			}
		}
	}
	return string(b)
}

// TestManyInputs is the fuzzers' short form, which needs no instrumented build:
// the same number of inputs in each run, none of them known.
func TestManyInputs(t *testing.T) {
	const inputs = 20000
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var all []string
	for _, x := range runSeeds {
		all = append(all, x[:]...)
	}
	all = append(all, quantitySeeds...)
	for range inputs {
		x := runSeeds[r.IntN(len(runSeeds))]
		for i := range x {
			x[i] = damaged(r, x[i], all)
		}
		checkRun(t, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
		checkQuantity(t, damaged(r, quantitySeeds[r.IntN(len(quantitySeeds))], all))
		if t.Failed() {
			t.Fatalf("seed %d: %q", seed, x)
		}
	}
	fmt.Printf("fuzz flags: seed=%d inputs=%d findings=0\n", seed, 2*inputs)
}
