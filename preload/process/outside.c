// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that guise cannot be part of: static ones, those written in Go, those of
 * another processor, those that gain privileges when they start (tracing.c recognises
 * them), and any program where the library cannot be read (after a chroot, or by another
 * user).
 *
 * `guise run` recognises such a program when it is given one (cmd/guise/program.go, which
 * has the same rules). One that another program of the run starts later is on the host's
 * stack: it is recognised here, and the holder is told over the ticket, which a process has
 * even if it is no member. The holder reports it, once for each such program, because the
 * standard error of the run's programs may be read by others. At the end it says how often each
 * was started.
 *
 * A program that is started with GUISE_PRELOAD=off is noted as well, and not reported: if it
 * then joins by libguise, it counts itself (region/join.c).
 *
 * Only the file's first page is examined, which costs little. It has the program headers
 * of all files that linkers make, and in Go's programs the note with the build's name. For
 * a script, the program that runs it is examined.
 *
 * A program is noted before exec, so that the report stands before what it says; the note is
 * taken back when exec fails.
 */
#include "preload/preload.h"

#include "host/sys.h"
#include "isa/isa.h"
#include "region/join.h"
#include "region/stack.h"
#include "preload/raw/trap.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST    4 /* scripts whose interpreter is a script, as far as the kernel goes */
#define INTERPRETS "#!"

static bool quiet; /* --mode preload was asked for */
/* What this thread has told for the exec that it is about to make; why is 0: nothing. */
static __thread struct guise_join_outside told __attribute__((tls_model("initial-exec")));

void preload_outside_begin(void)
{
	const char *word = secure_getenv("GUISE_OUTSIDE");

	quiet = word && !strcmp(word, "quiet");
}

/* In a sandbox, to open a file may end the program. */
static bool is_noted(void)
{
	return preload_on_stack() && !preload.sandboxed;
}

size_t preload_read_head(const char *path, char head[PRELOAD_HEAD])
{
	long fd = host_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), n;

	if (fd < 0)
		return 0;
	n = host_sys(SYS_pread64, fd, head, PRELOAD_HEAD, 0);
	host_sys(SYS_close, fd);
	return n < 0 ? 0 : (size_t)n;
}

/* What a script names after #!, into path. */
static bool read_interpreter(const char *head, size_t n, char *path)
{
	size_t at = strlen(INTERPRETS), length = 0;

	if (n < at || memcmp(head, INTERPRETS, at))
		return false;
	while (at < n && (head[at] == ' ' || head[at] == '\t'))
		at++;
	while (at + length < n && !strchr(" \t\n", head[at + length]))
		length++;
	if (!length || length >= PATH_MAX)
		return false;
	memcpy(path, head + at, length);
	path[length] = '\0';
	return true;
}

/* A note of Go's linker: its build's name. */
static bool is_go(const ElfW(Phdr) * p, const char *head, size_t n)
{
	ElfW(Nhdr) note;

	if (p->p_type != PT_NOTE || p->p_offset > n || n - p->p_offset < sizeof(note) + 4)
		return false;
	memcpy(&note, head + p->p_offset, sizeof(note));
	return note.n_namesz == 4 && !memcmp(head + p->p_offset + sizeof(note), "Go\0", 4);
}

/*
 * Whether the loader can read the library after exec. access(2) leaves out capabilities that a
 * user other than root has before exec.
 */
static bool library_is_readable(void)
{
	return !host_sys(SYS_faccessat, AT_FDCWD, preload_library(), R_OK);
}

/* The loader of dynamic programs, executed as such: it needs none itself. */
static bool is_loader(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "ld-linux-", 9) || !strcmp(name, "ld.so");
}

static enum guise_outside_why look_at(const char *path, const char *head, size_t n)
{
	bool loaded = false, go = false;
	ElfW(Ehdr) e;

	if (n < sizeof(e) || memcmp(head, ELFMAG, SELFMAG))
		return GUISE_INSIDE;
	memcpy(&e, head, sizeof(e));
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != guise_isa_machine)
		return GUISE_OUTSIDE_MACHINE;
	for (unsigned int i = 0; i < e.e_phnum; i++) {
		size_t at = e.e_phoff + i * sizeof(ElfW(Phdr));
		ElfW(Phdr) p;

		if (e.e_phentsize != sizeof(p) || at > n || n - at < sizeof(p))
			return GUISE_INSIDE; /* no linker does so */
		memcpy(&p, head + at, sizeof(p));
		loaded |= p.p_type == PT_INTERP;
		go |= is_go(&p, head, n);
	}
	if (go && (!loaded || !preload_trapping()))
		return GUISE_OUTSIDE_GO;
	if (!loaded && !is_loader(path))
		return GUISE_OUTSIDE_STATIC;
	return library_is_readable() ? GUISE_INSIDE : GUISE_OUTSIDE_UNREADABLE;
}

void preload_outside(const char *path, uint32_t why)
{
	if (!is_noted())
		return;
	told = (struct guise_join_outside){ .request = guise_join_request(GUISE_JOIN_OUTSIDE),
					    .why = why,
					    .quiet = quiet };
	snprintf(told.program, sizeof(told.program), "%s", path);
	guise_join_tell(preload.ticket, &told);
}

void preload_outside_file(const char *path)
{
	char head[PRELOAD_HEAD], interpreter[PATH_MAX];
	enum guise_outside_why why;
	size_t n;

	if (!is_noted())
		return;
	n = preload_read_head(path, head);
	for (int deep = 0; deep < DEEPEST && read_interpreter(head, n, interpreter); deep++) {
		path = interpreter;
		n = preload_read_head(path, head);
	}
	why = look_at(path, head, n);
	if (why != GUISE_INSIDE)
		preload_outside(path, why);
}

/* This thread's variables may have been set by the child of a vfork that has executed a program. */
void preload_outside_first(void)
{
	told.why = GUISE_INSIDE;
}

void preload_outside_not_after_all(void)
{
	if (told.why) {
		told.back = true;
		guise_join_tell(preload.ticket, &told);
	}
	told.why = GUISE_INSIDE;
}
