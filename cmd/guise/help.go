// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is how many columns a line of help has at the most.
const helpWidth = 100

// fitHelp breaks the lines of all commands' help.
func fitHelp(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 100"))
	for _, c := range append(root.Commands(), root) {
		c.Long = flow(c.Long)
	}
}

// flow fills the lines of each paragraph.
func flow(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		var lines []string
		line := ""
		for _, word := range strings.Fields(p) {
			if line != "" && len(line)+1+len(word) > helpWidth {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		paragraphs[i] = strings.Join(append(lines, line), "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}
