// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hash table of conversations.
 *
 * A sender of datagrams or connection requests chooses its port, and often its address. So the
 * hash has a key: it is SipHash-2-4 (Aumasson and Bernstein, 2012), with a random key for each
 * table. Without knowing the key no sender can choose addresses that fall into one bucket.
 *
 * The number of buckets doubles when there are as many entries as buckets. If there is no
 * memory for that, the table stays as it is and becomes slower; so nothing here can fail. It
 * does not shrink, because its users limit the number of entries.
 */
#include "relay/table.h"

#include "host/sys.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void set_address(struct table_key *key, int k, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;

	key->family[k] = a->ss_family;
	if (a->ss_family == AF_INET) {
		key->port[k] = in->sin_port;
		memcpy(key->address[k], &in->sin_addr, sizeof(in->sin_addr));
	} else if (a->ss_family == AF_INET6) {
		key->port[k] = in6->sin6_port;
		key->scope[k] = in6->sin6_scope_id;
		memcpy(key->address[k], &in6->sin6_addr, sizeof(in6->sin6_addr));
	}
}

void table_key(struct table_key *key, const void *of, const struct sockaddr_storage *client,
	       const struct sockaddr_storage *dst)
{
	memset(key, 0, sizeof(*key));
	key->of = of;
	set_address(key, 0, client);
	set_address(key, 1, dst);
}

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void scramble(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t table_hash(const uint64_t secret[2], const void *data, size_t words)
{
	uint64_t v[4] = {
		secret[0] ^ 0x736f6d6570736575,
		secret[1] ^ 0x646f72616e646f6d,
		secret[0] ^ 0x6c7967656e657261,
		secret[1] ^ 0x7465646279746573,
	};
	uint64_t word;

	for (size_t i = 0; i <= words; i++) {
		if (i < words)
			memcpy(&word, (const char *)data + i * 8, 8);
		else /* the last word is the length in bytes */
			word = (uint64_t)(words * 8) << 56;
		v[3] ^= word;
		scramble(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	scramble(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t hash_of(const struct table *t, const struct table_key *key)
{
	_Static_assert(sizeof(*key) % 8 == 0, "whole words");
	return table_hash(t->secret, key, sizeof(*key) / 8);
}

void table_begin(struct table *t)
{
	memset(t, 0, sizeof(*t));
	t->bucket = t->first;
	t->buckets = TABLE_FIRST;
	host_sys(SYS_getrandom, t->secret, sizeof(t->secret), 0);
}

void table_end(struct table *t)
{
	if (t->bucket != t->first)
		free(t->bucket);
	t->bucket = NULL;
}

static struct table_entry **place_of(const struct table *t, uint64_t hash)
{
	return &t->bucket[hash & (t->buckets - 1)];
}

static void put(struct table *t, struct table_entry *e)
{
	struct table_entry **place = place_of(t, e->hash);

	e->next = *place;
	*place = e;
}

static void grow(struct table *t)
{
	struct table_entry **old = t->bucket, **bucket = calloc(t->buckets * 2, sizeof(*bucket));
	size_t n = t->buckets;

	if (!bucket)
		return;
	t->bucket = bucket;
	t->buckets *= 2;
	for (size_t i = 0; i < n; i++) {
		while (old[i]) {
			struct table_entry *e = old[i];

			old[i] = e->next;
			put(t, e);
		}
	}
	if (old != t->first)
		free(old);
}

void table_add(struct table *t, struct table_entry *e)
{
	if (t->n == t->buckets)
		grow(t);
	e->hash = hash_of(t, &e->key);
	put(t, e);
	t->n++;
}

void table_remove(struct table *t, struct table_entry *e)
{
	struct table_entry **place = place_of(t, e->hash);

	while (*place != e)
		place = &(*place)->next;
	*place = e->next;
	t->n--;
}

struct table_entry *table_find(const struct table *t, const struct table_key *key)
{
	uint64_t hash = hash_of(t, key);
	struct table_entry *e = *place_of(t, hash);

	while (e && (e->hash != hash || memcmp(&e->key, key, sizeof(*key))))
		e = e->next;
	return e;
}
