// SPDX-License-Identifier: GPL-2.0-only
/* The table: its hash, what it finds among many, and entries that come and go at random. */
#include "relay/table.h"

#include "test/tap.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>

#define MANY  10000
#define TURNS 200000

struct item {
	struct table_entry entry;
	bool there;
};

static struct table table;
static struct item item[MANY];

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % n);
}

static struct sockaddr_storage four(uint32_t address, unsigned int port)
{
	struct sockaddr_storage a = { .ss_family = AF_INET };
	struct sockaddr_in *in = (void *)&a;

	in->sin_addr.s_addr = htonl(address);
	in->sin_port = htons((uint16_t)port);
	return a;
}

static struct sockaddr_storage six(const char *address, unsigned int port, uint32_t scope)
{
	struct sockaddr_storage a = { .ss_family = AF_INET6 };
	struct sockaddr_in6 *in6 = (void *)&a;

	inet_pton(AF_INET6, address, &in6->sin6_addr);
	in6->sin6_port = htons((uint16_t)port);
	in6->sin6_scope_id = scope;
	return a;
}

/* Keys like those of real clients: few addresses, many ports. */
static struct table_key key_of(unsigned int i)
{
	struct sockaddr_storage client = four(0x7f000001 + i % 7, 1024 + i / 7);
	struct sockaddr_storage dst = four(0xa9fe4d01, 53);
	struct table_key key;

	table_key(&key, NULL, &client, &dst);
	return key;
}

static bool finds(unsigned int i)
{
	struct table_key key = key_of(i);
	struct table_entry *e = table_find(&table, &key);

	return e == (item[i].there ? &item[i].entry : NULL);
}

static void add(unsigned int i)
{
	item[i].entry.key = key_of(i);
	item[i].there = true;
	table_add(&table, &item[i].entry);
}

static void take(unsigned int i)
{
	item[i].there = false;
	table_remove(&table, &item[i].entry);
	/* From now on the table must not read this entry. */
	memset(&item[i].entry, 0xee, sizeof(item[i].entry));
}

static size_t longest_chain(void)
{
	size_t longest = 0;

	for (size_t i = 0; i < table.buckets; i++) {
		size_t n = 0;

		for (struct table_entry *e = table.bucket[i]; e; e = e->next)
			n++;
		if (n > longest)
			longest = n;
	}
	return longest;
}

static bool finds_all(void)
{
	for (unsigned int i = 0; i < MANY; i++)
		if (!finds(i))
			return false;
	return true;
}

/* The test vector is from another implementation: openssl mac ... -macopt size:8 SIPHASH. */
static void hashes(void)
{
	static const uint8_t expected[] = { 0xbd, 0x83, 0x8d, 0x3a, 0xaf, 0xbf, 0x8d, 0xb7 };
	uint8_t bytes[56];
	uint64_t secret[2], hash;

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	memcpy(secret, bytes, sizeof(secret));
	hash = table_hash(secret, bytes, sizeof(bytes) / 8);
	tap(!memcmp(&hash, expected, 8), "the hash is SipHash-2-4");
}

static void keys_differ(void)
{
	static const int owner[2];
	struct sockaddr_storage none = { 0 }, c = four(1, 2), d = four(3, 4);
	struct sockaddr_storage address[][2] = {
		{ c, d },
		{ d, c },
		{ c, none },
		{ none, none },
		{ four(1, 3), d },
		{ four(2, 2), d },
		{ c, four(3, 5) },
		{ six("::1", 2, 0), d },
		{ six("::1", 2, 0), six("::1", 4, 0) },
		{ six("fe80::1", 2, 1), six("::1", 4, 0) },
		{ six("fe80::1", 2, 2), six("::1", 4, 0) },
		/* An IPv6 address that begins with the bytes of 0.0.0.1. */
		{ six("0:1::", 2, 0), six("0:3::", 4, 0) },
	};
	const unsigned int n = sizeof(address) / sizeof(address[0]), all = 3 * n;
	struct table_entry entry[3 * sizeof(address) / sizeof(address[0])];
	bool good = true;

	table_begin(&table);
	for (unsigned int i = 0; i < all; i++) {
		const void *of = i / n ? &owner[i / n - 1] : NULL;

		table_key(&entry[i].key, of, &address[i % n][0], &address[i % n][1]);
		good = good && !table_find(&table, &entry[i].key);
		table_add(&table, &entry[i]);
	}
	for (unsigned int i = 0; i < all; i++) {
		struct table_key key = entry[i].key;

		good = good && table_find(&table, &key) == &entry[i];
	}
	tap(good && table.n == all, "whose it is, both addresses, ports and scopes make a key");
	table_end(&table);
}

static void many(void)
{
	uint64_t secret;

	table_begin(&table);
	for (unsigned int i = 0; i < MANY; i++)
		add(i);
	tap(table.n == MANY && finds_all(), "%d entries are found", MANY);
	tap(table.buckets >= MANY && table.buckets <= 4 * MANY, "in as many buckets");
	/* With random hashes it is about 7; the probability of 20 is one in 10^14. */
	tap(longest_chain() < 20, "no bucket has many of them");
	for (unsigned int i = 0; i < MANY; i += 2)
		take(i);
	tap(table.n == MANY / 2 && finds_all(), "every second one is taken out");
	secret = table.secret[0];
	for (unsigned int i = 1; i < MANY; i += 2)
		take(i);
	tap(!table.n && finds_all() && !longest_chain(), "and all of them");
	table_end(&table);
	table_begin(&table);
	tap(table.secret[0] != secret, "the next table has another secret");
	table_end(&table);
}

/* The number of entries goes up and down, so that the table is often nearly empty or full. */
static void at_random(void)
{
	bool good = true;
	size_t there = 0;

	table_begin(&table);
	for (unsigned int turn = 0; turn < TURNS && good; turn++) {
		unsigned int i = random_below(MANY);
		bool comes = random_below(10) < (turn / (TURNS / 8) % 2 ? 2 : 8);

		good = finds(i);
		if (comes && !item[i].there) {
			add(i);
			there++;
		} else if (!comes && item[i].there) {
			take(i);
			there--;
		}
		good = good && finds(i) && table.n == there;
	}
	tap(good && finds_all(), "entries come and go %d times", TURNS);
	table_end(&table);
}

int main(void)
{
	hashes();
	keys_differ();
	many();
	at_random();
	return tap_end();
}
