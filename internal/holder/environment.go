// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sanitizer is the path of the sanitizers' runtime. A preload library that is built with
// sanitizers needs it as the next one; the linker sets this in such a build (Makefile).
var sanitizer string

// Environment returns environ with the variables that put a program on the stack.
// Libraries that are preloaded already stay, and come first.
func Environment(environ []string, preload string, ticket int, mptcp bool) ([]string, error) {
	if strings.ContainsFunc(preload, separates) {
		return nil, fmt.Errorf("%s cannot be preloaded: the loader takes blanks and colons in $LD_PRELOAD for separators; "+
			"move guise to another folder", preload)
	}
	preloads := preload
	if sanitizer != "" {
		preloads += ":" + sanitizer
	}
	env := slices.DeleteFunc(WithoutStack(environ), func(v string) bool {
		before, ok := strings.CutPrefix(v, preloadVariable)
		if ok && before != "" {
			preloads = before + ":" + preloads
		}
		return ok
	})
	env = append(env, preloadVariable+preloads, "GUISE_STACK="+strconv.Itoa(ticket))
	if mptcp {
		env = append(env, "GUISE_MPTCP=1")
	}
	return env, nil
}

const preloadVariable = "LD_PRELOAD="

// holderEnvironment returns environ for the holder, which is on no stack, and whose
// working directory is another one.
func holderEnvironment(environ []string) []string {
	env := WithoutStack(environ)
	for i, v := range env {
		if image, ok := strings.CutPrefix(v, "GUISE_KERNEL="); ok && image != "" {
			if absolute, err := filepath.Abs(image); err == nil {
				env[i] = "GUISE_KERNEL=" + absolute
			}
		}
	}
	return env
}

// WithoutStack returns environ without the variables that put a program on a stack:
// guise itself may have been started by a program on one.
func WithoutStack(environ []string) []string {
	var env []string
	for _, v := range environ {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "GUISE_STACK", "GUISE_PLACE", "GUISE_PRELOAD", "GUISE_MPTCP", "GUISE_RESOLV_CONF", "GUISE_HOSTS":
		case "LD_PRELOAD":
			others := slices.DeleteFunc(strings.FieldsFunc(value, separates),
				func(p string) bool { return filepath.Base(p) == Preload || p == sanitizer })
			if len(others) > 0 {
				env = append(env, preloadVariable+strings.Join(others, ":"))
			}
		default:
			env = append(env, v)
		}
	}
	return env
}

// separates reports whether r ends a path for the loader.
func separates(r rune) bool { return strings.ContainsRune(": \t\n", r) }

// WithoutPreload returns the environment of a program that joins its stack by itself.
func WithoutPreload(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, preloadVariable) })
}
