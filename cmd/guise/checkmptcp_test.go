// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"strings"
	"testing"
)

func TestCheckMPTCPReadsWhom(t *testing.T) {
	for where, expected := range map[string]string{
		"www.example.org":      "www.example.org 80",
		"www.example.org:8080": "www.example.org 8080",
		"192.0.2.7:1":          "192.0.2.7 1",
		"2001:db8::7":          "2001:db8::7 80",
		"[2001:db8::7]:443":    "2001:db8::7 443",
		"[2001:db8::7]":        "",
		"host:":                "",
		"host:0":               "",
		"host:65536":           "",
		"host:http":            "",
		":80":                  "",
		"-x":                   "",
		"a b":                  "",
		"http://host/":         "",
		"a\r\nX: y":            "",
	} {
		host, port, err := splitHost(where)
		if found := host + " " + port; err == nil && found != expected || err != nil && expected != "" {
			t.Errorf("%q is %q, %v; expected %q", where, found, err, expected)
		}
	}
}

func TestCheckMPTCPReadsWhereToListen(t *testing.T) {
	for where, expected := range map[string]string{
		"8080":              "- 8080",
		"192.0.2.7:8080":    "192.0.2.7 8080",
		"[2001:db8::7]:443": "2001:db8::7 443",
		"host:80":           "",
		"0":                 "",
		"x":                 "",
		":80":               "",
	} {
		address, port, err := splitListen(where)
		if found := address + " " + port; err == nil && found != expected || err != nil && expected != "" {
			t.Errorf("%q is %q, %v; expected %q", where, found, err, expected)
		}
	}
}

func TestCheckMPTCPRefusesWhatDoesNotFitTogether(t *testing.T) {
	for words, reason := range map[string]string{
		"":                             "expected guise check-mptcp HOST[:PORT]",
		"a b":                          "expected guise check-mptcp HOST[:PORT]",
		"--host --stack x a":           "expected one of them",
		"--host --link tap a":          "--link would be of a stack that is made",
		"--host --uplink x a":          "--uplink would be of a stack that is made",
		"--stack x --ip 192.0.2.7/8 a": "--ip would be of a stack that is made",
		"--timeout 0s a":               "--timeout is more than nothing",
		"--serve a":                    "--serve a: the port is a number",
		"a:b":                          "the port is a number",
		"--frobnicate a":               "unknown flag --frobnicate",
	} {
		newGuise(t, append([]string{"check-mptcp"}, strings.Fields(words)...)...).says(t, 2, reason)
	}
}
