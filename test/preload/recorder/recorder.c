// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notes which calls of preload/calls.h a program makes: a library to preload that
 * has a function of each name. It sets a byte and goes on to the next library's, with
 * all registers and the stack as they were, so that it fits every call there is.
 *
 * $GUISE_TEST_RECORD is the file; it has a record of RECORD bytes for each name, whose
 * last byte is 1 when the call was made, by the program or by one that it started.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORD 64

/* Sets *mark_NAME and jumps to next_NAME, by registers that no call gets or keeps. */
#if defined(__x86_64__)
#define GO_ON(name)                                   \
	"	mov	mark_" #name "(%rip), %r11\n" \
	"	movb	$1, (%r11)\n"                          \
	"	jmp	*next_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define GO_ON(name)                                         \
	"	adrp	x16, mark_" #name "\n"              \
	"	ldr	x16, [x16, :lo12:mark_" #name "]\n" \
	"	mov	w17, #1\n"                                    \
	"	strb	w17, [x16]\n"                                \
	"	adrp	x16, next_" #name "\n"              \
	"	ldr	x16, [x16, :lo12:next_" #name "]\n" \
	"	br	x16\n"
#endif

static char nowhere;

/* What finds the next library's functions cannot be noted. */
#define LEFT_OUT_dlsym           PROBE
#define LEFT_OUT_dlvsym          PROBE
#define PROBE                    ~, NOTHING
#define SECOND(a, b, ...)        b
#define CHOOSE(...)              SECOND(__VA_ARGS__, DO, ~)
#define UNLESS_LEFT_OUT(name, f) CHOOSE(LEFT_OUT_##name)(name, f)
#define DO(name, f)              f(name)
#define NOTHING(name, f)

#define HIDDEN                        __attribute__((visibility("hidden"), used))
#define CALL(name, class, test, note) ALIAS(name, name)
#define ALIAS(name, call)             UNLESS_LEFT_OUT(name, DEFINE)
#define DEFINE(name)                 \
	HIDDEN char *mark_##name;    \
	HIDDEN void *next_##name;    \
	__asm__(".text\n"            \
		".globl " #name "\n" \
		".type " #name ", %function\n" #name ":\n" GO_ON(name));
#include "preload/calls.h"

struct entry {
	const char *name;
	char **mark;
	void **next;
};

static const struct entry entries[] = {
#define CALL(name, class, test, note) ALIAS(name, name)
#define ALIAS(name, call)             UNLESS_LEFT_OUT(name, ENTRY)
#define ENTRY(name)                   { #name, &mark_##name, &next_##name },
#include "preload/calls.h"
};

#define ENTRIES (sizeof(entries) / sizeof(*entries))

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("GUISE_TEST_RECORD");
	char *file;
	int fd;

	/* From here on the calls below find their way, too. */
	for (size_t i = 0; i < ENTRIES; i++) {
		*entries[i].mark = &nowhere;
		*entries[i].next = dlsym(RTLD_NEXT, entries[i].name);
	}
	fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
	if (fd < 0 || ftruncate(fd, (off_t)(ENTRIES * RECORD)))
		abort();
	file = mmap(NULL, ENTRIES * RECORD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		abort();
	close(fd);
	for (size_t i = 0; i < ENTRIES; i++) {
		snprintf(file + i * RECORD, RECORD - 1, "%s", entries[i].name);
		*entries[i].mark = file + i * RECORD + RECORD - 1;
	}
}
