// SPDX-License-Identifier: GPL-2.0-only

package hostnet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"guise/internal/hostnet/journal"
	"guise/internal/hostnet/nat"
	"guise/internal/hostnet/netns"
	"guise/internal/hostnet/share"
	"guise/internal/hostnet/sysctl"
	"guise/internal/rundir"
)

// Undo undoes what the journal at path names, and removes the journal. One that
// does not exist was undone already.
func Undo(path string) error {
	l, err := journal.LockExisting(filepath.Dir(path))
	if errors.Is(err, journal.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Unlock()
	j, err := l.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return undo(l, j)
}

// Sweep undoes the journals whose owners were killed before they could do so. Another user's folder
// has none of this user's: for root that is no error, as root may list and end the stacks there.
func Sweep() error {
	l, err := journal.LockExisting(journal.Directory())
	if errors.Is(err, journal.ErrNone) || errors.Is(err, fs.ErrPermission) || errors.Is(err, rundir.ErrForeign) && os.Geteuid() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Unlock()
	return sweep(l)
}

func sweep(l *journal.Locked) error {
	journals, err := l.List()
	for _, j := range journals {
		if !j.Expired() && !j.Abandoned() {
			continue
		}
		if e := undo(l, j); e != nil {
			err = errors.Join(err, fmt.Errorf("cannot undo all that %s names: %w", j.Path(), e))
		}
	}
	return err
}

// undo keeps the journal when a step fails: the next guise tries again.
func undo(l *journal.Locked, j *journal.Journal) error {
	if !j.Expired() {
		// What a journal that cannot be read shares with this one is not known.
		others, _ := l.List()
		err := netns.Visit(j.Namespace, func() error {
			var failed []error
			for i := len(j.Steps) - 1; i >= 0; i-- {
				failed = append(failed, undoStep(j, others, j.Steps[i]))
			}
			return errors.Join(failed...)
		})
		if err != nil {
			return err
		}
	}
	return l.Remove(j)
}

func undoStep(j *journal.Journal, others []*journal.Journal, s journal.Step) error {
	switch s.Kind {
	case journal.Table:
		return nat.Delete(s.Family, s.Name)
	case journal.Ports:
		// Whoever has a stack's tap can make it stay, though nothing passes by it any more.
		return errors.Join(share.Release(sysctl.Host, s.Set), share.RemoveTapsOf(j.TableName()))
	case journal.Sysctl:
		if j.Shared(others, s.Key) {
			return nil
		}
		return sysctl.Host.Restore(s)
	case journal.Device:
		return deleteTap(s.Name, s.Index)
	}
	return fmt.Errorf("unknown step %q", s.Kind)
}

// deleteTap deletes a tap that members of a lost stack still have open. Its index
// is not used again, and so distinguishes it from a later tap of that name.
func deleteTap(name string, index int) error {
	link, err := netlink.LinkByIndex(index)
	if errors.As(err, &netlink.LinkNotFoundError{}) || err == nil && (link.Type() != "tuntap" || link.Attrs().Name != name) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look for %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		// The last descriptor may have been closed meanwhile.
		if _, e := netlink.LinkByIndex(index); errors.As(e, &netlink.LinkNotFoundError{}) {
			return nil
		}
		return fmt.Errorf("cannot delete %s: %w", name, err)
	}
	return nil
}
