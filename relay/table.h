/* SPDX-License-Identifier: GPL-2.0-only */
/* A hash table of conversations, by their two addresses. table.c has the theory. */
#ifndef GUISE_RELAY_TABLE_H
#define GUISE_RELAY_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* It has no padding, because all of its bytes are compared. */
struct table_key {
	const void *of; /* an owner, or NULL: keys of different owners are different */
	uint8_t address[2][16];
	uint32_t scope[2];
	uint16_t port[2], family[2];
};
_Static_assert(sizeof(struct table_key) == sizeof(void *) + 32 + 8 + 8, "bytes between fields");

/* A member of each object that is in the table. */
struct table_entry {
	struct table_entry *next;
	uint64_t hash;
	struct table_key key;
};

#define TABLE_FIRST 64

struct table {
	struct table_entry **bucket;
	size_t buckets, n;
	uint64_t secret[2];
	struct table_entry *first[TABLE_FIRST];
};

/* Makes a key. The family of an address is AF_INET or AF_INET6, or AF_UNSPEC if it is missing. */
void table_key(struct table_key *key, const void *of, const struct sockaddr_storage *client,
	       const struct sockaddr_storage *dst);

void table_begin(struct table *t);
/* Does not use the entries that are still in it. */
void table_end(struct table *t);
/* The entry's key is set, and no entry with that key is in the table. Cannot fail. */
void table_add(struct table *t, struct table_entry *e);
/* The entry is in the table. */
void table_remove(struct table *t, struct table_entry *e);
/* NULL when there is none. */
struct table_entry *table_find(const struct table *t, const struct table_key *key);

/* SipHash-2-4 of whole words; for table.c and its test. */
uint64_t table_hash(const uint64_t secret[2], const void *data, size_t words);

#endif
