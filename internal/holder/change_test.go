// SPDX-License-Identifier: GPL-2.0-only

package holder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// answering is a holder that writes down what it is asked, and what came with it, and answers by turns; after
// the last answer it hangs up.
func answering(t *testing.T, answers ...string) (path string, asked chan string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.sock")
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(listener, &unix.SockaddrUnix{Name: path}), unix.Listen(listener, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	asked = make(chan string, len(answers))
	go func() {
		defer unix.Close(listener)
		client, _, err := unix.Accept(listener)
		if err != nil {
			return
		}
		defer unix.Close(client)
		for _, answer := range answers {
			text, rights := make([]byte, 2048), make([]byte, unix.CmsgSpace(4*4))
			n, m, _, _, err := unix.Recvmsg(client, text, rights, unix.MSG_CMSG_CLOEXEC)
			if err != nil || n == 0 {
				return
			}
			came := ""
			messages, _ := unix.ParseSocketControlMessage(rights[:m])
			for _, message := range messages {
				fds, _ := unix.ParseUnixRights(&message)
				for _, fd := range fds {
					file := os.NewFile(uintptr(fd), "came")
					content, _ := io.ReadAll(file)
					came += fmt.Sprintf(" [%s]", content)
					file.Close()
				}
			}
			asked <- string(text[:n]) + came
			unix.Send(client, []byte(answer), unix.MSG_NOSIGNAL)
		}
	}()
	return path, asked
}

func TestAChangeIsOnePacketWithItsDescriptors(t *testing.T) {
	path, asked := answering(t, "ok", "error there is no \x1b[1minterface up1; ip link shows those there are", "ok")
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := c.Ended()
	file, err := MemoryFile("test", "one")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := c.Change("link up1 packet fd=0", file); err != nil {
		t.Error(err)
	}
	if got := <-asked; got != "change link up1 packet fd=0 [one]" {
		t.Errorf("asked %q", got)
	}
	var refused RefusedError
	if err := c.Change("no up up1"); !errors.As(err, &refused) || err.Error()[:14] == "there is no \x1b[" {
		t.Errorf("got %v", err)
	}
	if got := <-asked; got != "change no up up1" {
		t.Errorf("asked %q", got)
	}
	select {
	case <-ended:
		t.Error("it has ended before it has hung up")
	default:
	}
	if err := c.Change("up up1"); err != nil {
		t.Error(err)
	}
	<-ended
	if err := c.Change("up up1"); !errors.Is(err, ErrEnded) {
		t.Errorf("got %v", err)
	}
}
