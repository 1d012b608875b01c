// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: adding and removing them.
 *
 * The process that created the stack adds links (a holder, or a program with a
 * stack of its own), because members get the descriptors of links from it: with the answer to
 * their join, or later (region/additions.c). region->links[i] is filled before the port learns of
 * the link (GUISE_NR_LINK_ADD) and cleared after the port has removed it
 * (GUISE_NR_LINK_DEL), so the port never sees an incomplete link. links_now changes before the one
 * and after the other, so that a member that meets the device knows that it may be behind.
 *
 * GUISE_LOCK_ASK is for the holder's threads, which send s->port[i].fd to members.
 */
#include "guise/syscall.h"
#include "host/locks.h"
#include "host/sys.h"
#include "link/spec.h"
#include "region/stack.h"
#include "region/wait.h"

#include <errno.h>
#include <string.h>

/*
 * A locally administered address. A simulated stack's comes from its seed and
 * the link's index (by splitmix64), so that a run repeats to the byte.
 */
static int make_mac(struct guise_stack *s, int index, uint8_t mac[6])
{
	uint64_t x;

	if (s->region->clock_mode == GUISE_CLOCK_SIM) {
		x = s->region->seed + (uint64_t)(index + 1) * 0x9e3779b97f4a7c15ULL;
		x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
		x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
		x ^= x >> 31;
		memcpy(mac, &x, 6);
	} else if (host_sys(SYS_getrandom, mac, 6, 0) != 6) {
		return guise_fail(EIO,
				  "link: the host has no random bytes for an address; give one "
				  "with mac=");
	}
	mac[0] = (mac[0] & 0xfe) | 0x02;
	return 0;
}

static int find_link(struct guise_stack *s, const char *name)
{
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		if (s->region->links[i].used && !strcmp(s->region->links[i].name, name))
			return i;
	return -1;
}

static int claim_link(struct guise_stack *s)
{
	for (int i = 0; i < GUISE_MAX_LINKS; i++) {
		uint32_t unused = 0;

		if (__atomic_compare_exchange_n(&s->region->links[i].used, &unused, 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return i;
	}
	return guise_fail(ENOSPC, "link: a stack has at most %d links", GUISE_MAX_LINKS);
}

/* The links are others now; the creator has all of them. */
static uint32_t count_change(struct guise_stack *s)
{
	uint32_t now = __atomic_add_fetch(&s->region->links_now, 1, __ATOMIC_SEQ_CST);

	s->links_seen = now;
	return now;
}

static void open_port(struct guise_stack *s, int index, const struct guise_link_port *port,
		      const struct guise_link_backend *backend)
{
	struct guise_link *link = &s->region->links[index];

	guise_own_lock(GUISE_LOCK_ASK);
	s->port[index] = *port;
	s->port[index].generation = link->generation = count_change(s);
	__atomic_store_n(&s->port[index].backend, backend, __ATOMIC_RELEASE);
	guise_own_unlock(GUISE_LOCK_ASK);
}

static void release_link(struct guise_stack *s, int index)
{
	struct guise_link *link = &s->region->links[index];
	struct guise_link_port *port = &s->port[index];
	struct guise_link_port old;

	guise_own_lock(GUISE_LOCK_ASK);
	old = *port;
	/* Removed first and then closed: another thread may get the same number at once. */
	__atomic_store_n(&port->backend, NULL, __ATOMIC_RELEASE);
	for (int i = 0; i < GUISE_LINK_FDS; i++)
		port->fd[i] = -1;
	if (old.backend)
		old.backend->detach(&old);
	for (int i = 0; i < GUISE_LINK_FDS; i++)
		if (old.backend && old.fd[i] >= 0)
			host_sys(SYS_close, old.fd[i]);
	memset((char *)link + sizeof(link->used), 0, sizeof(*link) - sizeof(link->used));
	count_change(s);
	__atomic_store_n(&link->used, 0, __ATOMIC_RELEASE);
	guise_own_unlock(GUISE_LOCK_ASK);
}

int guise_link_open(struct guise_stack *s, const char *name, const char *text)
{
	struct guise_link_port port = { .fd = { -1, -1, -1 } };
	struct guise_link_spec spec;
	struct guise_link *link;
	int err, index;
	long ifindex;

	err = guise_link_name_check(name);
	if (!err)
		err = guise_link_spec_parse(text, &spec);
	if (err)
		return err;
	if (!s->creator)
		return guise_fail(
			EPERM,
			"link %s: only the process that made the stack can add a "
			"link; give it to guise run (--link) or to guise_create()'s process",
			name);
	if (find_link(s, name) >= 0)
		return guise_fail(EEXIST, "link %s: the stack has a link of this name", name);

	index = claim_link(s);
	if (index < 0)
		return index;
	link = &s->region->links[index];
	strcpy(link->name, name);
	strcpy(link->kind, spec.kind->name);
	link->mtu = spec.mtu;
	memcpy(link->mac, spec.mac, 6);
	link->features = spec.kind->features | (spec.offload_off ? GUISE_LINK_NOGRO : 0);

	err = spec.kind->backend->open(s, link, &port, spec.rest);
	if (!err) {
		open_port(s, index, &port, spec.kind->backend);
		if (!link->mtu)
			link->mtu = spec.kind->mtu;
		if (!memcmp(link->mac, (uint8_t[6]){ 0 }, 6))
			err = make_mac(s, index, link->mac);
	}
	if (err) {
		release_link(s, index);
		return err;
	}

	ifindex = guise_call(s, GUISE_NR_LINK_ADD, index, 0, 0, 0, 0, 0);
	if (ifindex < 0) {
		release_link(s, index);
		return guise_fail((int)-ifindex, "link %s: the stack refuses it: %s", name,
				  strerror((int)-ifindex));
	}
	guise_wait_look(s, GUISE_EVERY_PROC); /* who leads sleeps on the old descriptors */
	return (int)ifindex;
}

void guise_links_flush(struct guise_stack *s)
{
	uint32_t held = __atomic_exchange_n(&s->region->vcpu->tx_held, 0, __ATOMIC_RELAXED);

	for (unsigned int i = 0; held >> i; i++) {
		struct guise_link_port *port = &s->port[i];

		if (held & (1u << i) && port->backend && port->backend->flush &&
		    port->backend->flush(port) == -EAGAIN)
			__atomic_fetch_or(&s->region->vcpu->tx_blocked, 1u << i, __ATOMIC_RELAXED);
	}
}

void guise_links_end(struct guise_stack *s)
{
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		if (s->port[i].backend && s->port[i].backend->end)
			s->port[i].backend->end(&s->port[i]);
}

int guise_link_carrier(struct guise_stack *s, const char *name, bool on)
{
	int index = find_link(s, name);
	long ret;

	if (index < 0)
		return guise_fail(ENODEV, "link %s: the stack has no link of this name", name);
	ret = guise_call(s, GUISE_NR_LINK_CARRIER, index, on, 0, 0, 0, 0);
	return ret < 0 ? guise_fail((int)-ret, "link %s: its carrier cannot be changed: %s", name,
				    strerror((int)-ret))
		       : 0;
}

int guise_link_add(struct guise_stack *s, const char *name, const char *spec)
{
	return guise_link_open(s, name, spec);
}

int guise_link_del(struct guise_stack *s, const char *name)
{
	int index = find_link(s, name);
	long ret;

	if (index < 0)
		return guise_fail(ENODEV, "link %s: the stack has no link of this name", name);
	if (!s->creator)
		return guise_fail(EPERM,
				  "link %s: only the process that made the stack can remove a "
				  "link",
				  name);
	ret = guise_call(s, GUISE_NR_LINK_DEL, index, 0, 0, 0, 0, 0);
	if (ret < 0)
		return guise_fail((int)-ret, "link %s: the stack keeps it: %s", name,
				  strerror((int)-ret));
	release_link(s, index);
	guise_wait_look(s, GUISE_EVERY_PROC);
	return 0;
}
