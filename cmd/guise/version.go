// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"fmt"
	"runtime"
	"strings"

	"guise/internal/plan"
)

// Set when linking (-ldflags "-X main.version=...").
var version = "0.1.0"

// versionText is what this guise is, and what it was built with.
func versionText() string {
	return fmt.Sprintf("guise %s (%s, %s/%s)\n"+
		"links: %s\n"+
		"congestion control: %s\n",
		version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		strings.Join(plan.LinkForms(), ", "), strings.Join(plan.CongestionControls, ", "))
}
