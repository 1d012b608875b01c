// SPDX-License-Identifier: GPL-2.0-only

// web is a server or a client with Go's own network code: `web serve ADDR`, where PUT
// answers with a checksum and GET /N with N bytes; `web get URL...`, which prints the
// checksum of each; `web put URL N`.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// pattern is a stream that does not repeat itself at any power of two.
type pattern int

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte((int(*p) + i) % 251)
	}
	*p += pattern(len(b))
	return len(b), nil
}

func bytes(n int64) io.Reader { return io.LimitReader(new(pattern), n) }

func sum(r io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return fmt.Sprintf("%d %x", n, h.Sum(nil)), err
}

func handle(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		text, err := sum(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, text)
		return
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/"), 10, 64)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(n))
	w.Header().Set("X-Client", r.RemoteAddr)
	io.Copy(w, bytes(n))
}

func serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving", l.Addr())
	return http.Serve(l, http.HandlerFunc(handle))
}

func get(url string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := sum(answer.Body)
	fmt.Println(answer.StatusCode, text)
	return err
}

func put(url, size string) error {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPut, url, bytes(n))
	if err != nil {
		return err
	}
	request.ContentLength = n
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Print(string(text))
	return err
}

func run(words []string) error {
	switch {
	case len(words) == 2 && words[0] == "serve":
		return serve(words[1])
	case len(words) == 3 && words[0] == "put":
		return put(words[1], words[2])
	case len(words) >= 2 && words[0] == "get":
		for _, url := range words[1:] {
			if err := get(url); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("usage: web serve ADDR | get URL... | put URL N")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		var number syscall.Errno
		if errors.As(err, &number) {
			fmt.Println(number.Error())
		} else {
			fmt.Println(err)
		}
		os.Exit(1)
	}
}
