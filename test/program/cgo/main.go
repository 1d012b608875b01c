// SPDX-License-Identifier: GPL-2.0-only

// A Go program that uses the C library, as cgo programs do: threads come from
// it, system calls do not. It serves http to itself and runs a child.
package main

import "C"

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"
)

func ask(url string) error {
	reply, err := http.Post(url, "text/plain", strings.NewReader("question"))
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err == nil && string(text) != "question" {
		err = fmt.Errorf("echo of %q", text)
	}
	return err
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Millisecond)
			_, _ = io.Copy(w, r.Body)
		}))
	}()
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 10 {
				if err := ask("http://" + listener.Addr().String()); err != nil {
					fmt.Println(err)
				}
			}
		}()
	}
	all.Wait()
	output, err := exec.Command("echo", "child").Output()
	fmt.Println(string(output), err)
	defer func() { fmt.Println(recover()) }()
	var nowhere *int
	fmt.Println(*nowhere)
}
