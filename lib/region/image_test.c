// SPDX-License-Identifier: GPL-2.0-only
/*
 * Laying an image's data into a region: a small file made here is relocated; one whose headers or
 * relocations point elsewhere is refused with a sentence, and nothing is written beside the data.
 */
#include "region/image.h"

#include "isa/isa.h"
#include "test/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DATA  (GUISE_OFF_DATA + 0x1000)
#define WORDS 64
#define TEXT  (GUISE_OFF_TEXT)

/* The file: headers, relocations (in the "text"), then data, the table of DT_ entries last. */
static struct file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[3];
	Elf64_Rela rel[3];
	uint64_t word[WORDS];
	Elf64_Dyn dyn[3];
} file;

static char *region;
static char path[] = "/tmp/guise-image-XXXXXX";

static void make_good(void)
{
	const uint64_t data = offsetof(struct file, word), dyn = offsetof(struct file, dyn);

	memset(&file, 0, sizeof(file));
	memcpy(file.eh.e_ident, ELFMAG, SELFMAG);
	file.eh.e_machine = (Elf64_Half)guise_isa_machine;
	file.eh.e_phoff = offsetof(struct file, ph);
	file.eh.e_phentsize = sizeof(file.ph[0]);
	file.eh.e_phnum = 3;
	file.ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				   .p_flags = PF_R | PF_X,
				   .p_vaddr = TEXT,
				   .p_filesz = data,
				   .p_memsz = data };
	file.ph[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
				   .p_flags = PF_R | PF_W,
				   .p_vaddr = DATA,
				   .p_offset = data,
				   .p_filesz = sizeof(file) - data,
				   .p_memsz = 0x2000 };
	file.ph[2] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				   .p_vaddr = DATA + (dyn - data),
				   .p_offset = dyn,
				   .p_filesz = sizeof(file.dyn),
				   .p_memsz = sizeof(file.dyn) };
	file.word[0] = 7;
	file.rel[0] = (Elf64_Rela){ DATA + 8, ELF64_R_INFO(0, guise_isa_relative), 0x1234 };
	file.rel[1] = (Elf64_Rela){ 0, 0, 0 }; /* room that the linker left over */
	file.rel[2] = (Elf64_Rela){ DATA + 16, ELF64_R_INFO(0, guise_isa_relative), 0x5678 };
	file.dyn[0] = (Elf64_Dyn){ DT_RELA, { TEXT + offsetof(struct file, rel) } };
	file.dyn[1] = (Elf64_Dyn){ DT_RELASZ, { sizeof(file.rel) } };
}

/* What becomes of the file as it is. */
static int load(void)
{
	struct guise_options opt = GUISE_OPTIONS_INIT;
	struct guise_stack s = { .image_fd = -1 };
	struct guise_image_file im;
	int fd = open(path, O_WRONLY | O_TRUNC), err = -EIO;

	if (write(fd, &file, sizeof(file)) == sizeof(file)) {
		opt.image = path;
		err = s.image_fd = guise_image_open(&opt, &im);
	}
	close(fd);
	memset(region + GUISE_OFF_DATA, 0, 0x4000);
	if (err >= 0) {
		err = guise_image_load(&s, &im, (uint64_t)region);
		close(s.image_fd);
	}
	return err;
}

/* Nothing but zeros, apart from n bytes of data. */
static bool clean(size_t n)
{
	for (size_t i = 0; i < 0x4000; i++)
		if (region[GUISE_OFF_DATA + i] && (i < 0x1000 || i >= 0x1000 + n))
			return false;
	return true;
}

static void refused(const char *word, const char *why)
{
	tap_fails(load(), ENOEXEC, word);
	tap(clean(sizeof(file) - offsetof(struct file, word)), "nothing beside the data: %s", why);
	make_good();
}

int main(void)
{
	int fd = mkstemp(path);
	uint64_t *word;

	region = mmap(NULL, GUISE_OFF_ARENA, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fd < 0 || region == MAP_FAILED)
		return 1;
	close(fd);
	word = (uint64_t *)(region + DATA);

	make_good();
	tap_done(load(), "a good one");
	tap(word[0] == 7 && word[1] == (uint64_t)region + 0x1234 &&
		    word[2] == (uint64_t)region + 0x5678 && !word[3],
	    "its data is relocated");

	file.rel[2].r_offset = (Elf64_Addr)DATA + file.ph[1].p_filesz - 7;
	refused("relocated", "a relocation over the data's end");
	file.rel[2].r_offset = DATA - 8;
	refused("relocated", "one before the data");
	file.rel[2].r_offset = ~0ull - 3;
	refused("relocated", "one at the end of the address space");
	file.rel[2].r_info = ELF64_R_INFO(0, guise_isa_relative + 1);
	refused("relocated", "one of another kind");
	file.dyn[1].d_un.d_val = file.ph[0].p_filesz;
	refused("relocated", "more relocations than there is room");
	file.dyn[1].d_un.d_val = ~0ull;
	refused("relocated", "as many as there can be");
	file.dyn[0].d_un.d_ptr = GUISE_OFF_ARENA;
	refused("relocated", "relocations that lie nowhere");
	file.dyn[0].d_tag = DT_NULL;
	file.dyn[1].d_tag = DT_NULL;
	refused("relocated", "no relocations");
	file.ph[1].p_vaddr = GUISE_OFF_HEADER;
	refused("relocated", "data where the region's header is");
	file.ph[1].p_filesz = 4;
	refused("relocated", "data of four bytes");
	file.ph[1].p_vaddr = GUISE_OFF_ARENA - 8;
	refused("cut short", "data that reaches into the arena");
	file.ph[1].p_offset = sizeof(file);
	refused("cut short", "data behind the file's end");
	file.ph[2].p_offset = ~0ull;
	refused("cut short", "a table at the end of all files");
	file.ph[2].p_type = PT_NOTE;
	refused("relocated", "no table");
	file.eh.e_machine++;
	refused("ELF", "another processor's");
	file.eh.e_phnum = 17;
	refused("ELF", "more segments than there is room");

	unlink(path);
	return tap_end();
}
