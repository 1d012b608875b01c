// SPDX-License-Identifier: GPL-2.0-only
/* Streams over sockets. */
#include "case.h"

#include <stdarg.h>

int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list ap);

static char buf[200000];

/* What comes at fd until there is that much. */
static void show_received(int fd, int n)
{
	long got = recv(fd, buf, (size_t)n, MSG_WAITALL);

	fprintf(stdout, "received %ld: %.*s\n", got, got < 100 ? (int)got : 100, buf);
}

static int format_twice(int fd, const char *format, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, format);
	va_copy(again, ap);
	n = vdprintf(fd, format, ap) + __vdprintf_chk(fd, 1, format, again);
	va_end(again);
	va_end(ap);
	return n;
}

CASE(stdio_streams)
{
	char line[100];
	FILE *f, *g;
	int fd[2];

	stream_pair(fd);
	SHOW(fdopen(fd[0], "q") == NULL);
	MUST((f = fdopen(fd[0], "r+")));
	SHOW(fileno(f) == fd[0]);
	SHOW(fprintf(f, "%s %d\n", "hello", 5));
	SHOW(fflush(f));
	show_received(fd[1], 8);
	SHOW(send(fd[1], "one\ntwo\nthr", 11, 0));
	SHOW(fgets(line, sizeof(line), f) != NULL);
	SHOW(strcmp(line, "one\n"));
	SHOW(fgetc(f));
	SHOW(ungetc('T', f));
	SHOW(fgets(line, sizeof(line), f) != NULL);
	SHOW(strcmp(line, "Two\n"));
	SHOW(fseek(f, 0, SEEK_SET));
	SHOW(ftell(f));
	SHOW(shutdown(fd[1], SHUT_WR));
	SHOW(fread(line, 1, 10, f));
	SHOW(feof(f));
	SHOW(ferror(f));
	clearerr(f);
	/* Much. */
	memset(buf, 'm', 100000);
	SHOW(fwrite(buf, 1, 100000, f));
	SHOW(fflush(f));
	show_received(fd[1], 100000);
	SHOW(dprintf(fd[0], "%d bottles\n", 99));
	SHOW(__dprintf_chk(fd[0], 1, "%d bottles\n", 98));
	SHOW(format_twice(fd[0], "%d %s.", 5, "rings"));
	show_received(fd[1], 22 + 16);
	SHOW(fputs("last", f));
	SHOW(fclose(f));
	SHOW(close(fd[0]));
	show_received(fd[1], 100);
	SHOW(dprintf(fd[0], "nobody"));
	/* One direction each, on a socket that does not wait. */
	stream_pair(fd);
	MUST((f = fdopen(fd[0], "w")));
	MUST((g = fdopen(dup(fd[0]), "r")));
	SHOW(fcntl(fd[0], F_SETFL, O_NONBLOCK));
	SHOW(fgetc(g));
	SHOW(ferror(g) != 0);
	SHOW(fgetc(f));
	SHOW(setvbuf(f, NULL, _IONBF, 0));
	SHOW(fputc('x', f));
	show_received(fd[1], 1);
	SHOW(fclose(g));
	SHOW(fclose(f));
	SHOW(recv(fd[1], buf, 1, 0));
	MUST((f = fdopen(fd[1], "a")));
	SHOW((fcntl(fd[1], F_GETFL) & O_APPEND) != 0);
	SHOW(fclose(f));
}

/* A socket takes the place of 0, 1 or 2, and streams their numbers. */
CASE(stdio_replaced)
{
	int fd[2], kept = dup(1), in = dup(0), number;
	FILE *f = tmpfile();
	char line[20] = "";

	stream_pair(fd);
	fflush(stdout);
	MUST(dup2(fd[0], 1) == 1);
	printf("to the socket %d\n", 1);
	puts("and more");
	putchar('x');
	fprintf(stdout, "%s", "y\n");
	fflush(stdout);
	MUST(dup2(kept, 1) == 1);
	show_received(fd[1], 16 + 9 + 3);
	MUST(dup2(fd[0], 0) == 0);
	MUST(send(fd[1], "a line\nz", 8, 0) == 8);
	SHOW(fgets(line, sizeof(line), stdin) != NULL);
	SHOW(strcmp(line, "a line\n"));
	SHOW(getchar());
	SHOW(freopen("/dev/null", "r", stdin) != NULL);
	SHOW(fileno(stdin));
	SHOW(getchar());
	MUST(dup2(fd[0], 2) == 2);
	errno = ENOENT;
	perror("why");
	show_received(fd[1], 31);
	SHOW(close(2));
	SHOW(dup2(in, 0));
	/* A stream of the host whose number becomes a socket's. */
	MUST(f);
	number = fileno(f);
	SHOW(dup2(fd[0], number) == number);
	SHOW(close(fd[0]));
	SHOW(fclose(f));
	SHOW(recv(fd[1], line, 1, 0));
	SHOW(fcntl(number, F_GETFD));
	/* The same, opened anew. */
	stream_pair(fd);
	MUST((f = fopen("/dev/null", "r+")));
	SHOW(dup2(fd[0], fileno(f)) == fileno(f));
	SHOW(close(fd[0]));
	SHOW(freopen64("/dev/zero", "r", f) == f);
	SHOW(recv(fd[1], line, 1, 0));
	SHOW(fgetc(f));
	SHOW(fclose(f));
	/* A socket's own stream, opened anew. */
	stream_pair(fd);
	MUST((f = fdopen(fd[0], "w")));
	SHOW(fputs("before", f));
	SHOW(freopen("/dev/zero", "r", f) == f);
	SHOW(fileno(f) == fd[0]);
	SHOW(fgetc(f));
	SHOW(fputc('x', f));
	show_received(fd[1], 10);
	SHOW(freopen64("/no/such/file", "r", f) == NULL);
	SHOW(fcntl(fd[0], F_GETFD));
}

int __fprintf_chk(FILE *f, int flag, const char *format, ...);
int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap);

__attribute__((format(printf, 2, 3))) static int formatted(FILE *f, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vfprintf(f, format, ap);
	va_end(ap);
	va_start(ap, format);
	n += __vfprintf_chk(f, 1, format, ap);
	va_end(ap);
	return n;
}

/* Itself: a compiler that optimizes makes __getdelim of it. */
static ssize_t (*volatile getline_itself)(char **, size_t *, FILE *) = getline;

/* What was copied of stdin and stdout before a socket took their numbers. */
CASE(stdio_copies)
{
	FILE *in = stdin, *out = stdout, *err = stderr;
	int fd[2], kept = dup(1), kept_in = dup(0);
	char *line = NULL, text[20] = "";
	size_t room = 0;

	stream_pair(fd);
	fflush(out);
	MUST(dup2(fd[0], 1) == 1);
	MUST(fputs("fputs ", out) >= 0);
	MUST(fwrite("fwrite ", 1, 7, out) == 7);
	MUST(fputc('c', out) == 'c' && putc('d', out) == 'd');
	MUST(fprintf(out, " %s", "fprintf") == 8);
	MUST(__fprintf_chk(out, 1, " %s", "chk") == 4);
	MUST(formatted(out, " %d", 7) == 4);
	printf(" printf\n");
	MUST(!fflush(out));
	MUST(dup2(kept, 1) == 1);
	show_received(fd[1], 6 + 7 + 2 + 8 + 4 + 4 + 8);
	/* The number is the host's again, and so is the copy. */
	SHOW(fputs("on the host\n", out));
	SHOW(fflush(out));

	MUST(dup2(fd[0], 0) == 0);
	MUST(send(fd[1], "abone\ntwo\nthree;four\nfive\n", 28, 0) == 28);
	SHOW(fgetc(in));
	SHOW(ungetc('z', in));
	SHOW(getc(in));
	SHOW(getc(stdin));
	SHOW(fgets(text, sizeof(text), in) != NULL);
	fputs(text, out);
	SHOW(getline_itself(&line, &room, in));
	fputs(line, out);
	SHOW(getdelim(&line, &room, ';', in));
	SHOW(fread(text, 1, 5, in));
	SHOW(strncmp(text, "four\n", 5));
	SHOW(fgets(text, sizeof(text), stdin) != NULL);
	fputs(text, out);
	MUST(dup2(fd[0], 2) == 2);
	SHOW(fprintf(err, "to the socket\n"));
	show_received(fd[1], 14);
	SHOW(close(2));
	SHOW(dup2(kept_in, 0));
	free(line);
}
