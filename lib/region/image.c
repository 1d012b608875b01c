// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel image's file: opened (image_find.c), checked, and laid into a region.
 *
 * The image that comes with guise is mapped from a copy in memory, which nobody can change
 * any more (memfd_create(2), F_ADD_SEALS): a newer one that is written over the file, or
 * a file that is cut short, would otherwise end each program of the stack by SIGBUS, or
 * change its code. All members map the same copy, in which each segment lies at the offset
 * that is its address, so that huge pages fit (huge.c). One that was named (options.image,
 * $GUISE_KERNEL) is mapped itself, so that perf(1) and gdb(1) find its symbols; so is any
 * where the host maps no program from memory.
 *
 * Limits: of its content only what the host side follows is checked: that segments and
 * relocations lie in the file and in the region, and that it was built with this library.
 */
#include "region/image.h"

#include "host/fd.h"
#include "host/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* since Linux 5.1 */
#endif

#define HUGE ((uint64_t)GUISE_HOST_PAGE_HUGE)

/* Not F_SEAL_WRITE: it waits until the host's kernel refers to no page, and may fail. */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

/* Whether there is something in it, and all that is looked at lies in the file and the region. */
static bool lies_within(const struct guise_image_file *im, uint64_t size)
{
	bool something = false;

	for (unsigned int i = 0; i < im->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		if (p->p_type != PT_LOAD && p->p_type != PT_DYNAMIC)
			continue;
		if (p->p_offset > size || p->p_filesz > size - p->p_offset ||
		    p->p_memsz < p->p_filesz || p->p_vaddr > GUISE_OFF_ARENA ||
		    p->p_memsz > GUISE_OFF_ARENA - p->p_vaddr)
			return false;
		something |= p->p_filesz > 0;
	}
	return something;
}

/* 0, or -errno with a sentence. */
static int check(int fd, struct guise_image_file *im)
{
	const uint64_t most = sizeof(im->ph) / sizeof(im->ph[0]);
	struct stat st;

	if (host_sys(SYS_fstat, fd, &st) ||
	    host_sys(SYS_pread64, fd, &im->eh, sizeof(im->eh), 0) != sizeof(im->eh) ||
	    memcmp(im->eh.e_ident, ELFMAG, SELFMAG) || im->eh.e_phentsize != sizeof(im->ph[0]) ||
	    im->eh.e_phnum > most || im->eh.e_machine != guise_isa_machine)
		return guise_fail(ENOEXEC, "the kernel image is not a usable ELF file");
	if (host_sys(SYS_pread64, fd, im->ph, im->eh.e_phnum * sizeof(im->ph[0]), im->eh.e_phoff) !=
	    (long)(im->eh.e_phnum * sizeof(im->ph[0])))
		return guise_fail(ENOEXEC, "the kernel image is cut short");
	return lies_within(im, (uint64_t)st.st_size)
		       ? 0
		       : guise_fail(ENOEXEC, "the kernel image is cut short");
}

/* Whether the host lets a program be mapped from it. */
static bool executable(int fd)
{
	long at = host_sys(SYS_mmap, 0, GUISE_HOST_PAGE_MAX, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			   0);

	if (at < 0)
		return false;
	host_sys(SYS_munmap, at, GUISE_HOST_PAGE_MAX);
	return true;
}

/* Its segments in a file in which they lie at their addresses. Text and constants fill
 * their last huge page: behind them the file has a hole. */
static void lay_out(struct guise_image_file *im)
{
	for (unsigned int i = 0; i < im->eh.e_phnum; i++) {
		Elf64_Phdr *p = &im->ph[i];
		uint64_t end = (p->p_vaddr + p->p_memsz + HUGE - 1) / HUGE * HUGE;

		p->p_offset = p->p_vaddr;
		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		for (unsigned int k = 0; k < im->eh.e_phnum; k++)
			if (im->ph[k].p_vaddr > p->p_vaddr && im->ph[k].p_vaddr < end)
				end = im->ph[k].p_vaddr;
		p->p_filesz = p->p_memsz = end - p->p_vaddr;
	}
}

/* Copies what is in the file of a segment; 0 or -errno. */
static long copy_segment(int to, int from, const Elf64_Phdr *p)
{
	off_t at = (off_t)p->p_offset, end = at + (off_t)p->p_filesz;
	long n = host_sys(SYS_lseek, to, p->p_vaddr, SEEK_SET);

	while (n >= 0 && at < end) {
		n = host_sys(SYS_sendfile, to, from, &at, end - at);
		if (!n)
			n = -ENOEXEC; /* it has become shorter */
	}
	return n < 0 ? n : 0;
}

/* A copy, laid out and sealed; -errno. */
static int copy_sealed(int from, const struct guise_image_file *im)
{
	struct guise_image_file copy = *im;
	const size_t headers = copy.eh.e_phnum * sizeof(copy.ph[0]);
	long fd = guise_fd_memory("guise-kernel", MFD_ALLOW_SEALING), n = fd;
	uint64_t end = 0;

	for (unsigned int i = 0; i < im->eh.e_phnum && n >= 0; i++)
		if (im->ph[i].p_type == PT_LOAD)
			n = copy_segment((int)fd, from, &im->ph[i]);
	lay_out(&copy);
	copy.eh.e_phoff = sizeof(copy.eh);
	for (unsigned int i = 0; i < copy.eh.e_phnum; i++)
		if (copy.ph[i].p_offset + copy.ph[i].p_filesz > end)
			end = copy.ph[i].p_offset + copy.ph[i].p_filesz;
	if (n >= 0)
		n = host_sys(SYS_ftruncate, fd, end);
	if (n >= 0)
		n = host_sys(SYS_pwrite64, fd, &copy.eh, sizeof(copy.eh), 0);
	if (n >= 0)
		n = host_sys(SYS_pwrite64, fd, copy.ph, headers, copy.eh.e_phoff);
	if (n >= 0)
		n = host_sys(SYS_fcntl, fd, F_ADD_SEALS, SEALS);
	if (n >= 0 && executable((int)fd))
		return guise_fd_high((int)fd);
	if (fd >= 0)
		host_sys(SYS_close, fd);
	return n < 0 ? (int)n : -EACCES;
}

int guise_image_open(const struct guise_options *opt, struct guise_image_file *im)
{
	char path[PATH_MAX];
	bool beside = false;
	int fd = guise_image_find(opt, path, sizeof(path), &beside), copy, err;

	if (fd < 0)
		return fd;
	err = check(fd, im);
	if (!err && beside) {
		copy = copy_sealed(fd, im);
		if (copy >= 0) {
			host_sys(SYS_close, fd);
			fd = copy;
			/* What is mapped is what was checked, whatever the file is by now. */
			err = check(fd, im);
		} else if (copy != -EACCES && copy != -EPERM && copy != -EINVAL &&
			   copy != -ENOSYS) {
			err = guise_fail(-copy, "the kernel image at %s cannot be copied: %s", path,
					 strerror(-copy));
		}
	}
	if (!err)
		return fd;
	host_sys(SYS_close, fd);
	return err;
}

int guise_region_write(const struct guise_stack *s, const void *data, size_t n, uint64_t at)
{
	long done = host_sys(SYS_pwrite64, s->memfd, data, n, at);

	if (done == (long)n)
		return 0;
	return guise_fail(done < 0 ? (int)-done : ENOSPC, "no memory for the region");
}

/* Where the relocations lie in the image's file, and their number of bytes; false: none. */
static bool relocations(int fd, const struct guise_image_file *im, const Elf64_Phdr *dyn,
			uint64_t *offset, uint64_t *bytes)
{
	uint64_t at = 0, n = 0, i;
	Elf64_Dyn d;

	for (i = 0; i + sizeof(d) <= dyn->p_filesz; i += sizeof(d)) {
		if (host_sys(SYS_pread64, fd, &d, sizeof(d), dyn->p_offset + i) != sizeof(d))
			return false;
		if (d.d_tag == DT_RELA)
			at = d.d_un.d_ptr;
		else if (d.d_tag == DT_RELASZ)
			n = d.d_un.d_val;
	}
	/* The address is of a segment that is only read. */
	for (i = 0; i < im->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		if (p->p_type != PT_LOAD || at < p->p_vaddr || at - p->p_vaddr >= p->p_filesz)
			continue;
		*offset = p->p_offset + (at - p->p_vaddr);
		*bytes = n;
		return n <= p->p_filesz - (at - p->p_vaddr);
	}
	return false;
}

/* Whether a segment of data has these bytes in the file. */
static bool in_data(const struct guise_image_file *im, uint64_t at, uint64_t bytes)
{
	for (unsigned int i = 0; i < im->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_W && at >= p->p_vaddr &&
		    p->p_filesz >= bytes && at - p->p_vaddr <= p->p_filesz - bytes)
			return true;
	}
	return false;
}

/* Writes the addresses into the data, which lies in the region; false: one is not of the data. */
static bool relocate(const struct guise_image_file *im, const Elf64_Rela *rel, uint64_t n,
		     uint64_t base)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = rel[i].r_offset, value = base + (uint64_t)rel[i].r_addend;

		/* Room that the linker left over: NONE is 0 on all processors. */
		if (!ELF64_R_TYPE(rel[i].r_info))
			continue;
		if (ELF64_R_TYPE(rel[i].r_info) != guise_isa_relative ||
		    !in_data(im, at, sizeof(value)))
			return false;
		memcpy((void *)(base + at), &value, sizeof(value));
	}
	return true;
}

/* Copies the segments of data from the image to the region. 0, or -errno. */
static long load_data(const struct guise_stack *s, const struct guise_image_file *im, uint64_t base)
{
	long n = -ENOEXEC;

	for (unsigned int i = 0; i < im->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
			continue;
		if (p->p_vaddr < GUISE_OFF_DATA)
			return -ENOEXEC;
		n = host_sys(SYS_pread64, s->image_fd, base + p->p_vaddr, p->p_filesz, p->p_offset);
		if (n != (long)p->p_filesz)
			return n < 0 ? n : -ENOEXEC;
	}
	return n < 0 ? n : 0;
}

/* Step 3: the region is mapped, and its data is all zero. */
int guise_image_load(struct guise_stack *s, const struct guise_image_file *im, uint64_t base)
{
	const Elf64_Phdr *dyn = NULL;
	uint64_t offset, bytes, before;
	bool done = false;
	long at;

	for (unsigned int i = 0; i < im->eh.e_phnum; i++)
		if (im->ph[i].p_type == PT_DYNAMIC)
			dyn = &im->ph[i];
	if (!dyn || !relocations(s->image_fd, im, dyn, &offset, &bytes))
		goto bad;
	at = load_data(s, im, base);
	if (at == -EFAULT)
		return guise_fail(ENOMEM, "no memory for the region");
	if (at < 0)
		goto bad;
	/* A mapping begins at a page. */
	before = offset % GUISE_HOST_PAGE_MAX;
	at = host_sys(SYS_mmap, 0, bytes + before, PROT_READ, MAP_PRIVATE, s->image_fd,
		      offset - before);
	if (at < 0)
		goto bad;
	done = relocate(im, (const Elf64_Rela *)(at + (long)before), bytes / sizeof(Elf64_Rela),
			base);
	host_sys(SYS_munmap, at, bytes + before);
	if (done)
		return 0;
bad:
	return guise_fail(ENOEXEC, "the kernel image cannot be relocated: is it complete?");
}
