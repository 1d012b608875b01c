// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"guise/internal/holder"
	"guise/internal/plain"
	"guise/internal/plan"
	"guise/internal/uplink/opener"
)

// Command is the first argument of guise when it is to follow the host for a stack; the second is the
// path of the stack's control socket.
const Command = "follow-uplinks"

// Descriptors of the follower (docs/plan.md).
const (
	configFD = 3 + iota
	keepFD
	reportFD
	openerFD // /dev/null without one
)

// Config is what the command line tells the follower.
type Config struct {
	MPTCP   bool           `json:"mptcp"`
	Journal string         `json:"journal"` // path of the stack's journal
	Ports   string         `json:"ports"`   // of the stack, where it shares addresses of the host
	Opener  bool           `json:"opener"`  // something with rights opens the uplinks (internal/uplink/opener)
	User    bool           `json:"user"`    // the stack is another user's, who has no rights over the host's interfaces
	Uplinks []*plan.Uplink `json:"uplinks"`
}

// File makes the descriptor of the config. The follower also keeps in it what it must know when it is
// started again (memory.go).
func (c *Config) File() (*os.File, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return holder.MemoryFile("guise-uplinks", string(text))
}

func readConfig(file *os.File) (*Config, error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, memoryOffset))
	if err != nil {
		return nil, fmt.Errorf("cannot read the config of the uplinks: %w", err)
	}
	for i, c := range text {
		if c == 0 {
			text = text[:i]
			break
		}
	}
	c := &Config{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("the config of the uplinks cannot be read: %w", err)
	}
	return c, nil
}

// keeper has the warden keep descriptors until the end of the stack.
type keeper struct{ fd int }

// keep replaces what the warden keeps in a slot.
func (k keeper) keep(slot int, files []*os.File) error {
	message := binary.NativeEndian.AppendUint32(nil, uint32(slot))
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(k.fd, message, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("cannot leave descriptors with the holder: %w", err)
	}
	return nil
}

// report tells the command line, which waits, what came of the start.
type report struct {
	file  *os.File
	began time.Time
}

func (r *report) line(word, text string) {
	fmt.Fprintln(r.file, word+" "+plain.Text(text))
}

// end says how the start ended, and then no more.
func (r *report) end(f *follower, ok bool, names []string) {
	if ok {
		for _, sentence := range f.explain(names) {
			r.line("note", "uplink "+sentence)
		}
		fmt.Fprintln(r.file, "ok")
	} else {
		r.line("error", "no uplink can be used: "+list(f.explain(names)))
	}
	r.file.Close()
	r.file = nil
}

// RunFollow is the whole process; args are those after its name.
func RunFollow(args []string) error {
	if len(args) != 1 {
		return errors.New("this command is guise's own")
	}
	runtime.GOMAXPROCS(1)
	for fd := configFD; fd <= openerFD; fd++ {
		unix.CloseOnExec(fd)
	}
	done := make(chan error)
	// Not on the first thread, which is locked: to change threads costs more than the work.
	go func() { done <- follow(args[0]) }()
	return <-done
}

func follow(control string) error {
	configFile := os.NewFile(configFD, "config")
	reports := &report{os.NewFile(reportFD, "report"), time.Now()}
	c, err := readConfig(configFile)
	if err != nil {
		return err
	}
	stack, err := holder.Dial(control)
	if err != nil {
		return err
	}
	h, err := newHost(netns.None())
	if err != nil {
		return err
	}
	f := &follower{mptcp: c.MPTCP, stack: stack, told: map[string]string{}}
	f.say = func(format string, args ...any) { fmt.Fprintf(os.Stderr, "guise: "+format+"\n", args...) }
	for i, u := range c.Uplinks {
		f.paths = append(f.paths, newPath(u, i))
	}
	memory := &memory{configFile}
	w := newWays(c, control, keeper{keepFD}, memory)
	if c.Opener {
		w.useOpener(opener.From(os.NewFile(openerFD, "opener")))
	}
	f.open = w.open
	f.look = func() (map[string]*device, error) {
		w.take(f.paths)
		w.lose(f)
		return h.look(f.names())
	}
	b := &budgets{control: control, memory: memory}
	f.memory = memory
	if err := f.begin(); err != nil {
		return err
	}
	b.begin(f.paths)
	if err := f.loop(h, w, b, reports, stack.Ended()); err != nil {
		return err
	}
	f.giveBack()
	return nil
}

// giveBack is for the end of the stack: its networks can give its addresses to others. The warden
// waits a moment for that (holder/warden/follower.c).
func (f *follower) giveBack() {
	var all sync.WaitGroup
	for _, p := range f.paths {
		if p.link != nil && p.link.giveBack != nil {
			all.Add(1)
			go func() {
				defer all.Done()
				p.link.giveBack()
			}()
		}
	}
	all.Wait()
}

func (f *follower) names() (names []string) {
	for _, p := range f.paths {
		names = append(names, p.Name)
	}
	return names
}

// loop runs until the stack has ended.
func (f *follower) loop(h *host, w *ways, b *budgets, r *report, ended <-chan struct{}) error {
	events, failed := make(chan struct{}, 1), make(chan error, 1)
	var heard indices
	go func() {
		for {
			ours, err := h.await(heard.get())
			if err != nil {
				failed <- err
				return
			}
			if ours {
				poke(events)
			}
		}
	}()
	timer := newAlarm()
	settle := time.Time{}
	all := true // at the start nothing waits
	for {
		all = b.look(f.paths, time.Now()) || all
		left, err := f.turn(all)
		switch {
		case errors.Is(err, holder.ErrEnded):
			return nil
		case err != nil:
			return err
		}
		heard.set(f.paths)
		now := time.Now()
		switch {
		case !left:
			settle = time.Time{}
		case settle.IsZero():
			settle = now.Add(settleTime)
		}
		if r.file != nil && !left {
			if ok, final := f.ready(now.Sub(r.began)); final {
				r.end(f, ok, h.names())
			}
		}
		timer.set(soonest(settle, f.next(), b.next, r.next(now)))
		select {
		case <-events:
		case <-w.changed:
		case <-timer.C:
		case err := <-failed:
			return err
		case <-ended:
			return nil
		}
		now = time.Now()
		all = due(settle, now) || due(f.next(), now)
	}
}

// next is when the report has to be thought of again.
func (r *report) next(now time.Time) time.Time {
	if r.file == nil {
		return time.Time{}
	}
	if waited := now.Sub(r.began); waited < shortWait {
		return r.began.Add(shortWait)
	}
	return r.began.Add(longWait)
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func due(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// soonest is the first of the times that are not zero.
func soonest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
