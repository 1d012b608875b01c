// SPDX-License-Identifier: GPL-2.0-only
/*
 * deny RULE... -- COMMAND...: runs a program on a host that lacks system calls.
 *
 * A rule is CALL=ERRNO: the way a kernel, or a container's seccomp profile,
 * refuses what it does not know. With CALL:ARGUMENT:MASK=ERRNO the call fails
 * only when one of these bits is set in that argument (counted from 0), with
 * CALL:ARGUMENT==VALUE=ERRNO only when it has that value; both are hexadecimal,
 * of 32 bits. The filter is inherited by everything that COMMAND starts.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const struct {
	const char *name;
	uint32_t nr;
} calls[] = {
	{ "clone3", 435 },
	{ "close_range", 436 },
	{ "epoll_pwait2", 441 },
	{ "faccessat2", 439 },
	{ "fchmodat2", 452 },
	{ "futex_waitv", 449 },
	{ "io_uring_setup", 425 },
	{ "openat2", 437 },
	{ "pidfd_getfd", 438 },
	{ "pidfd_open", 434 },
	{ "pidfd_send_signal", 424 },
	{ "rseq", SYS_rseq },
	{ "statx", SYS_statx },
	{ "memfd_create", SYS_memfd_create },
	{ "mmap", SYS_mmap },
	{ "mount", SYS_mount },
	{ "prctl", SYS_prctl },
	{ "ptrace", SYS_ptrace },
	{ "seccomp", SYS_seccomp },
	{ "socket", SYS_socket },
	{ "recvmsg", SYS_recvmsg },
	{ "unshare", SYS_unshare },
};

static const struct {
	const char *name;
	uint32_t value;
} errors[] = {
	{ "ENOSYS", ENOSYS },
	{ "EPERM", EPERM },
	{ "EACCES", EACCES },
	{ "ENOMEM", ENOMEM },
	{ "EINVAL", EINVAL },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
};

static struct sock_filter filter[512];
static unsigned short used;

static void add(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (used == sizeof(filter) / sizeof(filter[0])) {
		fprintf(stderr, "deny: too many rules\n");
		exit(2);
	}
	filter[used++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static _Noreturn void wrong(const char *rule)
{
	fprintf(stderr,
		"deny: %s: expected CALL=ERRNO, CALL:ARGUMENT:MASK=ERRNO or "
		"CALL:ARGUMENT==VALUE=ERRNO; known calls are",
		rule);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		fprintf(stderr, " %s", calls[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

static void add_rule(const char *rule)
{
	size_t len = strcspn(rule, ":="), call = 0, error = 0;
	unsigned int argument = 0, number = 0;
	const char *equals = strrchr(rule, '=');
	uint16_t test = 0; /* of the argument; 0: none */

	while (call < sizeof(calls) / sizeof(calls[0]) &&
	       (strlen(calls[call].name) != len || strncmp(calls[call].name, rule, len)))
		call++;
	while (equals && error < sizeof(errors) / sizeof(errors[0]) &&
	       strcmp(errors[error].name, equals + 1))
		error++;
	if (!equals || call == sizeof(calls) / sizeof(calls[0]) ||
	    error == sizeof(errors) / sizeof(errors[0]))
		wrong(rule);
	if (sscanf(rule + len, ":%u:%x=", &argument, &number) == 2)
		test = BPF_JMP | BPF_JSET | BPF_K;
	else if (sscanf(rule + len, ":%u==%x=", &argument, &number) == 2)
		test = BPF_JMP | BPF_JEQ | BPF_K;
	if (test ? argument > 5 : rule + len != equals)
		wrong(rule);

	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	if (test) {
		add(BPF_JMP | BPF_JEQ | BPF_K, calls[call].nr, 0, 3);
		add(BPF_LD | BPF_W | BPF_ABS,
		    (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t)),
		    0, 0);
		add(test, number, 0, 1);
	} else {
		add(BPF_JMP | BPF_JEQ | BPF_K, calls[call].nr, 0, 1);
	}
	add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errors[error].value, 0, 0);
}

int main(int argc, char **argv)
{
	struct sock_fprog program = { .filter = filter };
	int i;

	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	add(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		add_rule(argv[i]);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: deny RULE... -- COMMAND...\n");
		return 2;
	}
	program.len = used;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("deny: this host does not take the filter");
		return 125;
	}
	execvp(argv[i + 1], argv + i + 1);
	fprintf(stderr, "deny: %s: %s\n", argv[i + 1], strerror(errno));
	return 127;
}
