// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The memory of a stack: the default, the least with which it boots, and the most that
// fits into the addresses of a region (lib/region/create.c).
const (
	DefaultMemory = 256 << 20
	LeastMemory   = 32 << 20
	MostMemory    = 4076 << 20
)

// Sysctl is one of the stack's own sysctls, Key with dots or slashes.
type Sysctl struct {
	Key, Value string
}

func (s Sysctl) String() string { return s.Key + "=" + s.Value }

var sysctlKey = regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+$`)

// ParseSysctl reads KEY=VALUE. Only the stack knows whether it has that key.
func ParseSysctl(text string) (Sysctl, error) {
	key, value, ok := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok || value == "":
		return Sysctl{}, fmt.Errorf("%q has no value; expected KEY=VALUE, as in net.ipv4.tcp_sack=0", text)
	case !sysctlKey.MatchString(key):
		return Sysctl{}, fmt.Errorf("%q is no sysctl; expected a name such as net.ipv4.tcp_sack", key)
	}
	if err := oneLine(value); err != nil {
		return Sysctl{}, fmt.Errorf("the value of %s %w", key, err)
	}
	return Sysctl{key, value}, nil
}

// names reports whether word is one of the words of the key.
func (s Sysctl) names(word string) bool {
	for _, part := range strings.FieldsFunc(s.Key, func(r rune) bool { return r == '.' || r == '/' }) {
		if part == word {
			return true
		}
	}
	return false
}

var memorySize = regexp.MustCompile(`^([0-9]+)([KMGkmg]?)(i?[Bb])?$`)

// parseSize reads a number of bytes, or one with one of the letters K, M and G.
func parseSize(text string) (n uint64, ok bool) {
	m := memorySize.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	shift := map[string]uint{"": 0, "k": 10, "m": 20, "g": 30}[strings.ToLower(m[2])]
	if err != nil || n > math.MaxUint64>>shift {
		return math.MaxUint64, true
	}
	return n << shift, true
}

// ParseMemory reads a size in bytes, or with one of the letters K, M and G.
func ParseMemory(text string) (uint64, error) {
	n, ok := parseSize(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("%q is no size; expected a number of bytes, or one as in 64M or 1G", text)
	case n > MostMemory:
		return 0, fmt.Errorf("%q is more memory than a stack can have; expected at most %dM", text, MostMemory>>20)
	case n < LeastMemory:
		return 0, fmt.Errorf("%q is too little memory for a stack; expected at least %dM", text, LeastMemory>>20)
	}
	return n, nil
}

// formatMemory returns a size in the plan's form.
func formatMemory(n uint64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%dM", n>>20)
	}
	return strconv.FormatUint(n, 10)
}

// Privileges are the values of the setting of that name, with the default first.
var Privileges = []string{"all", "host"}

// CheckUser refuses what cannot be the name of a user. Whether there is one, and whether this
// process may become it, the holder finds.
func CheckUser(name string) error {
	if name == "" || len(name) > 256 || strings.ContainsAny(name, " \t\r\n#:/") {
		return fmt.Errorf("%q is no name of a user, nor the number of one", name)
	}
	return nil
}

// CheckPrivileges refuses any other value.
func CheckPrivileges(text string) error {
	if !slices.Contains(Privileges, text) {
		return fmt.Errorf("%q are no privileges; expected all (every program may do everything on the stack) "+
			"or host (as its capabilities on the host say)", text)
	}
	return nil
}

var stackName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// CheckName refuses a text that cannot be the name of a stack.
func CheckName(name string) error {
	if !stackName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a stack; expected 1 to 32 letters, digits, '.', '_' or '-', "+
			"beginning with a letter or digit", name)
	}
	return nil
}
