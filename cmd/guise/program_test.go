// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The command line and the preload library load the same programs without their capabilities: else
// it would depend on who starts a program which stack it is on.
func TestCapabilitiesThatAStackMakesNeedlessAreThoseOfThePreloadLibrary(t *testing.T) {
	header, err := os.ReadFile("/usr/include/linux/capability.h")
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]string{}
	for _, define := range regexp.MustCompile(`(?m)^#define (CAP_\w+)\s+(\d+)$`).FindAllStringSubmatch(string(header), -1) {
		number[define[1]] = define[2]
	}
	source, err := os.ReadFile("../../preload/process/capabilities.c")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`#define FOR_NETWORK(?:.*\\\n)+.*`).FindString(string(source))
	inC := 0
	for _, name := range regexp.MustCompile(`CAP_\w+`).FindAllString(list, -1) {
		bit, err := strconv.Atoi(number[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		inC |= 1 << bit
	}
	if inC != forNetwork {
		t.Errorf("%#x in preload/process/capabilities.c, %#x in cmd/guise/program.go", inC, forNetwork)
	}
}
