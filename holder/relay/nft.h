/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A writer of nftables rules, for the holder's own tables inside a stack: one
 * transaction, then for each rule its expressions. What is written is the netlink of
 * the kernel's own; an inet table has both families.
 */
#ifndef GUISE_HOLDER_NFT_H
#define GUISE_HOLDER_NFT_H

#include "setup/nl.h"

#include <netinet/in.h> /* before linux/netfilter.h, which has another */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Priorities of chains, as nft(8) names them. */
#define NFT_PRIORITY_RAW    (-300)
#define NFT_PRIORITY_MANGLE (-150)
#define NFT_PRIORITY_DSTNAT (-100)
#define NFT_PRIORITY_FILTER 0
#define NFT_PRIORITY_SRCNAT 100

/* All messages of one transaction. */
struct nft_batch {
	const char *table;
	uint8_t family; /* NFPROTO_INET or NFPROTO_ARP */
	size_t len;
	bool full;
	char buf[48 << 10];
};

/* Begins a transaction that makes the table, if it is not there. */
void nft_begin(struct nft_batch *b, uint8_t family, const char *table);
/* Sends it: 0, or -errno with a sentence that begins with what. */
int nft_commit(struct guise_stack *s, struct nft_batch *b, const char *what);

/* A chain of the table: type "filter" or "nat". */
void nft_chain(struct nft_batch *b, const char *name, const char *type, uint32_t hook, int priority,
	       uint32_t policy);
/* One to which only rules lead (nft_go_to). */
void nft_plain_chain(struct nft_batch *b, const char *name);

/* A rule and its list of expressions, while it is written. */
struct nft_rule {
	struct guise_nl m;
	size_t list, element, data;
};

void nft_rule_begin(struct nft_rule *r, const struct nft_batch *b, const char *chain);
void nft_rule_end(struct nft_rule *r, struct nft_batch *b);

/* One expression; its attributes stand between the two. */
void nft_expression(struct nft_rule *r, const char *name);
void nft_expression_end(struct nft_rule *r);
/* Attributes of an expression: a number, a constant. */
void nft_be32(struct guise_nl *m, uint16_t type, uint32_t value);
void nft_value(struct nft_rule *r, uint16_t type, const void *data, size_t len);

/* Tests; a packet that does not pass leaves the rule. */
void nft_is(struct nft_rule *r, const void *data, size_t len);
void nft_is_not(struct nft_rule *r, const void *data, size_t len);
void nft_meta_is(struct nft_rule *r, uint32_t key, const void *data, size_t len);
void nft_payload_is(struct nft_rule *r, uint32_t base, uint32_t offset, const void *data,
		    size_t len);
/* Of four bytes, or of one, those bits that mask has are those of want; or, any: one of them. */
void nft_bits_are(struct nft_rule *r, const void *mask, const void *want, size_t len);
void nft_any_bit(struct nft_rule *r, const void *mask, size_t len);
void nft_load_payload(struct nft_rule *r, uint32_t base, uint32_t offset, uint32_t len);
void nft_family_is(struct nft_rule *r, int k); /* 0: IPv4, 1: IPv6 */
void nft_protocol_is(struct nft_rule *r, uint8_t protocol);
void nft_from_interface(struct nft_rule *r, uint32_t ifindex, bool is);
void nft_to_interface(struct nft_rule *r, uint32_t ifindex, bool is);
/* The destination is an address of the stack. */
void nft_to_stack(struct nft_rule *r);
void nft_address_is(struct nft_rule *r, int k, bool destination, const void *addr);

/* What becomes of the packet. */
void nft_verdict(struct nft_rule *r, uint32_t code);
/* The chain decides, and none of the rules that follow here. */
void nft_go_to(struct nft_rule *r, const char *chain);

#endif
