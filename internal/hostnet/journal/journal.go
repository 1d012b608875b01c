// SPDX-License-Identifier: GPL-2.0-only

// Package journal lists what guise changes on the host, so that any later guise
// process can undo it.
//
// A journal is a small JSON file. It is written before the first change that it
// names is made, and removed after the last was undone. So at every moment it
// names all changes that have to be undone, and perhaps some that were never
// made. To undo a step twice, or one that was not made, therefore has no effect.
//
// The owner of a journal is the process that will undo it: first `guise run`
// itself, then the holder of the stack, which does so before it ends. When the
// owner is gone and the journal is there, the owner was killed: the next guise
// command undoes it (hostnet.Sweep).
//
// All journals of a user are in one folder, and are read and written under its
// lock. Several stacks may need one sysctl. Each writes it down with the value
// from before the first of them (Adopt), and only the last one restores that
// value (Shared).
//
// A journal makes guise change the host, with the rights of whoever reads it. So it is read only
// from a file of this user's own, in a folder of this user's own, and it may name only what
// guise itself changes (read.go).
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"guise/internal/hostnet/netns"
	"guise/internal/rundir"
)

// ErrNone is returned when there is no folder for journals, and so no journal.
var ErrNone = rundir.ErrNone

// Locked is the folder of the journals, locked by this process.
type Locked struct{ *rundir.Locked }

// Directory is the path of this user's journals.
func Directory() string { return rundir.Path() }

// Lock makes the folder if there is none, and locks it.
func Lock() (*Locked, error) {
	l, err := rundir.Lock()
	return &Locked{l}, err
}

// LockExisting locks a folder of journals; ErrNone if there is none.
func LockExisting(path string) (*Locked, error) {
	l, err := rundir.LockExisting(path)
	return &Locked{l}, err
}

// Kinds of steps.
const (
	Table  = "table"  // Family, Name: an nftables table to delete
	Ports  = "ports"  // Set: ports to take out of the list ReservedPorts
	Sysctl = "sysctl" // Key, Set, Old: to write Old again if the value is still Set
	Device = "device" // Name, Index: a tap to delete
)

// ReservedPorts is the sysctl that has the ports of all stacks. It is no step of its own kind:
// each stack adds to what is there, and takes out no more than that.
const ReservedPorts = "net/ipv4/ip_local_reserved_ports"

// Step is one change, with what is needed to undo it.
type Step struct {
	Kind   string `json:"kind"`
	Family string `json:"family,omitempty"` // "ip", "ip6" or "netdev"
	Name   string `json:"name,omitempty"`
	Index  int    `json:"index,omitempty"`
	Key    string `json:"key,omitempty"` // path below /proc/sys
	Set    string `json:"set,omitempty"`
	Old    string `json:"old,omitempty"`
}

// Journal has the changes for one stack.
type Journal struct {
	Version      int      `json:"version"`
	Owner        Process  `json:"owner"`
	Boot         string   `json:"boot"`          // the host's boot in which they were made
	PIDNamespace uint64   `json:"pid_namespace"` // to which Owner's pid belongs
	Namespace    netns.ID `json:"network_namespace"`
	Steps        []Step   `json:"steps"`

	path string
}

const (
	version = 1
	suffix  = ".json"
)

// New returns an empty journal of the calling process, not yet written. Its ID is
// base, or base with a number if a journal of that ID exists.
func (l *Locked) New(base string) (*Journal, error) {
	here, err := here()
	if err != nil {
		return nil, err
	}
	owner, err := ProcessOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	namespace, err := netns.Current()
	if err != nil {
		return nil, err
	}
	j := &Journal{Version: version, Owner: owner, Boot: here.boot, PIDNamespace: here.pids, Namespace: namespace}
	for i := 1; ; i++ {
		j.path = filepath.Join(l.Path(), base+suffix)
		if i > 1 {
			j.path = filepath.Join(l.Path(), fmt.Sprintf("%s_%d%s", base, i, suffix))
		}
		if _, err := os.Lstat(l.file(j)); errors.Is(err, fs.ErrNotExist) {
			return j, nil
		} else if err != nil {
			return nil, l.Explain(err)
		}
	}
}

// ID is the name of the journal, which no other one has.
func (j *Journal) ID() string { return strings.TrimSuffix(filepath.Base(j.path), suffix) }

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

// Save writes the journal. After a failure the old text is still there.
func (l *Locked) Save(j *Journal) error {
	text, err := json.MarshalIndent(j, "", "\t")
	if err != nil {
		return err
	}
	// Not to Path() itself: on a full disk the old text would be lost. A draft that a guise left
	// that was killed is not written to: it could be a link.
	draft := l.file(j) + ".new"
	os.Remove(draft)
	if err = write(draft, append(text, '\n')); err == nil {
		err = os.Rename(draft, l.file(j))
	}
	if err != nil {
		os.Remove(draft)
		return fmt.Errorf("cannot note what is to be undone: %w ($GUISE_RUNDIR names another place)", l.Explain(err))
	}
	return nil
}

func write(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// file is the path by which the journal is reached (rundir.Folder.At).
func (l *Locked) file(j *Journal) string { return l.At(filepath.Base(j.path)) }

// HandOver makes another process the owner of the journal at path. It is no error
// if the new owner has undone and removed it already.
func (l *Locked) HandOver(j *Journal, pid int) error {
	if _, err := os.Lstat(l.file(j)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	owner, err := ProcessOf(pid)
	if err != nil {
		return err
	}
	// As it is now: what follows the host's interfaces may have added to it.
	now, err := l.Load(j.path)
	if err != nil {
		return err
	}
	now.Owner = owner
	return l.Save(now)
}

// Remove deletes the journal, when everything is undone.
func (l *Locked) Remove(j *Journal) error {
	if err := os.Remove(l.file(j)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.Explain(err)
	}
	return nil
}

// Load reads the journal at path, which must be in the locked folder. If there is
// none, the error wraps fs.ErrNotExist.
func (l *Locked) Load(path string) (*Journal, error) {
	path = filepath.Join(l.Path(), filepath.Base(path))
	text, err := l.read(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

// List reads all journals. Those that cannot be read are left out, and the
// error says why.
func (l *Locked) List() ([]*Journal, error) {
	entries, err := os.ReadDir(l.At("."))
	if err != nil {
		return nil, l.Explain(err)
	}
	var journals []*Journal
	var failed []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		j, err := l.Load(e.Name())
		if err != nil {
			failed = append(failed, err)
			continue
		}
		journals = append(journals, j)
	}
	return journals, errors.Join(failed...)
}

// Adopt copies the sysctls of other journals of the same network namespace: from
// now on this one needs them, too.
func (j *Journal) Adopt(others []*Journal) {
	for _, other := range others {
		if other.path == j.path || other.Namespace != j.Namespace {
			continue
		}
		for _, s := range other.Steps {
			if _, held := j.Sysctl(s.Key); s.Kind == Sysctl && !held {
				j.Steps = append(j.Steps, s)
			}
		}
	}
}

// Shared reports whether a journal other than j needs the sysctl as well.
func (j *Journal) Shared(others []*Journal, key string) bool {
	for _, other := range others {
		if other.path == j.path || other.Namespace != j.Namespace {
			continue
		}
		if _, held := other.Sysctl(key); held {
			return true
		}
	}
	return false
}

// Sysctl is the journal's step for that sysctl, if it has one.
func (j *Journal) Sysctl(key string) (Step, bool) {
	for _, s := range j.Steps {
		if s.Kind == Sysctl && s.Key == key {
			return s, true
		}
	}
	return Step{}, false
}

// Expired reports whether the host has booted since the journal was written: then
// nothing that it names exists any more.
func (j *Journal) Expired() bool {
	here, err := here()
	return err == nil && here.boot != j.Boot
}

// Abandoned reports whether the owner is gone. That is not known if its pid belongs
// to another PID namespace: the journal is left to guise commands in that one.
func (j *Journal) Abandoned() bool {
	here, err := here()
	if err != nil || here.pids != j.PIDNamespace {
		return false
	}
	return !j.Owner.Alive()
}

// place is the boot and the PID namespace of this process, which never change.
type place struct {
	boot string
	pids uint64
}

var here = sync.OnceValues(func() (place, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return place{}, err
	}
	pids, err := netns.Inode("/proc/self/ns/pid")
	return place{strings.TrimSpace(string(boot)), pids}, err
})
