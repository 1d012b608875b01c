// SPDX-License-Identifier: GPL-2.0-only
/* Users and groups of a program are those of its sockets. */
#include "call.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Of libc, and declared in no header. */
int capset(struct __user_cap_header_struct *header, struct __user_cap_data_struct *data);

/* The user of a socket, as /proc/net/udp has it; -1: not listed. */
static long user_of(int fd)
{
	FILE *f = fopen("/proc/net/udp", "r");
	unsigned long inode;
	char line[256];
	struct stat st;
	long user = -1;
	unsigned int uid;

	MUST(f && !fstat(fd, &st));
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %*s %*s %*s %*s %*s %*s %*s %u %*s %lu", &uid, &inode) == 2 &&
		    inode == st.st_ino)
			user = uid;
	fclose(f);
	return user;
}

static int listed(void)
{
	struct sockaddr_in addr = loopback(0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(fd >= 0 && !bind(fd, (void *)&addr, sizeof(addr)));
	return fd;
}

/* The user of a new socket. 0: the same as this thread's; otherwise 1 plus the user. */
static long owner(void)
{
	int fd = listed();
	long user = user_of(fd);

	close(fd);
	return user == (long)setfsuid((uid_t)-1) ? 0 : user + 1;
}

/* A user that this program can become; its own where there is none. */
static uid_t another(void)
{
	int status;

	fflush(stdout);
	if (!fork())
		_exit(setresuid(1000, 1000, 1000) != 0);
	MUST(wait(&status) > 0);
	return status ? getuid() : 1000;
}

static uid_t other;
static pthread_barrier_t barrier;

static void *elsewhere(void *unused)
{
	long first = owner(), second;

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	second = owner();
	printf("a thread's: %ld %ld\n", first, second);
	return unused;
}

static void *late(void *unused)
{
	printf("a later thread's: %ld\n", owner());
	return unused;
}

CASE(identity_changes)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uid_t own = geteuid();
	gid_t group = getegid();
	pthread_t thread;
	int old, status;

	other = another();
	old = listed();
	SHOW(owner());
	SHOW(seteuid(other));
	SHOW(owner());
	/* A socket keeps its user. */
	SHOW(user_of(old) == (long)own);
	SHOW(seteuid(own));
	SHOW(owner());
	SHOW(setreuid((uid_t)-1, other));
	SHOW(owner());
	SHOW(setresuid((uid_t)-1, own, (uid_t)-1));
	SHOW(owner());
	SHOW(setfsuid(other) == (int)own);
	SHOW(owner());
	SHOW(setfsuid(own) == (int)other);
	SHOW(owner());
	SHOW(syscall(SYS_setresuid, -1, other, -1));
	SHOW(owner());
	SHOW(syscall(SYS_setreuid, -1, own));
	SHOW(owner());
	SHOW(syscall(SYS_setfsuid, other) == own);
	SHOW(owner());
	SHOW(syscall(SYS_setfsuid, own) == other);
	SHOW(setegid(group));
	SHOW(setregid(group, group));
	SHOW(setresgid(group, group, group));
	SHOW(setfsgid(group) == (int)group);
	SHOW(setgid(group));
	SHOW(setgroups(1, &group));
	SHOW(syscall(SYS_setgroups, 1, &group));
	SHOW(initgroups("nobody", group));

	/* All threads of a process at the same time, and later ones. */
	pthread_barrier_init(&barrier, NULL, 2);
	MUST(!pthread_create(&thread, NULL, elsewhere, NULL));
	pthread_barrier_wait(&barrier);
	SHOW(seteuid(other));
	SHOW(owner());
	pthread_barrier_wait(&barrier);
	MUST(!pthread_join(thread, NULL));
	MUST(!pthread_create(&thread, NULL, late, NULL));
	MUST(!pthread_join(thread, NULL));

	/* A child has the user of its parent. */
	fflush(stdout);
	if (!fork()) {
		printf("a child's: %ld\n", owner());
		fflush(stdout);
		_exit(0);
	}
	MUST(wait(&status) > 0);
	SHOW(seteuid(own));

	/* For good. */
	MUST(!syscall(SYS_capget, &header, data));
	SHOW(capset(&header, data));
	SHOW(setuid(other));
	SHOW(owner());
	SHOW(capset(NULL, NULL));
}

/* A port is shared by sockets of one user. */
CASE(port_of_a_user)
{
	struct sockaddr_in addr = loopback(0);
	socklen_t len = sizeof(addr);
	int fd[3];

	other = another();
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			MUST(!seteuid(other));
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		MUST(!setsockopt(fd[i], SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int)));
		SHOW(bind(fd[i], (void *)&addr, sizeof(addr)));
		if (!i)
			MUST(!getsockname(fd[0], (void *)&addr, &len) && !listen(fd[0], 1));
	}
}
