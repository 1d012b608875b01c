// SPDX-License-Identifier: GPL-2.0-only
/* Data through every call that moves it. */
#include "case.h"

#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static char buf[1 << 16];

/* Waits for n bytes of fd and shows them. */
static void show_bytes(int fd, int n)
{
	memset(buf, 0, 256);
	MUST(recv(fd, buf, (size_t)n, MSG_WAITALL) == n);
	printf("\"%s\"\n", buf);
}

CASE(transfer_forms)
{
	struct iovec out[3] = { { "one ", 4 }, { "", 0 }, { "two", 3 } };
	struct iovec in[2] = { { buf, 2 }, { buf + 2, 30 } };
	int fd[2];

	stream_pair(fd);
	SHOW(write(fd[0], "written", 7));
	show_bytes(fd[1], 7);
	SHOW(writev(fd[0], out, 3));
	show_bytes(fd[1], 7);
	SHOW(send(fd[0], "sent", 4, MSG_DONTWAIT));
	SHOW(readable(fd[1], 5000));
	SHOW(read(fd[1], buf, 2));
	SHOW(recv(fd[1], buf, sizeof(buf), MSG_PEEK));
	SHOW(recv(fd[1], buf, sizeof(buf), MSG_PEEK | MSG_TRUNC));
	SHOW(recv(fd[1], buf, 1, 0));
	SHOW(read(fd[1], buf, sizeof(buf)));
	SHOW(recv(fd[1], buf, sizeof(buf), MSG_DONTWAIT));
	SHOW(send(fd[0], "vectored", 8, 0));
	SHOW(readable(fd[1], 5000));
	SHOW(readv(fd[1], in, 2));
	printf("%.8s\n", buf);
	SHOW(read(fd[1], buf, 0));
	SHOW(readv(fd[1], in, -1));
	SHOW(writev(fd[1], in, 5000));
	SHOW(write(fd[0], (void *)8, 10));
	SHOW(send(fd[0], (void *)8, 10, 0));
	SHOW(write(fd[0], "y", 1));
	SHOW(readable(fd[1], 5000));
	SHOW(read(fd[1], (void *)8, 10));
	SHOW(read(fd[1], buf, 10));
	SHOW(read(4711, buf, 1));
	SHOW(write(-1, buf, 1));
	SHOW(send(STDERR_FILENO, buf, 1, 0));
	/* A whole lot, which fills the buffers on the way. */
	SHOW(fcntl(fd[0], F_SETFL, O_NONBLOCK));
	for (long sent = 0, got = 0, n; got < 4000000;) {
		n = sent < 4000000 ? write(fd[0], buf, sizeof(buf)) : 0;
		sent += n > 0 ? n : 0;
		MUST(n >= 0 || errno == EAGAIN);
		MUST(readable(fd[1], 5000));
		n = read(fd[1], buf, 5000);
		MUST(n > 0);
		got += n;
	}
}

CASE(transfer_positions)
{
	struct iovec v = { buf, 4 };
	int fd[2];

	stream_pair(fd);
	SHOW(pread(fd[0], buf, 1, 0));
	SHOW(pwrite(fd[0], buf, 1, 0));
	SHOW(pread64(fd[0], buf, 1, 5));
	SHOW(pwrite64(fd[0], buf, 1, 5));
	SHOW(preadv(fd[0], &v, 1, 0));
	SHOW(pwritev(fd[0], &v, 1, 0));
	SHOW(preadv64(fd[0], &v, 1, 0));
	SHOW(pwritev64(fd[0], &v, 1, 0));
	SHOW(preadv2(fd[0], &v, 1, 0, 0));
	SHOW(pwritev2(fd[0], &v, 1, 0, 0));
	SHOW(preadv64v2(fd[0], &v, 1, 0, 0));
	SHOW(pwritev64v2(fd[0], &v, 1, 0, 0));
	SHOW(pwritev2(fd[0], &v, 1, -1, 0));
	SHOW(readable(fd[1], 5000));
	SHOW(preadv2(fd[1], &v, 1, -1, 0));
	SHOW(lseek(fd[0], 0, SEEK_CUR));
	SHOW(ftruncate(fd[0], 0));
}

CASE(datagram)
{
	struct sockaddr_in addr[2], from;
	socklen_t len = sizeof(from);
	struct iovec part[2] = { { "head", 4 }, { "tail", 4 } }, room = { buf, 100 };
	char control[256];
	struct msghdr m = { .msg_name = &addr[1],
			    .msg_namelen = sizeof(addr[1]),
			    .msg_iov = part,
			    .msg_iovlen = 2 };
	struct msghdr r = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &room,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct mmsghdr many[2] = { { .msg_hdr = m }, { .msg_hdr = m } };
	struct timespec soon = { .tv_nsec = 1000000 };
	int fd[2], on = 1;

	for (int i = 0; i < 2; i++)
		fd[i] = bound(SOCK_DGRAM, &addr[i]);
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(sendto(fd[0], "hello", 5, 0, (struct sockaddr *)&addr[1], sizeof(addr[1])));
	SHOW(recvfrom(fd[1], buf, 3, MSG_TRUNC, (struct sockaddr *)&from, &len));
	SHOW(memcmp(&from, &addr[0], sizeof(from)));
	SHOW(sendmsg(fd[0], &m, 0));
	SHOW(setsockopt(fd[1], IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)));
	SHOW(recvmsg(fd[1], &r, 0));
	printf("%.8s %d %d\n", buf, r.msg_flags, r.msg_controllen > 0);
	SHOW(sendmmsg(fd[0], many, 2, 0));
	SHOW(many[1].msg_len);
	many[0].msg_hdr = many[1].msg_hdr = r;
	SHOW(recvmmsg(fd[1], many, 2, 0, &soon));
	SHOW(many[0].msg_len);
	SHOW(recvmmsg(fd[1], many, 2, MSG_DONTWAIT, NULL));
	SHOW(recvfrom(fd[1], buf, 3, MSG_DONTWAIT, NULL, NULL));
	SHOW(sendto(fd[0], buf, 0, 0, (struct sockaddr *)&addr[1], sizeof(addr[1])));
	SHOW(recvfrom(fd[1], buf, 3, 0, NULL, NULL));
	SHOW(sendto(fd[0], buf, 66000, 0, (struct sockaddr *)&addr[1], sizeof(addr[1])));
	SHOW(recvmsg(fd[1], (struct msghdr *)8, 0));
	SHOW(sendmsg(fd[1], NULL, 0));
	close(fd[1]);
	SHOW(connect(fd[0], (struct sockaddr *)&addr[1], sizeof(addr[1])));
	SHOW(send(fd[0], "x", 1, 0));
	SHOW(recv(fd[0], buf, 1, 0));
}

CASE(out_of_band)
{
	int fd[2];

	stream_pair(fd);
	SHOW(send(fd[0], "a", 1, 0));
	SHOW(send(fd[0], "!", 1, MSG_OOB));
	SHOW(send(fd[0], "b", 1, 0));
	SHOW(sockatmark(fd[1]));
	SHOW(recv(fd[1], buf, 10, MSG_OOB));
	SHOW(recv(fd[1], buf, 10, 0));
	SHOW(sockatmark(fd[1]));
	SHOW(recv(fd[1], buf, 10, 0));
	SHOW(sockatmark(fd[1]));
	SHOW(sockatmark(STDIN_FILENO));
}

CASE(send_file)
{
	int fd[2], file = memfd_create("content", MFD_CLOEXEC);
	off_t offset = 100000;

	MUST(file >= 0);
	for (int i = 0; i < 1 << 15; i++)
		MUST(write(file, &i, sizeof(i)) == sizeof(i));
	MUST(!lseek(file, 0, SEEK_SET));
	stream_pair(fd);
	SHOW(sendfile(fd[0], file, NULL, 1000));
	SHOW(lseek(file, 0, SEEK_CUR));
	SHOW(sendfile64(fd[0], file, &offset, 500));
	SHOW(offset);
	SHOW(lseek(file, 0, SEEK_CUR));
	SHOW(recv(fd[1], buf, 1500, MSG_WAITALL));
	SHOW(((int *)(void *)buf)[249]);
	SHOW(((int *)(void *)buf)[250]);
	SHOW(sendfile(fd[0], file, NULL, 0));
	offset = 131000;
	SHOW(sendfile(fd[0], file, &offset, 10000));
	SHOW(offset);
	SHOW(sendfile(fd[0], file, &offset, 10000));
	offset = -1;
	SHOW(sendfile(fd[0], file, &offset, 10));
	SHOW(sendfile(fd[0], fd[1], NULL, 10));
	SHOW(sendfile(fd[0], 4711, NULL, 10));
	/* A socket that takes less: the file's position says how much. */
	SHOW(fcntl(fd[0], F_SETFL, O_NONBLOCK));
	MUST(!lseek(file, 0, SEEK_SET));
	for (long n, got = 72; got < 131072;) {
		n = sendfile(fd[0], file, NULL, 1 << 20);
		MUST(n >= 0 || errno == EAGAIN);
		n = recv(fd[1], buf, 3000, 0);
		MUST(n > 0);
		got += n;
	}
	SHOW(lseek(file, 0, SEEK_CUR));
}

/* As a program would that prefers splice and can do without. */
CASE(splice_pipes)
{
	static char big[65536], back[65536];
	off64_t offset = 0;
	int fd[2], pipes[2];
	long total = 0, n;

	stream_pair(fd);
	MUST(!pipe(pipes));
	MUST(write(fd[0], "through a pipe", 14) == 14);
	MUST(readable(fd[1], 5000));
	SHOW(splice(fd[1], NULL, pipes[1], NULL, 7, 0));
	SHOW(splice(fd[1], NULL, pipes[1], NULL, 100, SPLICE_F_MOVE));
	SHOW(read(pipes[0], buf, 100));
	printf("%.14s\n", buf);
	SHOW(fcntl(fd[1], F_SETFL, O_NONBLOCK));
	SHOW(splice(fd[1], NULL, pipes[1], NULL, 100, 0));
	SHOW(fcntl(fd[1], F_SETFL, 0));
	SHOW(splice(pipes[0], NULL, fd[0], NULL, 100, SPLICE_F_NONBLOCK));
	SHOW(write(pipes[1], "back again", 10));
	SHOW(splice(pipes[0], NULL, fd[0], NULL, 4, 0));
	SHOW(splice(pipes[0], NULL, fd[0], NULL, 100, SPLICE_F_MORE));
	SHOW(recv(fd[1], buf, 10, MSG_WAITALL));
	printf("%.10s\n", buf);
	/* Much, piece by piece. */
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 + i / 251);
	SHOW(write(pipes[1], big, sizeof(big)));
	while (total < (long)sizeof(big)) {
		MUST((n = splice(pipes[0], NULL, fd[0], NULL, sizeof(big), 0)) > 0);
		total += n;
	}
	SHOW(recv(fd[1], back, sizeof(back), MSG_WAITALL));
	SHOW(memcmp(big, back, sizeof(big)));
	SHOW(write(fd[0], big, 3000));
	SHOW(shutdown(fd[0], SHUT_WR));
	for (total = 0; (n = splice(fd[1], NULL, pipes[1], NULL, 1000, 0)) > 0;)
		total += n;
	SHOW(total);
	SHOW(n);
	SHOW(read(pipes[0], back, 3000));
	SHOW(memcmp(big, back, 3000));
	/* Errors. */
	SHOW(splice(4711, NULL, pipes[1], NULL, 100, 0));
	SHOW(splice(fd[1], NULL, 4711, NULL, 100, 0));
	SHOW(splice(fd[1], NULL, pipes[1], NULL, 0, 0));
	SHOW(splice(fd[1], NULL, fd[0], NULL, 100, 0));
	SHOW(splice(fd[1], NULL, pipes[1], NULL, 100, 0x100));
	SHOW(splice(fd[1], NULL, pipes[1], &offset, 100, 0));
	SHOW(splice(fd[1], &offset, pipes[1], NULL, 100, 0));
	SHOW(splice(pipes[0], NULL, fd[0], NULL, 100, SPLICE_F_NONBLOCK));
	SHOW(tee(fd[1], pipes[1], 100, 0));
	SHOW(close(pipes[1]));
	SHOW(splice(pipes[0], NULL, fd[1], NULL, 100, 0));
}
