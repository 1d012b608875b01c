// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creating a stack, in five steps:
 *
 *	1 find and check the kernel image (image.c)
 *	2 make the memory file, its header, and find a free base address
 *	3 copy the image's data into it and relocate it, once for all members
 *	4 map it as any member does
 *	5 boot: start_kernel() runs on this thread until it idles, then lo comes up
 */
#include "host/fd.h"
#include "host/signal.h"
#include "host/sys.h"
#include "region/bell.h"
#include "region/identity.h"
#include "region/image.h"
#include "region/pump.h"
#include "region/slot.h"
#include "region/stack.h"
#include "region/vcpu.h"

#include "guise/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#define BASE_HIGH   0x7e9000000000ull /* free of libraries, also under ASAN and TSAN */
#define BASE_LOW    0x1000000000ull   /* where addresses have 39 bits only: below programs */
#define BASE_WINDOW 0x100000000ull    /* 4 GiB: the largest stack, and options.index counts them */
#define BASE_COUNT  64
#define BASE_STEP   ((uint64_t)GUISE_HOST_PAGE_HUGE)
/* Devices that nobody asked for are not made. */
#define IDLE_DEVICES "dummy.numdummies=0 ifb.numifbs=0 fb_tunnels=none"
#define MEMORY_MIN   (32ull << 20)
#define MEMORY_USUAL (256ull << 20)
#define MONITOR_RING (64ull << 20) /* a power of two; memory as it fills */
#define MONITOR_SIZE (GUISE_MONITOR_RECORDS + MONITOR_RING)
#define MEMORY_MAX   (BASE_WINDOW - GUISE_OFF_ARENA - MONITOR_SIZE)

/*
 * Some kernels for arm64, Android's for one, give programs 39 bits of addresses
 * instead of 47 or 48. To find out, the last page of the high windows is mapped. If that
 * succeeds, or something is there already (EEXIST), there are high addresses. If not, the
 * kernel says ENOMEM, or gives another page, where it takes the address only for a hint.
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
static int settle(struct guise_stack *s, const struct guise_image_file *im,
		  const struct guise_options *opt, uint64_t memory, uint64_t base)
{
	struct guise_region *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return guise_fail(ENOMEM, "no memory");
	r->magic = GUISE_MAGIC;
	r->abi = GUISE_ABI;
	r->base = base;
	r->size = GUISE_OFF_ARENA + memory + MONITOR_SIZE;
	r->monitor_size = MONITOR_SIZE;
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
	r->user_namespace = guise_user_namespace();
	r->procs[0].used = 1;
	err = guise_region_write(s, r, sizeof(*r), GUISE_OFF_HEADER);
	free(r);
	if (err)
		return err;
	err = guise_region_map(s);
	if (err)
		return err;
	err = guise_image_load(s, im, base);
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
	return guise_region_protect(s);
}

/*
 * Steps 2 to 4. Where a stack lies is not to be guessed, and a process can join several: so its
 * place is any of the range, at a step of BASE_STEP. If something is there, the same place of the
 * next window is tried.
 */
static int find_place(struct guise_stack *s, const struct guise_image_file *im,
		      const struct guise_options *opt, uint64_t memory)
{
	const uint64_t first = base_first();
	const uint64_t places =
		(BASE_COUNT * BASE_WINDOW - GUISE_OFF_ARENA - memory - MONITOR_SIZE) / BASE_STEP +
		1;
	uint64_t place = 0;
	int err = -EADDRINUSE;

	if (opt->index >= 0)
		return settle(s, im, opt, memory,
			      first + (uint64_t)(opt->index % BASE_COUNT) * BASE_WINDOW);
	/* Where the host has no randomness, at an early boot, the time has to do. */
	if (host_sys(SYS_getrandom, &place, sizeof(place), GRND_NONBLOCK) != sizeof(place))
		place = guise_host_now() ^ (uint64_t)host_sys(SYS_getpid) << 32;
	place %= places;
	for (int i = 0; i < BASE_COUNT && err == -EADDRINUSE; i++) {
		err = settle(s, im, opt, memory, first + place * BASE_STEP);
		place = (place + BASE_WINDOW / BASE_STEP) % places;
	}
	return err;
}

/*
 * The limit of file sizes counts for files in memory, too: who makes a larger one is killed, by
 * SIGXFSZ. So it is looked at before the first of them.
 */
static int check_file_sizes(uint64_t memory)
{
	uint64_t size = GUISE_OFF_ARENA + memory;
	struct rlimit64 limit;

	if (host_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) || limit.rlim_cur >= size)
		return 0;
	return guise_fail(EFBIG,
			  "the limit of file sizes is %llu KiB, and a stack with %llu MiB of "
			  "memory is a file in memory of %llu KiB; raise the limit "
			  "(ulimit -f unlimited)",
			  (unsigned long long)limit.rlim_cur >> 10,
			  (unsigned long long)memory >> 20, (unsigned long long)size >> 10);
}

/* The memory file of the records, with its head; or -errno with the sentence. */
static int make_monitor(void)
{
	const uint64_t capacity = MONITOR_RING / sizeof(struct guise_record);
	const uint64_t at = __builtin_offsetof(struct guise_monitor_head, capacity);
	long ret = guise_fd_shared("guise-monitor", MONITOR_SIZE);
	int fd = (int)ret;

	if (fd >= 0) {
		fd = guise_fd_high(fd);
		ret = host_sys(SYS_pwrite64, fd, &capacity, sizeof(capacity), at);
	}
	/* Only the user may open it again. */
	if (ret >= 0)
		ret = host_sys(SYS_fchmod, fd, 0600);
	if (ret >= 0)
		return fd;
	if (fd >= 0)
		host_sys(SYS_close, fd);
	return guise_fail((int)-ret, "no memory file of %llu MiB for the monitor: %s",
			  (unsigned long long)MONITOR_SIZE >> 20, strerror((int)-ret));
}

struct guise_stack *guise_create(const struct guise_options *given, int *err)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack *s;
	struct guise_image_file im;
	uint64_t memory;
	int unused;

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
	*err = check_file_sizes(memory);
	if (*err)
		return NULL;
	s = guise_stack_new();
	if (!s) {
		*err = -ENOMEM;
		return NULL;
	}
	s->creator = true;
	s->proc = 1;
	s->console_fd = opt.console_fd;

	*err = s->image_fd = guise_image_open(&opt, &im);
	if (s->image_fd < 0)
		goto fail;
	*err = guise_fd_shared("guise", GUISE_OFF_ARENA + memory);
	if (*err >= 0) {
		s->memfd = guise_fd_high(*err);
	} else {
		guise_fail(-*err, "no memory file of %llu MiB: %s",
			   (unsigned long long)memory >> 20, strerror(-*err));
		goto fail;
	}
	*err = s->monitor_fd = make_monitor();
	if (*err < 0)
		goto fail;
	*err = find_place(s, &im, &opt, memory);
	if (*err)
		goto fail;
	s->region->bells_most = guise_bells_most();
	*err = guise_bells_make(s, GUISE_BELLS_FIRST);
	if (*err)
		goto fail;
	guise_stacks_add(s);
	guise_fault_handler(&guise_stacks_signals);
	s->region->procs[1].used = 1;
	s->region->procs[1].pid = (int32_t)host_sys(SYS_getpid);
	s->region->procs[1].uid = (uint32_t)host_sys(SYS_getuid);
	s->region->procs[1].gid = (uint32_t)host_sys(SYS_getgid);
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
