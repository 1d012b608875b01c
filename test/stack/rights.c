// SPDX-License-Identifier: GPL-2.0-only
/*
 * rights WAY: a member of a stack gives up rights, and then attacks the stack.
 *
 * Before that it has two connections on its stack's localhost; on one a thread waits. Afterwards
 * both must still work ("sockets: alive"). Then it looks for the region wherever a process may
 * find it: mapped here, behind descriptors, by asking over the ticket as a joiner and as a
 * process to come, and in the memory of other processes. Where it finds one it overwrites a word
 * that the holder acts on: region->dead, of which the holder says that the stack is lost. So what
 * the holder says shows whether an attack has succeeded; WAY "nothing" shows that it would.
 *
 * Ways that leave the process its user and capabilities leave it what the host lets that user do
 * to the user's other processes. So "alone" leaves these out.
 */
#include "guise/layout.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pwd.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* The attacker knows the messages: lib/region/join.h. */
#define MAGIC 0x6e694f4aU
enum { NOW, HEIR, ENTER = 3 };
struct request {
	uint32_t magic, abi;
	int32_t pid;
	uint32_t kind;
};

/* Where a region's header may begin in a mapping. */
#define DEEPEST (2ul << 20)

static int here[2], there[2]; /* two connections */
static int found;
static bool alone; /* other processes are left alone */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- the connections ------------------------------------------------------------------ */

static void connections(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(to);

	if (bind(listener, (void *)&to, length) || listen(listener, 2) ||
	    getsockname(listener, (void *)&to, &length))
		die("listen");
	for (int i = 0; i < 2; i++) {
		here[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(here[i], (void *)&to, length))
			die("connect");
		there[i] = accept(listener, NULL, NULL);
		if (there[i] < 0)
			die("accept");
	}
}

/* Waits since before the rights were given up. */
static void *wait_for_it(void *unused)
{
	char text[16] = "";
	ssize_t n = recv(here[1], text, sizeof(text), 0);

	(void)unused;
	return (void *)(n == 5 && !strcmp(text, "late")
				? NULL
				: "the thread that waited got something else");
}

static void look_at_connections(pthread_t thread)
{
	const char *wrong = NULL;
	char text[16] = "";
	void *told;

	if (send(there[0], "here", 5, 0) != 5 || recv(here[0], text, sizeof(text), 0) != 5)
		wrong = strerror(errno);
	if (send(there[1], "late", 5, 0) != 5)
		wrong = strerror(errno);
	if (thread) {
		pthread_join(thread, &told);
		wrong = told ? told : wrong;
	}
	printf("sockets: %s\n", wrong ? wrong : "alive");
}

/* ---- the attack ----------------------------------------------------------------------- */

/* header: of a region, which this process can write. */
static void use(struct guise_region *r, const char *where)
{
	if (r->magic != GUISE_MAGIC)
		return;
	printf("region: %s\n", where);
	found++;
	r->dead = 1;
}

static void look_at_maps(void)
{
	char line[512], rights[8];
	unsigned long from, to;
	FILE *maps = fopen("/proc/self/maps", "r");
	const long page = sysconf(_SC_PAGESIZE);

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 ||
		    strncmp(rights, "rw", 2) || to - from < sizeof(struct guise_region))
			continue;
		if (to - from > DEEPEST + sizeof(struct guise_region))
			to = from + DEEPEST + sizeof(struct guise_region);
		for (; from + sizeof(struct guise_region) <= to && from;
		     from += (unsigned long)page)
			if (*(volatile uint64_t *)from == GUISE_MAGIC &&     // NOLINT: an address
			    ((struct guise_region *)from)->abi == GUISE_ABI) // NOLINT
				use((struct guise_region *)from, "mapped");  // NOLINT
	}
	if (maps)
		fclose(maps);
}

static void look_at_descriptor(int fd, const char *where)
{
	struct guise_region *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED, fd, GUISE_OFF_HEADER);
	if (r == MAP_FAILED)
		return;
	if (lseek(fd, 0, SEEK_END) >= GUISE_OFF_HEADER + (off_t)sizeof(*r))
		use(r, where);
	munmap(r, sizeof(*r));
}

static void look_at_descriptors(void)
{
	for (int fd = 3; fd < 65536; fd++)
		if (syscall(SYS_fcntl, fd, F_GETFD) >= 0)
			look_at_descriptor(fd, "a descriptor");
}

/* What comes as an answer on a channel. */
static void look_at_answer(int channel, const char *where)
{
	char control[CMSG_SPACE(253 * sizeof(int))];
	char reply[1024];
	struct iovec iov = { reply, sizeof(reply) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = channel, .events = POLLIN };

	if (poll(&p, 1, 5000) != 1 || recvmsg(channel, &m, 0) < 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			look_at_descriptor(((int *)(void *)CMSG_DATA(c))[i], where);
}

/* As a joiner, and as a process to come that then enters, by messages of its own. */
static void ask(uint32_t kind)
{
	const char *ticket = getenv("GUISE_STACK");
	struct request q = { MAGIC, GUISE_ABI, getpid(), kind };
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &q, sizeof(q) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2];

	if (!ticket || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
	/* libc's own calls keep away from what is guise's. */
	if (syscall(SYS_sendmsg, atoi(ticket), &m, 0) < 0)
		return;
	close(pair[1]);
	look_at_answer(pair[0], "an answer");
	if (kind == HEIR) {
		q.kind = ENTER;
		if (send(pair[0], &q, sizeof(q), 0) == sizeof(q))
			look_at_answer(pair[0], "an answer to a process to come");
	}
	close(pair[0]);
}

/* Other processes: by their memory, and their descriptors. */
static void look_at_process(const char *pid)
{
	char path[300], line[512];
	unsigned long from, to, at;
	FILE *maps;
	int memory;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "r");
	snprintf(path, sizeof(path), "/proc/%s/mem", pid);
	memory = open(path, O_RDWR);
	while (maps && memory >= 0 && fgets(line, sizeof(line), maps)) {
		uint64_t magic = 0;

		if (!strstr(line, "rw-s") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		for (at = from; at < to && at < from + 65536; at += 4096)
			if (pread(memory, &magic, sizeof(magic), (off_t)at) == sizeof(magic) &&
			    magic == GUISE_MAGIC) {
				static struct guise_region r;

				if (pread(memory, &r, sizeof(r), (off_t)at) != sizeof(r))
					continue;
				use(&r, "the memory of another process");
				pwrite(memory, &r.dead, sizeof(r.dead),
				       (off_t)(at + offsetof(struct guise_region, dead)));
			}
	}
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	for (int fd = 3; fd < 2000; fd++) {
		int file;

		snprintf(path, sizeof(path), "/proc/%s/fd/%d", pid, fd);
		file = open(path, O_RDWR);
		if (file >= 0)
			look_at_descriptor(file, "a descriptor of another process");
		if (file >= 0)
			close(file);
	}
}

static void look_at_processes(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (atoi(e->d_name) > 1 && atoi(e->d_name) != getpid())
			look_at_process(e->d_name);
	if (dir)
		closedir(dir);
}

static void attack(void)
{
	look_at_maps();
	look_at_descriptors();
	ask(NOW);
	ask(HEIR);
	if (!alone)
		look_at_processes();
	printf("regions: %d\n", found);
}

/* ---- the ways ------------------------------------------------------------------------- */

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		die("setresuid");
}

static void take_groups(void)
{
	const gid_t group = NOBODY;

	if (setgroups(1, &group))
		die("setgroups");
}

/* As a server's worker does. */
static void become(const char *name)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw || setgid(pw->pw_gid) || initgroups(name, pw->pw_gid) || setuid(pw->pw_uid))
		die(name);
}

/* Lets all pass but reboot(2). */
static void install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_reboot, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		die("seccomp");
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capset, &header, data))
		die("capset");
}

static void give_up(const char *way)
{
	if (!strcmp(way, "setuid"))
		become_nobody();
	else if (!strcmp(way, "www-data"))
		become(way);
	else if (!strcmp(way, "no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	else if (!strcmp(way, "filter"))
		install_filter();
	else if (!strcmp(way, "capabilities"))
		drop_capabilities();
	else if (!strcmp(way, "groups"))
		take_groups();
	else if (!strcmp(way, "namespace") && unshare(CLONE_NEWUSER))
		die("unshare");
}

int main(int argc, char **argv)
{
	bool threads = argc > 2 && !strcmp(argv[2], "threads"),
	     child = argc > 2 && !strcmp(argv[2], "child");
	pthread_t thread = 0;
	pid_t pid;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 2;
	alone = argc > 3 && !strcmp(argv[3], "alone");
	connections();
	if (child) {
		pid = fork();
		if (pid) {
			waitpid(pid, &status, 0);
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		}
	}
	if (threads && pthread_create(&thread, NULL, wait_for_it, NULL))
		die("thread");
	if (threads)
		usleep(20000); /* so that it most often waits already; either way is right */
	give_up(argv[1]);
	look_at_connections(thread);
	attack();
	return 0;
}
