// SPDX-License-Identifier: GPL-2.0-only

// Package suggest finds what a mistyped word may have meant.
package suggest

import (
	"sort"
	"strings"
)

// Near returns the words of valid that are most similar to word: at most three, or none
// if no word is similar. About one letter in three may differ.
func Near(word string, valid []string) []string {
	limit := max(1, len(word)/3)
	type candidate struct {
		word     string
		distance int
	}
	var found []candidate
	for _, v := range valid {
		if d := distance(strings.ToLower(word), strings.ToLower(v)); d <= limit {
			found = append(found, candidate{v, d})
		}
	}
	sort.SliceStable(found, func(i, k int) bool { return found[i].distance < found[k].distance })
	var near []string
	for _, c := range found {
		// Only the most similar words: a less similar one would not help.
		if c.distance == found[0].distance && len(near) < 3 {
			near = append(near, c.word)
		}
	}
	return near
}

// Hint returns the end of an error message about an unknown word: the similar words if
// there are some, otherwise all that are valid.
func Hint(word string, valid []string) string {
	if near := Near(word, valid); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "valid are " + strings.Join(valid, ", ")
}

// distance is how many letters have to be inserted, deleted, replaced or swapped with
// the next one to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for k := range last {
		last[k] = k
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for k := 1; k <= len(b); k++ {
			cost := 1
			if a[i-1] == b[k-1] {
				cost = 0
			}
			row[k] = min(last[k]+1, row[k-1]+1, last[k-1]+cost)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				row[k] = min(row[k], before[k-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
