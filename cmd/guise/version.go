// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"guise/internal/image"
	"guise/internal/plan"
)

// Set when linking (-ldflags "-X main.version=...").
var version = "0.1.0"

// versionText is what this guise is, and what it has. The images are only asked when it is.
func versionText() string {
	text := fmt.Sprintf("guise %s (%s, %s/%s)\n"+
		"links: %s\n",
		version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		strings.Join(plan.LinkForms(), ", "))
	kernel, err := image.Default()
	if err != nil {
		return text + fmt.Sprintf("kernel: %v\n", err)
	}
	text += fmt.Sprintf("kernel: %s, Linux %s\ncongestion control: %s\n", kernel.Name(), kernel.Linux, strings.Join(kernel.Congestion, ", "))
	if len(kernel.Schedulers) > 0 { // Linux 6.1 has none
		text += fmt.Sprintf("MPTCP scheduler: %s\n", strings.Join(kernel.Schedulers, ", "))
	}
	for _, other := range image.All() {
		if len(other.Extensions) == 0 {
			continue
		}
		text += fmt.Sprintf("extension: %s (%s, Linux %s)\n", strings.Join(other.Extensions, ", "), other.Name(), other.Linux)
		for _, more := range []struct {
			what        string
			has, before []string
		}{
			{"congestion control", other.Congestion, kernel.Congestion},
			{"MPTCP scheduler", other.Schedulers, kernel.Schedulers},
		} {
			added := slices.DeleteFunc(slices.Clone(more.has), func(name string) bool { return slices.Contains(more.before, name) })
			if len(added) > 0 {
				text += fmt.Sprintf("  %s: %s\n", more.what, strings.Join(added, ", "))
			}
		}
	}
	return text
}
