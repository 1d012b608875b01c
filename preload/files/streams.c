// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions on a FILE, for copies of stdin, stdout and stderr: those of libstdc++,
 * that std::cin and std::cout use, and the program's own. When a private socket has
 * taken 0, 1 or 2, the variable has another FILE (stdio.c); here a call with the old one
 * uses the new one.
 *
 * Otherwise each is libc's own. What compilers make of these calls inside the
 * program (getc_unlocked(), putc_unlocked() and their like) is not seen.
 */
#include "preload/preload.h"

#include <stdarg.h>
#include <stdio.h>

#undef getc
#undef putc

static inline FILE *meant(FILE *f)
{
	return likely(!__atomic_load_n(&preload_following, __ATOMIC_ACQUIRE)) ? f
									      : preload_stand_in(f);
}

HOOK size_t fwrite(const void *from, size_t size, size_t n, FILE *f)
{
	return HOST(fwrite)(from, size, n, meant(f));
}

HOOK size_t fread(void *to, size_t size, size_t n, FILE *f)
{
	return HOST(fread)(to, size, n, meant(f));
}

HOOK int fputc(int c, FILE *f)
{
	return HOST(fputc)(c, meant(f));
}

HOOK int fgetc(FILE *f)
{
	return HOST(fgetc)(meant(f));
}

HOOK int ungetc(int c, FILE *f)
{
	return HOST(ungetc)(c, meant(f));
}

HOOK int fputs(const char *text, FILE *f)
{
	return HOST(fputs)(text, meant(f));
}

HOOK char *fgets(char *to, int n, FILE *f)
{
	return HOST(fgets)(to, n, meant(f));
}

HOOK ssize_t getdelim(char **line, size_t *room, int end, FILE *f)
{
	return HOST(getdelim)(line, room, end, meant(f));
}

HOOK ssize_t getline(char **line, size_t *room, FILE *f)
{
	return HOST(getline)(line, room, meant(f));
}

HOOK int fflush(FILE *f)
{
	return HOST(fflush)(meant(f));
}

HOOK int vfprintf(FILE *f, const char *format, va_list ap)
{
	return HOST(vfprintf)(meant(f), format, ap);
}

HOOK int fprintf(FILE *f, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vfprintf(f, format, ap);
	va_end(ap);
	return ret;
}

HOOK int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap)
{
	return HOST(__vfprintf_chk)(meant(f), flag, format, ap);
}

HOOK int __fprintf_chk(FILE *f, int flag, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = __vfprintf_chk(f, flag, format, ap);
	va_end(ap);
	return ret;
}

HOOK int getc(FILE *f) SAME_AS(fgetc);
HOOK int _IO_getc(FILE *f) SAME_AS(fgetc);
HOOK int putc(int c, FILE *f) SAME_AS(fputc);
HOOK int _IO_putc(int c, FILE *f) SAME_AS(fputc);
HOOK ssize_t __getdelim(char **line, size_t *room, int end, FILE *f) SAME_AS(getdelim);
