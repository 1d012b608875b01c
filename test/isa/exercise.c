// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exercises the functions of linux/arch/guise/kernel/isa_*.S, whose names test_isa.py has given
 * the prefix isa_, against plain C. Prints what was right; 1 and a line for the first that is not.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

void *isa_memcpy(void *to, const void *from, size_t n);
void *isa_memmove(void *to, const void *from, size_t n);
void *isa_memset(void *to, int c, size_t n);
unsigned long isa_guise_copy(void *to, const void *from, unsigned long n);
unsigned long isa_guise_zero(void *to, unsigned long n);
void isa_guise_switch(uint64_t *save, uint64_t load);
void isa_guise_enter(uint64_t *save, uint64_t load, uint32_t *entered);
void isa_guise_leave(uint64_t *save, uint64_t *load, uint32_t *entered);
uint64_t isa_guise_host_call(void *ops, uint64_t a, uint64_t b, uint64_t c, uint64_t at,
			     uint64_t *redo);
unsigned long isa_guise_first_frame(unsigned long top, void (*entry)(void));
extern char isa_guise_copy_start[], isa_guise_copy_end[], isa_guise_copy_fixup[];

uint32_t isa_guise_refuse; /* the port has it in task.c */

#define PAGE 65536 /* of any host */
#define ROOM 1024
#define LONG 300 /* bytes: several turns of every loop */

static unsigned char a[ROOM], b[ROOM], want[ROOM];

static void check(int right, const char *what, size_t n, size_t x, size_t y)
{
	if (right)
		return;
	printf("wrong: %s of %zu bytes, %zu, %zu\n", what, n, x, y);
	exit(1);
}

static void fill(unsigned char *p, unsigned int seed)
{
	for (unsigned int i = 0; i < ROOM; i++)
		p[i] = (unsigned char)((i * 2654435761u + seed) >> 11);
}

static void strings(void)
{
	for (size_t n = 0; n < LONG; n++)
		for (size_t x = 0; x < 17; x += 1 + n % 3)
			for (size_t y = 0; y < 17; y += 1 + n % 2) {
				fill(a, 1);
				fill(b, 2);
				fill(want, 2);
				for (size_t i = 0; i < n; i++)
					want[y + i] = a[x + i];
				check(isa_memcpy(b + y, a + x, n) == b + y, "memcpy's result", n, x,
				      y);
				check(!memcmp(b, want, ROOM), "memcpy", n, x, y);
				for (size_t i = 0; i < n; i++)
					want[x + i] = 0x5a;
				check(isa_memset(b + x, 0xff5a, n) == b + x, "memset's result", n,
				      x, y);
				check(!memcmp(b, want, ROOM), "memset", n, x, y);
			}
	printf("memcpy memset\n");
	for (size_t n = 0; n < LONG; n++)
		for (size_t y = 0; y < 160; y++) {
			fill(b, 3);
			fill(a, 3);
			fill(want, 3);
			for (size_t i = 0; i < n; i++)
				want[y + i] = a[80 + i];
			check(isa_memmove(b + y, b + 80, n) == b + y, "memmove's result", n, y, 80);
			check(!memcmp(b, want, ROOM), "memmove", n, y, 80);
		}
	printf("memmove\n");
}

static void fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
#if defined(__x86_64__)
	unsigned long long *pc = (unsigned long long *)&uc->uc_mcontext.gregs[REG_RIP];
#else
	unsigned long long *pc = &uc->uc_mcontext.pc;
#endif
	(void)info;
	if (*pc < (uintptr_t)isa_guise_copy_start || *pc >= (uintptr_t)isa_guise_copy_end) {
		signal(sig, SIG_DFL);
		return;
	}
	*pc = (uintptr_t)isa_guise_copy_fixup;
}

/* n bytes, of which there is memory for `there` only, at one of the ends. */
static void across(unsigned char *edge, size_t n, size_t there)
{
	unsigned char *near = edge - there;
	size_t done;

	fill(a, 4);
	memset(b, 0, ROOM);
	memcpy(near, a, there);
	done = n - isa_guise_copy(b, near, n);
	check(done <= there && (there < n || done == n), "copy from", n, there, done);
	check(!memcmp(b, a, done), "what was copied from", n, there, done);
	memset(near, 0, there);
	done = n - isa_guise_copy(near, a, n);
	check(done <= there && (there < n || done == n), "copy to", n, there, done);
	check(!memcmp(near, a, done), "what was copied to", n, there, done);
	memset(near, 1, there);
	done = n - isa_guise_zero(near, n);
	check(done <= there && (there < n || done == n), "zero", n, there, done);
	for (size_t i = 0; i < done; i++)
		check(!near[i], "what was zeroed", n, there, i);
}

static void faults(void)
{
	struct sigaction act = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
	unsigned char *two =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (two == MAP_FAILED || mprotect(two + PAGE, PAGE, PROT_NONE)) {
		perror("isa: mmap");
		exit(2);
	}
	sigaction(SIGSEGV, &act, NULL);
	for (size_t n = 0; n < LONG; n++)
		for (size_t there = 0; there <= n; there += 1 + (there + 9 < n) * (n % 7))
			across(two + PAGE, n, there);
	/* The memory is there, and is not touched. */
	fill(a, 5);
	fill(b, 6);
	fill(want, 6);
	isa_guise_refuse = 1;
	for (size_t n = 0; n < LONG; n++)
		check(isa_guise_copy(b, a, n) == n && isa_guise_zero(b, n) == n &&
			      !memcmp(b, want, ROOM),
		      "refused copy", n, 0, 0);
	isa_guise_refuse = 0;
	printf("copy zero\n");
}

static uint64_t outside, inside;
static int turns;

static void entered(void)
{
	/* A frame that must lie on 16 bytes, or the compiler's code for it faults. */
	check(!((uintptr_t)__builtin_frame_address(0) % 16), "frame", 0, 0, 0);
	for (;;) {
		turns++;
		isa_guise_switch(&inside, outside);
	}
}

static void contexts(void)
{
	size_t size = 16 * 1024;
	char *stack = malloc(size);

	inside = isa_guise_first_frame((uintptr_t)stack + size, entered);
	for (int i = 0; i < 3; i++) {
		/* What the compiler keeps in registers across the switch. */
		uint64_t r[10];

		for (int k = 0; k < 10; k++) {
			r[k] = (uint64_t)rand();
			__asm__ volatile("" : "+r"(r[k]));
		}
		uint64_t sum = 0, k0 = r[0], k1 = r[1], k2 = r[2], k3 = r[3], k4 = r[4], k5 = r[5];

		isa_guise_switch(&outside, inside);
		__asm__ volatile("" : "+r"(k0), "+r"(k1), "+r"(k2), "+r"(k3), "+r"(k4), "+r"(k5));
		sum = (k0 ^ r[0]) | (k1 ^ r[1]) | (k2 ^ r[2]) | (k3 ^ r[3]) | (k4 ^ r[4]) |
		      (k5 ^ r[5]);
		check(!sum && turns == i + 1, "switch", (size_t)turns, 0, 0);
	}
	free(stack);
	printf("switch\n");
}

static uint32_t flag;

static void carried(void)
{
	for (;;) {
		check(flag == 1, "entered", 0, 0, 0);
		turns++;
		isa_guise_leave(&inside, &outside, &flag);
	}
}

static void host_thread(void)
{
	char *stack = malloc(16 * 1024);

	turns = 0;
	inside = isa_guise_first_frame((uintptr_t)stack + 16 * 1024, carried);
	for (int i = 0; i < 3; i++) {
		isa_guise_enter(&outside, inside, &flag);
		check(!flag && turns == i + 1, "left", (size_t)turns, 0, 0);
	}
	free(stack);
	printf("enter leave\n");
}

static uint64_t redo;

struct ops {
	uint64_t other;
	uint64_t (*service)(struct ops *self, uint64_t a, uint64_t b, uint64_t c);
};

static uint64_t service(struct ops *self, uint64_t a, uint64_t b, uint64_t c)
{
	check(redo != 0, "redo", 0, 0, 0);
	return self->other + a * 100 + b * 10 + c;
}

static void services(void)
{
	struct ops ops = { 5000, service };

	check(isa_guise_host_call(&ops, 1, 2, 3, 8, &redo) == 5123, "host call", 0, 0, 0);
	check(!redo, "end of a host call", 0, 0, 0);
	printf("host call\n");
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	strings();
	faults();
	contexts();
	host_thread();
	services();
	return 0;
}
