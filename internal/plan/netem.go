// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Impairment has what a path does to the packets of one direction.
type Impairment struct {
	Delay time.Duration
	Loss  float64 // percent
	Rate  uint64  // bit/s; 0: unlimited
	Limit uint64  // packets held at most
	Seed  uint64  // of the losses; 0: a different one in each run
}

var rateForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([kmg]?)bit$`)

// ParseRate reads a rate as tc does: 100mbit, 2.5gbit, 64kbit.
func ParseRate(text string) (uint64, error) {
	m := rateForm.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return 0, fmt.Errorf("%q is no rate; expected one as in 100mbit, 2.5gbit or 64kbit", text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[m[2]]
	if err != nil || n < 1000 || n > 1e12 {
		return 0, fmt.Errorf("%q is not a rate that a path can have; expected 1kbit to 1000gbit", text)
	}
	return uint64(math.Round(n)), nil
}

// ParseLoss reads a percentage.
func ParseLoss(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(n >= 0 && n <= 100) {
		return 0, fmt.Errorf("%q is no loss rate; expected a percentage as in 0.2%%", text)
	}
	return n, nil
}

// ParseDelay reads a duration with its unit.
func ParseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("%q is no delay; expected one with its unit, as in 20ms or 1.5s, of at most 1h", text)
	}
	return d, nil
}

// held is the limit of the queue: as many packets as the delay keeps in it when
// they come at the rate, and a thousand more that wait because of the rate. With
// netem's own limit of 1000, packets would be lost in addition to those of --loss.
func (i Impairment) held() uint64 {
	rate := float64(i.Rate)
	if rate == 0 {
		rate = 10e9
	}
	return 1000 + uint64(math.Ceil(rate*i.Delay.Seconds()/8/1500))
}

// Netem returns the words of the plan's qdisc line.
func (i Impairment) Netem() string {
	limit := i.Limit
	if limit == 0 {
		limit = i.held()
	}
	words := []string{"netem"}
	if i.Delay > 0 {
		words = append(words, "delay", fmt.Sprintf("%dus", i.Delay.Microseconds()))
	}
	if i.Loss > 0 {
		words = append(words, "loss", formatPercent(i.Loss))
	}
	if i.Rate > 0 {
		words = append(words, "rate", fmt.Sprintf("%dbit", i.Rate))
	}
	words = append(words, "limit", strconv.FormatUint(limit, 10))
	if i.Seed != 0 {
		words = append(words, "seed", strconv.FormatUint(i.Seed, 10))
	}
	return strings.Join(words, " ")
}

func formatPercent(loss float64) string {
	return strconv.FormatFloat(loss, 'f', -1, 64) + "%"
}

// FormatRate returns a rate in the form that ParseRate reads.
func FormatRate(rate uint64) string {
	for _, unit := range []struct {
		size uint64
		name string
	}{{1e9, "gbit"}, {1e6, "mbit"}, {1e3, "kbit"}} {
		if rate >= unit.size {
			return strconv.FormatFloat(float64(rate)/float64(unit.size), 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatUint(rate, 10) + "bit"
}

// String describes it in words, for the line that reports the path as ready.
func (i Impairment) String() string {
	words := "delay " + i.Delay.String() + ", loss " + formatPercent(i.Loss)
	if i.Rate > 0 {
		words += ", rate " + FormatRate(i.Rate)
	}
	return words
}
