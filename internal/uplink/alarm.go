// SPDX-License-Identifier: GPL-2.0-only

package uplink

import (
	"sync"
	"time"
)

// alarm is a timer that may be off.
type alarm struct{ *time.Timer }

func newAlarm() alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return alarm{t}
}

// set has it ring then; the zero time: never.
func (a alarm) set(when time.Time) {
	if when.IsZero() {
		a.Stop()
		return
	}
	a.Reset(max(0, time.Until(when)))
}

// indices are those of the interfaces whose routes matter, for the goroutine that listens.
type indices struct {
	lock sync.Mutex
	all  []int
}

func (i *indices) get() []int {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.all
}

func (i *indices) set(paths []*path) {
	var all []int
	for _, p := range paths {
		if p.device != nil {
			all = append(all, p.device.index)
		}
	}
	i.lock.Lock()
	defer i.lock.Unlock()
	i.all = all
}
