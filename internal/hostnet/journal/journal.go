// SPDX-License-Identifier: GPL-2.0-only

// Package journal keeps account of what guise changes on the host, so that it
// can be undone by whoever is left to do it.
//
// A journal is a small JSON file. It is written before the first change it
// names is made, and removed after the last was undone, so at every moment it
// names all there is to undo, and perhaps some changes that were never made:
// undoing a step is therefore idempotent.
//
// The owner of a journal is the process that will undo it: first `guise run`
// itself, then the holder of the stack, whose last act it is. When the owner
// is gone and the journal is not, the owner was killed: the next guise command
// undoes it (hostnet.Sweep).
//
// All journals of a user lie in one directory, and everything happens under
// its lock. A sysctl can be needed by several stacks: each notes it with the
// value from before the first of them (Adopt), and only the last one writes
// that back (Shared).
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

// ErrNone is returned when there is no folder that journals could be in.
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
	Sysctl = "sysctl" // Key, Set, Old: to write Old again where Set still stands
	Device = "device" // Name, Index: a tap to delete
)

// Step is one change, and what is needed to undo it.
type Step struct {
	Kind   string `json:"kind"`
	Family string `json:"family,omitempty"` // "ip" or "ip6"
	Name   string `json:"name,omitempty"`
	Index  int    `json:"index,omitempty"`
	Key    string `json:"key,omitempty"` // path below /proc/sys
	Set    string `json:"set,omitempty"`
	Old    string `json:"old,omitempty"`
}

// Journal is one stack's account of the host.
type Journal struct {
	Version      int      `json:"version"`
	Owner        Process  `json:"owner"`
	Boot         string   `json:"boot"`          // the host's boot that this happened in
	PIDNamespace uint64   `json:"pid_namespace"` // that Owner's pid belongs to
	Namespace    netns.ID `json:"network_namespace"`
	Steps        []Step   `json:"steps"`

	path string
}

const (
	version = 1
	suffix  = ".json"
)

// New is an empty journal of the calling process, not yet written. Its ID is
// base, or base with a number when a journal of that ID exists.
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
		if _, err := os.Lstat(j.path); errors.Is(err, fs.ErrNotExist) {
			return j, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// ID is the journal's own name, unique among those that exist.
func (j *Journal) ID() string { return strings.TrimSuffix(filepath.Base(j.path), suffix) }

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

// Save writes the journal, whole or not at all.
func (l *Locked) Save(j *Journal) error {
	text, err := json.MarshalIndent(j, "", "\t")
	if err != nil {
		return err
	}
	// Not Path() itself: a full disk must not cost us the old text.
	draft := j.path + ".new"
	if err = os.WriteFile(draft, append(text, '\n'), 0o600); err == nil {
		err = os.Rename(draft, j.path)
	}
	if err != nil {
		os.Remove(draft)
		return fmt.Errorf("cannot note what is to be undone: %w ($GUISE_RUNDIR names another place)", err)
	}
	return nil
}

// HandOver makes another process the owner of the journal at path. That the
// journal is gone already (the new owner was quick) is no error.
func (l *Locked) HandOver(j *Journal, pid int) error {
	if _, err := os.Lstat(j.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	owner, err := ProcessOf(pid)
	if err != nil {
		return err
	}
	j.Owner = owner
	return l.Save(j)
}

// Remove deletes the journal: all is undone.
func (l *Locked) Remove(j *Journal) error {
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Load reads the journal at path, which must lie in the locked directory; an
// error that wraps fs.ErrNotExist when there is none.
func (l *Locked) Load(path string) (*Journal, error) {
	text, err := os.ReadFile(filepath.Join(l.Path(), filepath.Base(path)))
	if err != nil {
		return nil, err
	}
	j := &Journal{path: filepath.Join(l.Path(), filepath.Base(path))}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s is no journal: %w", j.path, err)
	}
	if j.Version != version {
		return nil, fmt.Errorf("%s has version %d, this guise knows %d; run the guise that wrote it", j.path, j.Version, version)
	}
	return j, nil
}

// List reads all journals. Those that cannot be read are left out, and the
// error says why.
func (l *Locked) List() ([]*Journal, error) {
	entries, err := os.ReadDir(l.Path())
	if err != nil {
		return nil, err
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

// Adopt takes over the sysctls that other journals of the same network
// namespace name: from now on this one needs them too.
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

// Shared says whether a journal other than j needs the sysctl as well.
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

// Expired says whether a boot of the host lies between the journal and now:
// nothing it names exists any more.
func (j *Journal) Expired() bool {
	here, err := here()
	return err == nil && here.boot != j.Boot
}

// Abandoned says whether the owner is gone. A pid of another pid namespace
// says nothing here: such a journal is left to its own.
func (j *Journal) Abandoned() bool {
	here, err := here()
	if err != nil || here.pids != j.PIDNamespace {
		return false
	}
	return !j.Owner.Alive()
}

// place is what stays the same during a process's life.
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
