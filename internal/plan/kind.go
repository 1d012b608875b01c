// SPDX-License-Identifier: GPL-2.0-only

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is a kind of link: a line of lib/link/kinds.h, from which kinds.go is written.
type Kind struct {
	Name     string
	Ethernet bool // else IP packets alone
	MTU      int  // of a link if the user gives none
	MTUMost  int  // that it may have
	Forms    []string
	Meaning  string
}

// None is written for no link at all.
const None = "none"

// KindOf returns the kind of that name, or nil.
func KindOf(name string) *Kind {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &Kinds[i]
}

// LinkForms returns the forms of a --link.
func LinkForms() (forms []string) {
	for _, k := range Kinds {
		forms = append(forms, k.Forms...)
	}
	return append(forms, None)
}

// takes reports whether the kind has that form. rest is what follows the colon: IFNAME, PATH,
// fd=N, or "" for the name alone.
func (k *Kind) takes(rest string) bool {
	if rest == "" {
		return slices.Contains(k.Forms, k.Name)
	}
	return slices.Contains(k.Forms, k.Name+":"+rest)
}

// expected returns how the kind is written, and what it is, for messages.
func (k *Kind) expected() string { return strings.Join(k.Forms, ", ") + " for " + k.Meaning }

// parseKind reads KIND[:REST].
func (l *Link) parseKind(text string) error {
	name, rest, _ := strings.Cut(text, ":")
	kind := KindOf(name)
	if kind == nil {
		return fmt.Errorf("unknown kind of link %q; valid are %s", name, strings.Join(LinkForms(), ", "))
	}
	l.Kind = name
	number, isFD := strings.CutPrefix(rest, "fd=")
	switch {
	case rest == "" && kind.takes(""):
		return nil
	case rest == "":
		return fmt.Errorf("%s: expected %s", name, kind.expected())
	case isFD && kind.takes("fd=N"):
		fd, err := strconv.Atoi(number)
		if err != nil || fd < 0 {
			return fmt.Errorf("%s: expected the number of an open descriptor, as in %s:fd=3", text, name)
		}
		l.FD = fd
		return nil
	case kind.takes("PATH"):
		l.Path = rest
		return nil
	case kind.takes("IFNAME"):
		l.Device = rest
		return CheckDevice(rest)
	}
	var all []string
	for _, k := range Kinds {
		all = append(all, k.expected())
	}
	return fmt.Errorf("%s is no form of %s; expected %s", text, name, strings.Join(all, "; "))
}
