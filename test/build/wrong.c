// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mistakes of a program that show in the code of the preload library, when that is built with
 * sanitizers: test_sanitized.py.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_family = AF_INET }, *list;
	const char *mistake = argc == 2 ? argv[1] : "";
	/* One more than there is room for; one byte beside where it belongs. */
	char *memory = calloc(3, sizeof(struct pollfd));
	struct pollfd *fds = (void *)(memory + !strcmp(mistake, "misaligned"));
	nfds_t n = strcmp(mistake, "overflow") ? 2 : 4;
	int socket_fd = socket(AF_INET, SOCK_DGRAM, 0);

	for (int i = 0; i < 2; i++)
		memcpy(&fds[i], &(struct pollfd){ .fd = socket_fd, .events = POLLOUT },
		       sizeof(*fds));
	if (poll(fds, n, 0) != 2)
		return 1;
	if (getaddrinfo("127.0.0.1", "80", &hints, &list))
		return 2;
	if (strcmp(mistake, "leak"))
		freeaddrinfo(list);
	else
		list = NULL;
	free(memory);
	close(socket_fd);
	return 0;
}
