// SPDX-License-Identifier: GPL-2.0-only

// generate writes what comes from the structs of internal/config: generate DIRECTORY.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"guise/internal/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY")
		os.Exit(2)
	}
	for name, text := range config.Documents() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}
