// SPDX-License-Identifier: GPL-2.0-only
/* The interface that every stack has: lo. */
#include "case.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>

static void show_address(const char *what, const struct sockaddr *a)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (!a)
		return;
	if (a->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text,
			  sizeof(text));
	else if (a->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
			  text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%d bytes",
			 ((const struct sockaddr_ll *)(const void *)a)->sll_halen);
	printf(" %s %d %s", what, a->sa_family, text);
}

CASE(interface_list)
{
	struct if_nameindex *names = if_nameindex();
	struct ifaddrs *list;
	char name[IF_NAMESIZE];

	SHOW(if_nametoindex("lo"));
	SHOW(if_nametoindex("none0"));
	puts(strerrorname_np(errno));
	SHOW(if_nametoindex("a name that is longer than any"));
	SHOW(if_indextoname(1, name) == name);
	puts(name);
	SHOW(if_indextoname(4711, name) == NULL);
	puts(strerrorname_np(errno));
	MUST(names);
	for (struct if_nameindex *i = names; i->if_name; i++)
		if (!strcmp(i->if_name, "lo"))
			printf("%u %s\n", i->if_index, i->if_name);
	if_freenameindex(names);
	SHOW(getifaddrs(&list));
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (strcmp(i->ifa_name, "lo"))
			continue;
		printf("lo %x data %d", i->ifa_flags, i->ifa_data != NULL);
		show_address("address", i->ifa_addr);
		show_address("mask", i->ifa_netmask);
		printf("\n");
	}
	freeifaddrs(list);
}
