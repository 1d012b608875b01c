// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creating a stack, in five steps:
 *
 *	1 find and read the kernel image
 *	2 make the memory file, its header, and find a free base address
 *	3 copy the image's data into it and relocate it, once for all members
 *	4 map it as any member does
 *	5 boot: start_kernel() runs on this thread until it idles, then lo comes up
 */
#include "host/memory.h"
#include "host/signal.h"
#include "host/fd.h"
#include "host/sys.h"
#include "region/bell.h"
#include "region/pump.h"
#include "region/slot.h"
#include "region/stack.h"
#include "region/vcpu.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define BASE_HIGH   0x7e9000000000ull /* free of libraries, also under ASAN and TSAN */
#define BASE_LOW    0x1000000000ull   /* where addresses have 39 bits only: below programs */
#define BASE_WINDOW 0x100000000ull    /* 4 GiB for each of ... */
#define BASE_COUNT  64
/* Devices that nobody asked for are not made. */
#define IDLE_DEVICES "dummy.numdummies=0 ifb.numifbs=0 fb_tunnels=none"
#define MEMORY_MIN   (32ull << 20)
#define MEMORY_USUAL (256ull << 20)
#define MEMORY_MAX   (BASE_WINDOW - GUISE_OFF_ARENA)

/* Beside this library or program, or where $GUISE_KERNEL says. */
static int find_image(const struct guise_options *opt, char *path, size_t size)
{
	const char *name = opt->image ? opt->image : getenv("GUISE_KERNEL");
	char *slash;
	Dl_info info;
	long fd;

	if (name) {
		if (!realpath(name, path))
			snprintf(path, size, "%s", name);
	} else {
		/* A program's own name may be relative to another directory. And realpath()
		 * fails on ".." where a sandbox denies what it asks: the name will do. */
		if (!dladdr((void *)&guise_region_map, &info))
			info.dli_fname = "";
		if (!realpath(info.dli_fname, path) && !realpath("/proc/self/exe", path))
			snprintf(path, size, "./guise");
		else if (info.dli_fname[0] == '/')
			snprintf(path, size, "%s", info.dli_fname);
		slash = strrchr(path, '/');
		snprintf(slash + 1, size - (size_t)(slash + 1 - path), "guise-kernel");
	}
	fd = host_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return guise_fail((int)-fd,
				  "no kernel image at %s: %s (set GUISE_KERNEL or options.image)",
				  path, strerror((int)-fd));
	return guise_fd_high((int)fd);
}

struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[16];
};

static int read_image(int fd, struct image *im)
{
	if (host_sys(SYS_pread64, fd, &im->eh, sizeof(im->eh), 0) != sizeof(im->eh) ||
	    memcmp(im->eh.e_ident, ELFMAG, SELFMAG) || im->eh.e_phentsize != sizeof(im->ph[0]) ||
	    im->eh.e_phnum > 16)
		return guise_fail(ENOEXEC, "the kernel image is not a usable ELF file");
	if (host_sys(SYS_pread64, fd, im->ph, im->eh.e_phnum * sizeof(im->ph[0]), im->eh.e_phoff) !=
	    (long)(im->eh.e_phnum * sizeof(im->ph[0])))
		return guise_fail(ENOEXEC, "the kernel image is cut short");
	return 0;
}

static int put(int memfd, const void *data, size_t n, uint64_t at)
{
	long done = host_sys(SYS_pwrite64, memfd, data, n, at);

	if (done == (long)n)
		return 0;
	return guise_fail(done < 0 ? (int)-done : ENOSPC, "no memory for the region");
}

/* Step 3, on the file: nothing is mapped yet. */
static int load_data(struct guise_stack *s, const struct image *im, uint64_t base)
{
	const Elf64_Phdr *data = NULL, *dyn = NULL;
	uint64_t rela = 0, relasz = 0, i;
	Elf64_Rela *rel = NULL;
	Elf64_Dyn d;
	char *copy = NULL;
	int err = -ENOEXEC;

	for (i = 0; i < im->eh.e_phnum; i++) {
		if (im->ph[i].p_type == PT_LOAD && im->ph[i].p_flags & PF_W)
			data = &im->ph[i];
		if (im->ph[i].p_type == PT_DYNAMIC)
			dyn = &im->ph[i];
	}
	if (!data || !dyn)
		goto bad;
	copy = malloc(data->p_filesz);
	if (!copy || host_sys(SYS_pread64, s->image_fd, copy, data->p_filesz, data->p_offset) !=
			     (long)data->p_filesz)
		goto bad;
	for (i = 0; i < dyn->p_filesz; i += sizeof(d)) {
		memcpy(&d, copy + (dyn->p_vaddr - data->p_vaddr) + i, sizeof(d));
		if (d.d_tag == DT_RELA)
			rela = d.d_un.d_ptr;
		else if (d.d_tag == DT_RELASZ)
			relasz = d.d_un.d_val;
	}
	/* Their file offset: they lie in a segment that is only read. */
	for (i = 0; i < im->eh.e_phnum; i++)
		if (im->ph[i].p_type == PT_LOAD && rela >= im->ph[i].p_vaddr &&
		    rela < im->ph[i].p_vaddr + im->ph[i].p_filesz) {
			rel = malloc(relasz);
			if (!rel || host_sys(SYS_pread64, s->image_fd, rel, relasz,
					     im->ph[i].p_offset + (rela - im->ph[i].p_vaddr)) !=
					    (long)relasz)
				goto bad;
		}
	if (!rel)
		goto bad;
	for (i = 0; i < relasz / sizeof(*rel); i++) {
		uint64_t at = rel[i].r_offset - data->p_vaddr,
			 value = base + (uint64_t)rel[i].r_addend;

		/* Room that the linker left over: NONE is 0 on all processors. */
		if (!ELF64_R_TYPE(rel[i].r_info))
			continue;
		if (ELF64_R_TYPE(rel[i].r_info) != guise_isa_relative || at + 8 > data->p_filesz)
			goto bad;
		memcpy(copy + at, &value, sizeof(value));
	}
	err = put(s->memfd, copy, data->p_filesz, data->p_vaddr);
	goto out;
bad:
	err = guise_fail(ENOEXEC, "the kernel image cannot be relocated: is it complete?");
out:
	free(copy);
	free(rel);
	return err;
}

/*
 * Some kernels for arm64, Android's for one, give programs 39 bits of addresses
 * instead of 47 or 48. The last page of the high windows, when it is asked for,
 * is to be had or somebody else's (EEXIST). Otherwise there is none (ENOMEM, or
 * another page from what takes the address for a hint only).
 */
static uint64_t base_first(void)
{
	const uint64_t last = BASE_HIGH + BASE_COUNT * BASE_WINDOW - GUISE_HOST_PAGE_MAX;
	const int reserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long got = host_sys(SYS_mmap, last, GUISE_HOST_PAGE_MAX, PROT_NONE,
			    reserve | MAP_FIXED_NOREPLACE, -1, 0);

	/* Where the flag is refused, as in map.c. */
	if (got < 0 && got != -EEXIST && got != -ENOMEM)
		got = host_sys(SYS_mmap, last, GUISE_HOST_PAGE_MAX, PROT_NONE, reserve, -1, 0);
	if (got > 0)
		host_sys(SYS_munmap, got, GUISE_HOST_PAGE_MAX);
	return got == (long)last || got == -EEXIST ? BASE_HIGH : BASE_LOW;
}

/* Steps 2 to 4 at one base; -EADDRINUSE: try another. */
static int settle(struct guise_stack *s, const struct image *im, const struct guise_options *opt,
		  uint64_t memory, int index)
{
	uint64_t base = base_first() + (uint64_t)index * BASE_WINDOW;
	struct guise_region *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return guise_fail(ENOMEM, "no memory");
	r->magic = GUISE_MAGIC;
	r->abi = GUISE_ABI;
	r->base = base;
	r->size = GUISE_OFF_ARENA + memory;
	r->ram = base + GUISE_OFF_ARENA;
	r->ram_size = memory;
	snprintf(r->name, sizeof(r->name), "%s", opt->name ? opt->name : "guise");
	snprintf(r->cmdline, sizeof(r->cmdline), "quiet loglevel=4 " IDLE_DEVICES " %s",
		 opt->cmdline ? opt->cmdline : "");
	r->clock_mode = opt->simulated ? GUISE_CLOCK_SIM : GUISE_CLOCK_REAL;
	r->sim_now = 1000000000ull;
	r->sim_epoch = 1700000000ull * 1000000000ull;
	r->seed = r->seed_state = opt->seed;
	r->vcpu->next_event = r->vcpu->bell_again = ~0ull;
	r->procs[0].used = 1;
	err = put(s->memfd, r, sizeof(*r), GUISE_OFF_HEADER);
	free(r);
	if (err)
		return err;
	err = guise_region_map(s);
	if (err)
		return err;
	err = load_data(s, im, base);
	if (err)
		guise_region_unmap(s);
	return err;
}

static int boot(struct guise_stack *s)
{
	void (*enter)(struct guise_slot *) =
		(void (*)(struct guise_slot *))(s->region->base + s->image->boot);
	struct guise_slot *slot = guise_slot_take(s, 0);

	if (!slot)
		return -EAGAIN;
	s->region->vcpu->pump_slot = slot->id;
	if (!guise_lock(s, slot))
		return guise_fail(EIO, "the stack was lost while it booted");
	guise_inside_enter();
	enter(slot);
	guise_inside_leave();
	guise_unlock(s);
	if (!s->region->running)
		return guise_fail(EIO, "the kernel image did not boot");
	return 0;
}

struct guise_stack *guise_create(const struct guise_options *given, int *err)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	struct image im;
	char path[PATH_MAX];
	uint64_t memory;
	int unused, first, i;

	if (!err)
		err = &unused;
	if (given)
		memcpy(&opt, given, given->size < sizeof(opt) ? given->size : sizeof(opt));
	memory = opt.memory ? opt.memory : MEMORY_USUAL;
	memory = (memory + 0xfffff) & ~0xfffffull;
	if (memory < MEMORY_MIN || memory > MEMORY_MAX) {
		*err = guise_fail(EINVAL, "memory of %llu bytes: it must be %llu to %llu MiB",
				  (unsigned long long)memory, MEMORY_MIN >> 20, MEMORY_MAX >> 20);
		return NULL;
	}
	s = guise_pages(sizeof(*s));
	if (!s) {
		*err = guise_fail(ENOMEM, "no memory");
		return NULL;
	}
	memset(s->bell, -1, sizeof(s->bell));
	s->memfd = s->image_fd = s->alive = s->control = s->pump_bell = -1;
	s->creator = true;
	s->proc = 1;
	s->console_fd = opt.console_fd;
	for (i = 0; i < GUISE_MAX_LINKS; i++)
		s->port[i].fd[0] = s->port[i].fd[1] = s->port[i].fd[2] = -1;

	*err = s->image_fd = find_image(&opt, path, sizeof(path));
	if (s->image_fd < 0)
		goto fail;
	*err = read_image(s->image_fd, &im);
	if (*err)
		goto fail;
	*err = guise_fd_memory("guise", 0);
	if (*err >= 0) {
		s->memfd = guise_fd_high(*err);
		*err = (int)host_sys(SYS_ftruncate, s->memfd, GUISE_OFF_ARENA + memory);
	}
	if (*err < 0) {
		guise_fail(-*err, "no memory file of %llu MiB: %s",
			   (unsigned long long)memory >> 20, strerror(-*err));
		goto fail;
	}
	/* Spread over the windows, so that a process can join several stacks. */
	first = opt.index >= 0 ? opt.index % BASE_COUNT
			       : (int)((guise_host_now() / 1000 + (uint64_t)host_sys(SYS_getpid)) %
				       BASE_COUNT);
	for (i = 0; i < (opt.index >= 0 ? 1 : BASE_COUNT); i++) {
		*err = settle(s, &im, &opt, memory, (first + i) % BASE_COUNT);
		if (*err != -EADDRINUSE)
			break;
	}
	if (*err)
		goto fail;
	*err = guise_bells_make(s, GUISE_BELLS_ALONE);
	if (*err)
		goto fail;
	guise_stacks_add(s);
	guise_fault_handler(&guise_stacks_signals);
	s->region->procs[1].used = 1;
	s->region->procs[1].pid = (int32_t)host_sys(SYS_getpid);
	*err = boot(s);
	if (!*err && !opt.no_pump && !opt.simulated)
		*err = guise_pump_start(s);
	if (!*err)
		*err = guise_link_set(s, "lo", 1);
	if (*err) {
		guise_pump_stop(s);
		guise_stacks_remove(s);
		goto fail;
	}
	return s;
fail:
	guise_stack_free(s);
	return NULL;
}
