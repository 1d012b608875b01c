// SPDX-License-Identifier: GPL-2.0-only
/* Numbers: fcntl and ioctl with every command, dup, close and close_range in every way. */
#include "call.h"

#include <linux/close_range.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

static int some_socket(int which)
{
	static const int kinds[][3] = { { AF_INET, SOCK_STREAM, 0 }, { AF_INET, SOCK_DGRAM, 0 },
					{ AF_INET6, SOCK_DGRAM, 0 }, { AF_INET, SOCK_RAW, 1 },
					{ AF_PACKET, SOCK_RAW, 0 },  { AF_NETLINK, SOCK_RAW, 0 } };

	return socket(kinds[which][0], kinds[which][1], kinds[which][2]);
}

#define KINDS 6

CASE(fcntl_every_command)
{
	/* The first word of each answer: a structure for some. */
	for (int kind = 0; kind < KINDS; kind++)
		for (int command = 0; command < 20; command++)
			for (int arg = -1; arg < 3; arg++) {
				int fd = some_socket(kind);
				long ret;

				/* Locks take a structure, and are looked at below. */
				if (command >= F_GETLK && command <= F_SETLKW)
					continue;
				if (command == F_GETOWN_EX || command == F_SETOWN_EX ||
				    command == 17)
					continue;
				ret = TELL(fcntl(fd, command, arg), "fcntl(%d, %d, %d)", kind,
					   command, arg);
				if (command == F_DUPFD && ret >= 0)
					close((int)ret);
				close(fd);
			}
	for (int command = 1024; command < 1044; command++)
		for (int arg = 0; arg < 2; arg++) {
			int fd = some_socket(0);
			long ret;

			/* F_GET_RW_HINT and its like take an address. */
			if (command >= 1035 && command <= 1038)
				continue;
			ret = TELL(fcntl(fd, command, arg), "fcntl(%d, %d)", command, arg);
			if (command == F_DUPFD_CLOEXEC && ret >= 0)
				close((int)ret);
			close(fd);
		}
	EACH_BAD_POINTER(p)
	{
		static const int commands[] = { F_GETLK,     F_SETLK, 36,   37,   F_GETOWN_EX,
						F_SETOWN_EX, 1035,    1036, 1037, 1038 };
		int fd = some_socket(0);

		for (size_t i = 0; i < COUNT(commands); i++)
			TELL(fcntl(fd, commands[i], p->at), "fcntl(%d, %s)", commands[i], p->name);
		close(fd);
	}
	SHOW(fcntl(-1, F_GETFL));
	SHOW(fcntl(4711, F_GETFD));
	SHOW(fcntl(-1, F_DUPFD, 0));
	SHOW(fcntl(some_socket(0), F_DUPFD, -1));
	SHOW(fcntl(some_socket(0), F_DUPFD, 1 << 30));
	SHOW(fcntl64(-1, F_GETFL));
}

CASE(fcntl_flags)
{
	static const int bits[] = { O_RDONLY, O_WRONLY,  O_APPEND, O_NONBLOCK, O_DIRECT, O_NOATIME,
				    O_SYNC,   O_CLOEXEC, O_CREAT,  O_PATH,     1 << 30 };

	for (int kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < COUNT(bits); i++) {
			int fd = some_socket(kind), other = dup(fd);

			TELL(fcntl(fd, F_SETFL, bits[i]), "fcntl(F_SETFL, %o)", bits[i]);
			TELL(fcntl(fd, F_GETFL), "fcntl(F_GETFL)");
			TELL(fcntl(other, F_GETFL), "fcntl(F_GETFL of a duplicate)");
			TELL(fcntl(fd, F_GETFD), "fcntl(F_GETFD)");
			close(fd);
			close(other);
		}
}

CASE(fcntl_locks)
{
	static const int commands[] = { F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK };
	static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK, 9 };
	int fd = some_socket(0);

	for (size_t c = 0; c < COUNT(commands); c++)
		for (size_t t = 0; t < COUNT(types); t++) {
			struct flock lock = { .l_type = types[t], .l_whence = SEEK_SET };

			TELL(fcntl(fd, commands[c], &lock), "fcntl(%d, type %d)", commands[c],
			     types[t]);
			printf("type %d\n", lock.l_type);
		}
}

/* Which process or thread gets SIGIO and SIGURG. */
CASE(fcntl_owner)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID };
	int fd = some_socket(0), number = 0;

	SHOW(fcntl(fd, F_GETOWN));
	SHOW(fcntl(fd, F_SETOWN, getpid()));
	SHOW(fcntl(fd, F_GETOWN) == getpid());
	SHOW(ioctl(fd, FIOGETOWN, &number));
	SHOW(number == getpid());
	SHOW(ioctl(fd, SIOCGPGRP, &number));
	SHOW(number == getpid());
	number = 0;
	SHOW(ioctl(fd, FIOSETOWN, &number));
	SHOW(fcntl(fd, F_GETOWN));
	SHOW(fcntl(fd, F_SETOWN, -getpgrp()));
	SHOW(fcntl(fd, F_GETOWN) == -getpgrp());
	SHOW(fcntl(fd, F_SETOWN, 0x7ffffff0));
	owner.pid = (pid_t)syscall(SYS_gettid);
	SHOW(fcntl(fd, F_SETOWN_EX, &owner));
	owner.pid = 0;
	SHOW(fcntl(fd, F_GETOWN_EX, &owner));
	SHOW(owner.type);
	SHOW(owner.pid == (pid_t)syscall(SYS_gettid));
	owner.type = 77;
	SHOW(fcntl(fd, F_SETOWN_EX, &owner));
	SHOW(fcntl(fd, F_SETSIG, SIGUSR1));
	SHOW(fcntl(fd, F_GETSIG) == SIGUSR1);
	SHOW(fcntl(fd, F_SETSIG, 200));
	SHOW(fcntl(fd, F_SETSIG, -1));
	SHOW(fcntl(fd, F_SETSIG, 0));
	SHOW(fcntl(fd, F_GETSIG));
}

CASE(ioctl_of_files)
{
	static const unsigned long requests[] = {
		FIONREAD,         SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, FIONBIO,    SIOCGSTAMP,
		SIOCGSTAMPNS,     FIOCLEX,  FIONCLEX,    TCGETS,     TIOCGWINSZ, TIOCSTI,
		2 /* FIGETBSZ */, 0,        0x1234,      0x89f0,     0x8980,     0xffffffff
	};

	for (int kind = 0; kind < KINDS; kind++)
		for (size_t r = 0; r < COUNT(requests); r++) {
			unsigned char room[64] = { 1 };
			int fd = some_socket(kind);

			TELL(ioctl(fd, requests[r], room), "ioctl(%d, %lx)", kind, requests[r]);
			TELL(room[0], "first byte");
			TELL(fcntl(fd, F_GETFL), "fcntl(F_GETFL)");
			TELL(fcntl(fd, F_GETFD), "fcntl(F_GETFD)");
			EACH_BAD_POINTER(p)
			TELL(ioctl(fd, requests[r], p->at), "ioctl(%d, %lx, %s)", kind, requests[r],
			     p->name);
			close(fd);
		}
	SHOW(ioctl(-1, FIONREAD, NULL));
	SHOW(ioctl(4711, SIOCGIFFLAGS, NULL));
	SHOW(isatty(some_socket(0)));
}

/* Requests about interfaces, each with lo and with one that is not there. */
CASE(ioctl_of_interfaces)
{
	static const char *const names[] = { "lo", "none0", "", "lo:0" };

	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned long request = 0x8910; request < 0x8960; request++)
			for (size_t n = 0; n < COUNT(names); n++) {
				int fd = some_socket(kind);
				struct ifreq r;
				int ret;

				/* Set and delete are another case's; SIOCETHTOOL has an address. */
				if (request == SIOCETHTOOL || request == SIOCGIFCONF)
					continue;
				memset(&r, 0, sizeof(r));
				strcpy(r.ifr_name, names[n]);
				ret = ioctl(fd, request, &r);
				/* A new descriptor. */
				if (request == SIOCGSKNS && ret >= 0) {
					TELL(fcntl(ret, F_GETFD), "fcntl(namespace)");
					close(ret);
					ret = 0;
				}
				tell_result(ret, "ioctl(%d, %lx, %s)", kind, request, names[n]);
				for (size_t i = 0; i < 16; i++)
					printf("%02x", ((unsigned char *)&r.ifr_ifru)[i]);
				printf("\n");
				close(fd);
			}
	for (unsigned long request = 0x8910; request < 0x8980; request++)
		EACH_BAD_POINTER(p)
	TELL(ioctl(STDIN_FILENO, request, p->at), "ioctl(a file, %lx, %s)", request, p->name);
	for (unsigned long request = 0x8910; request < 0x8980; request++) {
		int fd = some_socket(1);

		EACH_BAD_POINTER(p)
		TELL(ioctl(fd, request, p->at), "ioctl(a socket, %lx, %s)", request, p->name);
		close(fd);
	}
}

CASE(ioctl_interface_list)
{
	struct ifreq all[8];
	struct ifconf list = { .ifc_len = sizeof(all), .ifc_req = all };
	int fd = some_socket(1);

	SHOW(ioctl(fd, SIOCGIFCONF, &list));
	SHOW(list.ifc_len);
	puts(all[0].ifr_name);
	list = (struct ifconf){ .ifc_len = 0, .ifc_req = NULL };
	SHOW(ioctl(fd, SIOCGIFCONF, &list));
	SHOW(list.ifc_len);
	list = (struct ifconf){ .ifc_len = 3, .ifc_req = all };
	SHOW(ioctl(fd, SIOCGIFCONF, &list));
	SHOW(list.ifc_len);
	EACH_BAD_POINTER(p)
	{
		list = (struct ifconf){ .ifc_len = sizeof(all), .ifc_req = p->at };
		TELL(ioctl(fd, SIOCGIFCONF, &list), "ioctl(SIOCGIFCONF, %s)", p->name);
		TELL(list.ifc_len, "length");
	}
}

/* What is in the queues. */
CASE(ioctl_queues)
{
	int fd[2], udp[2], n = -1;
	char buf[8];

	stream_pair(fd);
	datagram_pair(udp);
	MUST(send(fd[1], "abcdef", 6, 0) == 6);
	MUST(send(udp[1], "abc", 3, 0) == 3);
	MUST(send(udp[1], "defgh", 5, 0) == 5);
	await(fd[0], POLLIN);
	await(udp[0], POLLIN);
	SHOW(ioctl(fd[0], FIONREAD, &n));
	SHOW(n);
	SHOW(ioctl(udp[0], FIONREAD, &n));
	SHOW(n);
	SHOW(recv(udp[0], buf, 8, 0));
	SHOW(ioctl(udp[0], FIONREAD, &n));
	SHOW(n);
	SHOW(recv(fd[0], buf, 2, 0));
	SHOW(ioctl(fd[0], FIONREAD, &n));
	SHOW(n);
	shutdown(fd[1], SHUT_WR);
	SHOW(recv(fd[0], buf, 8, 0));
	SHOW(recv(fd[0], buf, 8, 0));
	SHOW(ioctl(fd[0], FIONREAD, &n));
	SHOW(n);
	SHOW(ioctl(bound(SOCK_STREAM, &(struct sockaddr_in){ 0 }), FIONREAD, &n));
}

CASE(dup_everywhere)
{
	int fd = some_socket(0), host = open("/dev/null", O_RDWR);

	SHOW(dup(fd));
	SHOW(dup(-1));
	SHOW(dup(4711));
	SHOW(dup2(fd, 20));
	SHOW(dup2(fd, 20));
	SHOW(dup2(20, 20));
	SHOW(dup2(host, 20));
	SHOW(dup2(fd, 20));
	SHOW(dup2(21, 21));
	SHOW(dup2(-1, 20));
	SHOW(dup2(fd, -1));
	SHOW(dup2(4711, 20));
	SHOW(dup2(fd, 1 << 30));
	SHOW(fcntl(20, F_GETFL));
	SHOW(dup3(fd, 22, 0));
	SHOW(dup3(fd, 22, O_CLOEXEC));
	SHOW(fcntl(22, F_GETFD));
	SHOW(dup3(fd, 22, O_NONBLOCK));
	SHOW(dup3(fd, fd, 0));
	SHOW(dup3(-1, -1, 0));
	SHOW(dup3(-1, 22, 0));
	SHOW(dup3(4711, 22, 0));
	SHOW(dup3(fd, -1, 0));
	SHOW(dup3(fd, 1 << 30, 0));
	SHOW(close(20));
	SHOW(close(20));
	SHOW(close(-1));
	SHOW(close(1 << 30));
	SHOW(fcntl(fd, F_GETFL));
}

CASE(close_range_everywhere)
{
	int fd[4];

	SHOW(close_range(10, 9, 0));
	SHOW(close_range(10, 20, 8));
	SHOW(close_range(10, 20, -1));
	for (int i = 0; i < 4; i++)
		fd[i] = dup2(some_socket(i % 2), 50 + i);
	SHOW(close_range(51, 52, CLOSE_RANGE_CLOEXEC));
	for (int i = 0; i < 4; i++)
		SHOW(fcntl(fd[i], F_GETFD));
	SHOW(close_range(51, 52, 0));
	for (int i = 0; i < 4; i++)
		SHOW(fcntl(fd[i], F_GETFL));
	SHOW(close_range(53, 60, CLOSE_RANGE_UNSHARE));
	SHOW(fcntl(53, F_GETFL));
	SHOW(close_range(50, 50, 0));
	SHOW(fcntl(50, F_GETFL));
	SHOW(close_range(100, ~0U, 0));
	closefrom(40);
	SHOW(some_socket(0) >= 0);
}

/* Every call that looks at the number sees a socket. */
CASE(what_a_number_is)
{
	struct stat s;

	for (int kind = 0; kind < KINDS; kind++) {
		char path[64], to[64] = "";
		int fd = some_socket(kind);

		int other = some_socket(kind);
		struct stat o;

		SHOW(fstat(fd, &s));
		SHOW(fstat(other, &o));
		SHOW(s.st_ino == o.st_ino);
		SHOW(fchmod(other, 0600));
		SHOW(fstat(fd, &s));
		SHOW(S_ISSOCK(s.st_mode));
		printf("mode %o, size %ld\n", s.st_mode, (long)s.st_size);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		TELL(readlink(path, to, sizeof(to) - 1) > 0, "readlink()");
		printf("%.8s\n", to);
		SHOW(lseek(fd, 0, SEEK_SET));
		SHOW(ftruncate(fd, 0));
		SHOW(fsync(fd));
		SHOW(fdatasync(fd));
		SHOW(fchdir(fd));
		SHOW(isatty(fd));
		SHOW(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
		SHOW(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL));
		SHOW(fallocate(fd, 0, 0, 1));
		close(fd);
		close(other);
	}
}
