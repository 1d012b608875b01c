/* SPDX-License-Identifier: GPL-2.0-only */
/* Circular lists, linked in both directions by a member of their entries. */
#ifndef GUISE_RELAY_LIST_H
#define GUISE_RELAY_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev; /* NULL: an entry that is in no list */
};

/* The structure that has this entry as its member. */
#define list_of(entry, type, member) ((type *)((char *)(entry) - offsetof(type, member)))

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_add_first(struct list *head, struct list *entry)
{
	entry->next = head->next;
	entry->prev = head;
	entry->next->prev = entry;
	head->next = entry;
}

static inline void list_remove(struct list *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	entry->next = entry->prev = NULL;
}

#endif
