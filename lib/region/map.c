// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping a region into this process, at the region's own address or not at all.
 *
 * The whole range is reserved first, in one piece that must be free; then the
 * parts are mapped over it. At the base lies memory of this process alone, its table of
 * host services; text and constants come from the image (image.c), the rest from the shared
 * memory file, and the records of the monitor from another one. Constants with pointers are in
 * the first, too, and are written until the kernel has booted. From then on each process maps
 * them without the right to write. That is against mistakes of the kernel's code: who has the
 * memory file can map it otherwise.
 */
#include "host/locks.h"
#include "host/memory.h"
#include "host/sys.h"
#include "region/stack.h"
#include "served/client.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct guise_stack *stacks;

struct guise_stack *guise_stack_new(void)
{
	struct guise_stack *s = guise_pages(sizeof(*s)); /* a handler may be the first to join */

	if (!s) {
		guise_fail(ENOMEM, "no memory for a stack");
		return NULL;
	}
	s->memfd = s->monitor_fd = s->image_fd = s->alive = s->control = s->pump_bell =
		s->console_fd = -1;
	memset(s->bell, -1, sizeof(s->bell));
	for (int i = 0; i < GUISE_MAX_LINKS; i++)
		memset(s->port[i].fd, -1, sizeof(s->port[i].fd));
	return s;
}

struct guise_proc *guise_own_place(const struct guise_stack *s)
{
	return s->served ? &s->served->place : &s->region->procs[s->proc];
}

void guise_count(struct guise_stack *s, enum guise_count what, uint64_t n)
{
	uint64_t *count = s->served ? s->served->ring->count : s->region->count;

	__atomic_fetch_add(&count[what], n, __ATOMIC_RELAXED);
}

struct guise_stack *guise_stacks(void)
{
	return stacks;
}

void guise_stacks_add(struct guise_stack *s)
{
	guise_own_lock(GUISE_LOCK_STACKS);
	s->next = stacks;
	__atomic_store_n(&stacks, s, __ATOMIC_RELEASE);
	guise_own_unlock(GUISE_LOCK_STACKS);
}

void guise_stacks_remove(struct guise_stack *s)
{
	struct guise_stack **p;

	guise_own_lock(GUISE_LOCK_STACKS);
	for (p = &stacks; *p && *p != s; p = &(*p)->next)
		;
	if (*p)
		__atomic_store_n(p, s->next, __ATOMIC_RELEASE);
	guise_own_unlock(GUISE_LOCK_STACKS);
}

static bool lay(uint64_t base, uint64_t from, uint64_t to, int prot, int flags, int fd,
		uint64_t offset)
{
	long at = host_sys(SYS_mmap, base + from, to - from, prot, flags | MAP_FIXED, fd, offset);

	return at == (long)(base + from);
}

/* Text and constants: the image's segments that are not written. */
static int lay_image(struct guise_stack *s, uint64_t base)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	unsigned int i;

	if (host_sys(SYS_pread64, s->image_fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_phentsize != sizeof(ph))
		return guise_fail(ENOEXEC, "the kernel image is not an ELF file");
	for (i = 0; i < eh.e_phnum; i++) {
		if (host_sys(SYS_pread64, s->image_fd, &ph, sizeof(ph),
			     eh.e_phoff + i * sizeof(ph)) != sizeof(ph))
			return guise_fail(ENOEXEC, "the kernel image is cut short");
		if (ph.p_type != PT_LOAD || ph.p_flags & PF_W)
			continue;
		if (!lay(base, ph.p_vaddr, ph.p_vaddr + ph.p_filesz,
			 PROT_READ | (ph.p_flags & PF_X ? PROT_EXEC : 0), MAP_PRIVATE, s->image_fd,
			 ph.p_offset))
			return guise_fail(EACCES, "the kernel image cannot be mapped executable: "
						  "is it on a file system mounted noexec?");
	}
	return 0;
}

int guise_region_map(struct guise_stack *s)
{
	const uint64_t at = GUISE_OFF_HEADER + __builtin_offsetof(struct guise_region, magic);
	uint64_t head[5], base, size, shared;
	const int reserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long got;
	int err;

	/* magic, abi and running, base, size, monitor_size */
	if (host_sys(SYS_pread64, s->memfd, head, sizeof(head), at) != sizeof(head) ||
	    head[0] != GUISE_MAGIC)
		return guise_fail(EINVAL, "not a guise region");
	if ((uint32_t)head[1] != GUISE_ABI)
		return guise_fail(EPROTO,
				  "the stack was made by another version of guise (interface %u, "
				  "this library has %u)",
				  (uint32_t)head[1], GUISE_ABI);
	base = head[2];
	size = head[3];
	shared = size - head[4];
	got = host_sys(SYS_mmap, base, size, PROT_NONE, reserve | MAP_FIXED_NOREPLACE, -1, 0);
	/* Where the flag is not known, or refused, the address is a hint. */
	if (got < 0 && got != -EEXIST)
		got = host_sys(SYS_mmap, base, size, PROT_NONE, reserve, -1, 0);
	if (got != (long)base) {
		if (got > 0)
			host_sys(SYS_munmap, got, size);
		return guise_fail(EADDRINUSE,
				  "this process already uses the addresses %#lx to %#lx, where "
				  "the stack must lie",
				  (unsigned long)base, (unsigned long)(base + size));
	}
	err = -ENOMEM;
	if (!lay(base, GUISE_OFF_OPS, GUISE_OFF_HEADER, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ||
	    !lay(base, GUISE_OFF_HEADER, GUISE_OFF_TEXT, PROT_READ | PROT_WRITE, MAP_SHARED,
		 s->memfd, GUISE_OFF_HEADER) ||
	    !lay(base, GUISE_OFF_DATA, shared, PROT_READ | PROT_WRITE, MAP_SHARED, s->memfd,
		 GUISE_OFF_DATA) ||
	    (shared < size &&
	     !lay(base, shared, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->monitor_fd, 0))) {
		guise_fail(ENOMEM, "the region cannot be mapped");
		goto fail;
	}
	err = lay_image(s, base);
	if (err)
		goto fail;
	s->region = (struct guise_region *)(base + GUISE_OFF_HEADER);
	s->slots = (struct guise_slot *)(base + GUISE_OFF_SLOTS);
	s->ops = (struct guise_host_ops *)(base + GUISE_OFF_OPS);
	s->image = (const struct guise_image *)(base + GUISE_OFF_TEXT);
	if (s->image->magic != GUISE_MAGIC || s->image->abi != GUISE_ABI ||
	    s->image->region_size != sizeof(struct guise_region) ||
	    s->image->slot_size != sizeof(struct guise_slot) ||
	    s->image->ops_size != sizeof(struct guise_host_ops) ||
	    s->image->proc_size != sizeof(struct guise_proc)) {
		err = guise_fail(EPROTO, "the kernel image does not belong to this library: "
					 "build both anew, or remove the older one");
		goto fail;
	}
	s->resume = (void (*)(struct guise_slot *))(base + s->image->resume);
	guise_host_ops_init(s);
	return 0;
fail:
	s->region = NULL; /* it may have been set, and must not be looked at any more */
	host_sys(SYS_munmap, base, size);
	return err;
}

int guise_region_protect(const struct guise_stack *s)
{
	long ret = host_sys(SYS_mprotect, s->region->base + GUISE_OFF_DATA,
			    s->image->constants_end - GUISE_OFF_DATA, PROT_READ);

	return ret ? guise_fail((int)-ret, "the region's constants cannot be made read-only: %s",
				strerrordesc_np((int)-ret))
		   : 0;
}

void guise_region_unmap(struct guise_stack *s)
{
	host_sys(SYS_munmap, s->region->base, s->region->size);
	s->region = NULL;
}
