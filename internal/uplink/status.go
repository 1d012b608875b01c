// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"cmp"
	"slices"
	"strings"

	"guise/internal/plain"
)

// Status is what the follower last told the stack's holder of an uplink.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Why   string `json:"why,omitempty"` // it is not usable, or a backup path now
}

// Told returns the uplinks of a stack, by name, from what its holder tells.
func Told(told map[string]string) (all []Status) {
	for key, value := range told {
		if name, ok := strings.CutPrefix(key, toldUplinks); ok {
			state, why, _ := strings.Cut(value, ": ")
			all = append(all, Status{plain.Text(name), State(plain.Text(state)), plain.Text(why)})
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
