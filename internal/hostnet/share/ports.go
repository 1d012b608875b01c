// SPDX-License-Identifier: GPL-2.0-only

package share

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Range is a range of ports, with both ends.
type Range struct{ First, Last uint16 }

func (r Range) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Count is how many ports the range has.
func (r Range) Count() int { return int(r.Last) - int(r.First) + 1 }

// Ports are ports of both TCP and UDP, and ids of pings: ranges in their order, with gaps between
// them.
type Ports []Range

// ParsePorts reads "61000-65535,8080", as Linux writes it too; "" is none.
func ParsePorts(text string) (Ports, error) {
	var p Ports
	for word := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if word == "" {
			continue
		}
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		from, e1 := strconv.ParseUint(first, 10, 16)
		to, e2 := strconv.ParseUint(last, 10, 16)
		if errors.Join(e1, e2) != nil || from == 0 || from > to {
			return nil, fmt.Errorf("%q is no list of ports; expected ports and ranges as in 61000-65535,8080", text)
		}
		p = append(p, Range{uint16(from), uint16(to)})
	}
	return p.normal(), nil
}

// normal sorts the ranges, and joins those that touch.
func (p Ports) normal() Ports {
	sorted := slices.Clone(p)
	slices.SortFunc(sorted, func(a, b Range) int { return int(a.First) - int(b.First) })
	var n Ports
	for _, r := range sorted {
		if last := len(n) - 1; last >= 0 && int(r.First) <= int(n[last].Last)+1 {
			n[last].Last = max(n[last].Last, r.Last)
		} else {
			n = append(n, r)
		}
	}
	return n
}

func (p Ports) String() string {
	var words []string
	for _, r := range p {
		words = append(words, r.String())
	}
	return strings.Join(words, ",")
}

// Count is how many ports they are.
func (p Ports) Count() (n int) {
	for _, r := range p {
		n += r.Count()
	}
	return n
}

// Contains reports whether the port is one of them.
func (p Ports) Contains(port uint16) bool {
	return slices.ContainsFunc(p, func(r Range) bool { return r.First <= port && port <= r.Last })
}

// With returns the ports of both.
func (p Ports) With(others Ports) Ports { return slices.Concat(p, others).normal() }

// Without returns the ports that the others are not.
func (p Ports) Without(others Ports) Ports {
	var left Ports
	for _, r := range p.normal() {
		next := int(r.First)
		for _, o := range others.normal() {
			if int(o.Last) < next || o.First > r.Last {
				continue
			}
			if int(o.First) > next {
				left = append(left, Range{uint16(next), o.First - 1})
			}
			next = int(o.Last) + 1
		}
		if next <= int(r.Last) {
			left = append(left, Range{uint16(next), r.Last})
		}
	}
	return left
}

// Both returns the ports that are in both.
func (p Ports) Both(others Ports) Ports { return p.Without(p.Without(others)) }

// Span returns the range in which a stack finds a port for a connection or a datagram, and the
// ports of it that are not the stack's: it begins and ends with ports of the longest run.
func (p Ports) Span() (span Range, holes Ports) {
	if len(p) == 0 {
		return span, nil
	}
	// Ranges that are close together are one with holes.
	const near = 64
	var all Ports
	for _, r := range p {
		if last := len(all) - 1; last >= 0 && int(r.First)-int(all[last].Last) <= near {
			all[last].Last = r.Last
		} else {
			all = append(all, r)
		}
	}
	span = slices.MaxFunc(all, func(a, b Range) int { return Ports{a}.Both(p).Count() - Ports{b}.Both(p).Count() })
	return span, Ports{span}.Without(p)
}

// last returns the last n ports, or all.
func (p Ports) last(n int) Ports {
	var taken Ports
	for i := len(p) - 1; i >= 0 && n > 0; i-- {
		r := p[i]
		if r.Count() > n {
			r.First = uint16(int(r.Last) - n + 1)
		}
		n -= r.Count()
		taken = append(taken, r)
	}
	return taken.normal()
}

// above returns all ports above this one.
func above(port uint16) Ports {
	if port == math.MaxUint16 {
		return nil
	}
	return Ports{{port + 1, math.MaxUint16}}
}
