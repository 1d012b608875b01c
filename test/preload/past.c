// SPDX-License-Identifier: GPL-2.0-only
/* past: makes a socket of the host's stack past libc, and ends with it open. */
#include <sys/socket.h>
#include <sys/syscall.h>

int main(void)
{
#if defined(__aarch64__)
	register long fd __asm__("x0") = AF_INET, type __asm__("x1") = SOCK_STREAM;
	register long protocol __asm__("x2") = 0, nr __asm__("x8") = SYS_socket;

	__asm__ volatile("svc #0" : "+r"(fd) : "r"(type), "r"(protocol), "r"(nr) : "memory");
#else
	long fd;

	__asm__ volatile("syscall"
			 : "=a"(fd)
			 : "a"(SYS_socket), "D"(AF_INET), "S"(SOCK_STREAM), "d"(0)
			 : "rcx", "r11", "memory");
#endif
	return fd < 0;
}
