// SPDX-License-Identifier: GPL-2.0-only
/* sendfile and splice: every pair of a socket, a file, a pipe and a folder, and bad offsets. */
#include "call.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define ENDS 8

static const char *const end_names[ENDS] = { "stream",  "datagram", "unconnected", "file",
					     "pipe in", "pipe out", "folder",      "nothing" };

/* One of each. The peers stay open, and nothing reads from them. */
static void open_ends(int fd[ENDS])
{
	int pair[2], pipes[2];

	stream_pair(pair);
	fd[0] = pair[0];
	MUST(send(pair[1], "from the peer", 13, 0) == 13);
	await(fd[0], POLLIN);
	datagram_pair(pair);
	fd[1] = pair[0];
	MUST(send(pair[1], "datagram", 8, 0) == 8);
	await(fd[1], POLLIN);
	fd[2] = socket(AF_INET, SOCK_STREAM, 0);
	fd[3] = memfd_create("content", 0);
	MUST(write(fd[3], "what the file holds", 19) == 19);
	MUST(!lseek(fd[3], 0, SEEK_SET));
	MUST(!pipe2(pipes, O_NONBLOCK));
	fd[4] = pipes[0];
	fd[5] = pipes[1];
	MUST(write(fd[5], "in the pipe", 11) == 11);
	fd[6] = open("/", O_RDONLY | O_DIRECTORY);
	fd[7] = 4711;
	MUST(!fcntl(fd[0], F_SETFL, O_NONBLOCK));
	MUST(!fcntl(fd[1], F_SETFL, O_NONBLOCK));
}

static void close_ends(int fd[ENDS])
{
	for (int i = 0; i < ENDS - 1; i++)
		close(fd[i]);
}

CASE(sendfile_pairs)
{
	int fd[ENDS];

	signal(SIGPIPE, SIG_IGN);
	for (int out = 0; out < ENDS; out++)
		for (int in = 0; in < ENDS; in++) {
			off_t offset = 2;

			/* From a socket to a file of the host: there the host's kernel behaves
			 * differently. */
			open_ends(fd);
			TELL(sendfile(fd[out], fd[in], NULL, 5), "sendfile(%s, %s)", end_names[out],
			     end_names[in]);
			TELL(sendfile64(fd[out], fd[in], &offset, 5), "sendfile64(%s, %s, 2)",
			     end_names[out], end_names[in]);
			printf("offset %ld\n", (long)offset);
			offset = -1;
			TELL(sendfile(fd[out], fd[in], &offset, 5), "sendfile(%s, %s, -1)",
			     end_names[out], end_names[in]);
			TELL(sendfile(fd[out], fd[in], NULL, 0), "sendfile(%s, %s, nothing)",
			     end_names[out], end_names[in]);
			close_ends(fd);
		}
	open_ends(fd);
	EACH_BAD_POINTER(p)
	if (p->at)
		TELL(sendfile(fd[0], fd[3], p->at, 5), "sendfile(offset %s)", p->name);
	SHOW(sendfile(fd[0], open("/dev/null", O_WRONLY), NULL, 1));
	SHOW(sendfile(fd[0], fd[3], NULL, (size_t)-1));
	SHOW(lseek(fd[3], 0, SEEK_CUR));
	SHOW(sendfile(fd[0], fd[3], NULL, 10));
}

/* At TCP's urgent byte it ends, behind what came before it; a read steps over it. */
CASE(splice_urgent)
{
	int fd[2], way[2], at = 0;
	char buf[64];

	stream_pair(fd);
	MUST(!pipe(way));
	MUST(send(fd[0], "before", 6, 0) == 6);
	MUST(send(fd[0], "!", 1, MSG_OOB) == 1);
	MUST(poll(&(struct pollfd){ .fd = fd[1], .events = POLLPRI }, 1, -1) == 1);
	SHOW(splice(fd[1], NULL, way[1], NULL, 64, 0));
	SHOW(read(way[0], buf, sizeof(buf)));
	SHOW(splice(fd[1], NULL, way[1], NULL, 64, 0));
	SHOW(splice(fd[1], NULL, way[1], NULL, 64, SPLICE_F_NONBLOCK));
	SHOW(ioctl(fd[1], SIOCATMARK, &at));
	SHOW(at);
	MUST(send(fd[0], "after", 5, 0) == 5);
	SHOW(splice(fd[1], NULL, way[1], NULL, 64, 0));
	SHOW(recv(fd[1], buf, 1, MSG_OOB));
	SHOW(recv(fd[1], buf, 5, MSG_WAITALL));
}

CASE(splice_pairs)
{
	int fd[ENDS];
	char buf[64];

	signal(SIGPIPE, SIG_IGN);
	for (int in = 0; in < ENDS; in++)
		for (int out = 0; out < ENDS; out++) {
			off64_t a = 0, b = 0;

			open_ends(fd);
			TELL(splice(fd[in], NULL, fd[out], NULL, 5, SPLICE_F_NONBLOCK),
			     "splice(%s, %s)", end_names[in], end_names[out]);
			TELL(splice(fd[in], &a, fd[out], NULL, 5, SPLICE_F_NONBLOCK),
			     "splice(%s at 0, %s)", end_names[in], end_names[out]);
			TELL(splice(fd[in], NULL, fd[out], &b, 5, SPLICE_F_NONBLOCK),
			     "splice(%s, %s at 0)", end_names[in], end_names[out]);
			TELL(splice(fd[in], NULL, fd[out], NULL, 0, 0), "splice(%s, %s, nothing)",
			     end_names[in], end_names[out]);
			TELL(splice(fd[in], NULL, fd[out], NULL, 5, 0x100), "splice(%s, %s, flags)",
			     end_names[in], end_names[out]);
			printf("offsets %ld %ld\n", (long)a, (long)b);
			TELL(read(fd[4], buf, sizeof(buf)), "read(the pipe)");
			TELL(recv(fd[0], buf, sizeof(buf), 0), "recv(the stream)");
			close_ends(fd);
		}
}
