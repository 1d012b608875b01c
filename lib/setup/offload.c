// SPDX-License-Identifier: GPL-2.0-only
/* Segmentation and receive offloads of an interface inside the stack. */
#include "guise/guise.h"
#include "guise/syscall.h"
#include "region/stack.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

int guise_link_offload(struct guise_stack *s, const char *dev, int on)
{
	static const struct {
		uint32_t command;
		const char *name;
	} what[] = { { ETHTOOL_STSO, "TSO" }, { ETHTOOL_SGSO, "GSO" }, { ETHTOOL_SGRO, "GRO" } };
	struct ethtool_value value;
	struct ifreq ifr;
	unsigned int i;
	int fd, err = 0;

	if (strlen(dev) >= IFNAMSIZ)
		return guise_fail(ENODEV, "offload: \"%s\" is too long for an interface", dev);
	fd = guise_socket(s, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", dev);
	ifr.ifr_data = (char *)&value;
	for (i = 0; i < sizeof(what) / sizeof(what[0]) && !err; i++) {
		value.cmd = what[i].command;
		value.data = on != 0;
		err = (int)guise_call(s, GUISE_NR_ioctl, fd, SIOCETHTOOL, (long)&ifr, 0, 0, 0);
		/* What a device cannot do is off already. */
		if (err == -EOPNOTSUPP && !on)
			err = 0;
		if (err)
			guise_fail(-err, "offload: %s of \"%s\": %s", what[i].name, dev,
				   strerror(-err));
	}
	guise_close(s, fd);
	return err;
}
