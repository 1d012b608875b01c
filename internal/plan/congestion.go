// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"regexp"
	"slices"

	"guise/internal/suggest"
)

// What one can be called (TCP_CA_NAME_MAX, MPTCP_SCHED_NAME_MAX).
var congestionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,15}$`)

// CheckCongestionControl refuses a name that is none of those that the image has. If it is not known
// which it has, they are nil, and only the stack can tell.
func CheckCongestionControl(name string, has []string) error {
	return checkName("congestion control", name, has)
}

// CheckScheduler does the same for schedulers of Multipath TCP.
func CheckScheduler(name string, has []string) error {
	return checkName("MPTCP scheduler", name, has)
}

func checkName(what, name string, has []string) error {
	switch {
	case has == nil && congestionName.MatchString(name), slices.Contains(has, name):
		return nil
	case has == nil:
		return fmt.Errorf("%q cannot be the name of a %s; expected 1 to 15 letters, digits, '_' or '-'", name, what)
	}
	return fmt.Errorf("unknown %s %q; %s", what, name, suggest.Hint(name, has))
}
