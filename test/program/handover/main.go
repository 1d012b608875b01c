// SPDX-License-Identifier: GPL-2.0-only

// A Go program that uses the C library, and hands a listening socket to its children, as servers
// do that restart without losing a connection: os/exec's ExtraFiles. It is its own client.
package main

import "C"

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

const generations = 3

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// start makes a child that has the listener as descriptor 3.
func start(listener *net.TCPListener, generation int, change func(*exec.Cmd)) *exec.Cmd {
	file, err := listener.File()
	check(err)
	defer func() { _ = file.Close() }()
	self, err := os.Executable()
	check(err)
	child := exec.Command(self, strconv.Itoa(generation))
	child.ExtraFiles = []*os.File{file}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	change(child)
	check(child.Start())
	return child
}

func unchanged(*exec.Cmd) {}

// serve answers what clients say. One that says restart is answered by this process yet; whoever
// comes after it, by the next generation.
func serve(generation int) {
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	check(err)
	for {
		client, err := listener.Accept()
		check(err)
		line, err := bufio.NewReader(client).ReadString('\n')
		check(err)
		if line == "restart\n" {
			start(listener.(*net.TCPListener), generation+1, unchanged)
		}
		_, err = fmt.Fprintf(client, "generation %d: %s", generation, line)
		check(err)
		check(client.Close())
		if line == "restart\n" || line == "end\n" {
			return
		}
	}
}

func ask(address net.Addr, line string) {
	server, err := net.Dial("tcp", address.String())
	check(err)
	_, err = fmt.Fprintln(server, line)
	check(err)
	answer, err := io.ReadAll(server)
	check(err)
	fmt.Print(string(answer))
	check(server.Close())
}

// The parent's own affairs are as before: signals, faults, programs that are not there.
func unharmed(listener *net.TCPListener) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	file, err := listener.File()
	check(err)
	child := exec.Command("/no/such/program")
	child.ExtraFiles = []*os.File{file}
	fmt.Println(child.Start())
	check(file.Close())
	child = exec.Command("/bin/true")
	check(child.Run())
	check(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	fmt.Println(<-signals)
	func() {
		defer func() { fmt.Println(recover()) }()
		var nowhere *int
		fmt.Println(*nowhere)
	}()
}

func main() {
	if len(os.Args) > 1 {
		generation, err := strconv.Atoi(os.Args[1])
		check(err)
		serve(generation)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	tcp, address := listener.(*net.TCPListener), listener.Addr()
	unharmed(tcp)
	changes := map[string]func(*exec.Cmd){
		"as it is": unchanged,
		"with an environment of its own": func(c *exec.Cmd) {
			c.Env = []string{"HOME=/"}
		},
		"in a session and a folder of its own": func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			c.Dir = "/"
		},
		"with a descriptor of its process": func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{PidFD: new(int)}
		},
	}
	for _, name := range strings.Split("as it is,with an environment of its own,"+
		"in a session and a folder of its own,with a descriptor of its process", ",") {
		fmt.Println(name)
		child := start(tcp, 1, changes[name])
		ask(address, "hello")
		ask(address, "end")
		check(child.Wait())
	}
	fmt.Println("graceful restarts")
	child := start(tcp, 1, unchanged)
	check(listener.Close())
	for range generations {
		ask(address, "hello")
		ask(address, "restart")
	}
	check(child.Wait())
	ask(address, "hello")
	ask(address, "end")
}
