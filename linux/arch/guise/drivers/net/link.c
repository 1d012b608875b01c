// SPDX-License-Identifier: GPL-2.0-only
/*
 * The network device of a link. Its backend is on the host side.
 *
 * Frames have a virtio-net header when they are passed to the backend or received
 * from it. So checksums and segmentation are left to the backend in both directions,
 * and in the end to the host's kernel or hardware: a backend moves one big frame
 * that is forty on the wire. A frame that is sent is passed as a list of pieces,
 * without a copy. When the backend has no room, the queue stops until GUISE_IRQ_TX.
 *
 * A frame has an Ethernet header, except where the backend says GUISE_LINK_RAW: then
 * it begins with its IP header, and the device has no link-layer address and does
 * not resolve those of others.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/virtio_net.h>

#include <net/ip_tunnels.h>
#include <net/pkt_sched.h>

#include <asm/guise.h>
#include <asm/series.h>

#include "link.h"

static struct guise_link_dev *guise_links[GUISE_MAX_LINKS];

/*
 * The interface indexes of links that are gone. One of the same name gets the index again: sockets
 * that are bound to it, and the subflows that MPTCP makes, name it by that.
 */
static struct {
	char name[IFNAMSIZ];
	int ifindex;
} guise_gone[GUISE_MAX_LINKS];
static unsigned int guise_gone_next;

static void guise_link_remember(const struct net_device *dev)
{
	unsigned int i = 0;

	while (i < GUISE_MAX_LINKS && strcmp(guise_gone[i].name, dev->name))
		i++;
	if (i == GUISE_MAX_LINKS)
		i = guise_gone_next++ % GUISE_MAX_LINKS;
	strscpy(guise_gone[i].name, dev->name, IFNAMSIZ);
	guise_gone[i].ifindex = dev->ifindex;
}

static int guise_link_index(const char *name)
{
	unsigned int i;

	for (i = 0; i < GUISE_MAX_LINKS; i++)
		if (guise_gone[i].ifindex && !strcmp(guise_gone[i].name, name))
			return guise_gone[i].ifindex;
	return 0;
}

static netdev_tx_t guise_link_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct guise_link_dev *gl = netdev_priv(dev);
	struct guise_iov iov[MAX_SKB_FRAGS + 2];
	struct virtio_net_hdr_v1 hdr = { .num_buffers = 1 };
	unsigned int n = 0, i;
	s64 ret;

	if (virtio_net_hdr_from_skb(skb, (struct virtio_net_hdr *)&hdr, true, false, 0))
		goto drop;
	iov[n].base = &hdr;
	iov[n++].len = sizeof(hdr);
	iov[n].base = skb->data;
	iov[n++].len = skb_headlen(skb);
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		iov[n].base = skb_frag_address(frag);
		iov[n++].len = skb_frag_size(frag);
	}
	ret = guise_host_do(frame_out, gl->index, (u64)iov, n);
	if (ret == -EAGAIN) {
		netif_stop_queue(dev);
		return NETDEV_TX_BUSY;
	}
	if (ret < 0)
		goto drop;
	/* Not earlier: a frame that found no room is sent again. */
	skb_tx_timestamp(skb);
	gl->link->tx_frames++;
	gl->link->tx_bytes += skb->len;
	dev_sw_netstats_tx_add(dev, 1, skb->len);
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
drop:
	gl->link->tx_dropped++;
	dev_core_stats_tx_dropped_inc(dev);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static int guise_link_open(struct net_device *dev)
{
	struct guise_link_dev *gl = netdev_priv(dev);

	napi_enable(&gl->napi);
	netif_start_queue(dev);
	/* Frames may have come while the device was down. */
	local_bh_disable();
	napi_schedule(&gl->napi);
	local_bh_enable();
	return 0;
}

static int guise_link_stop(struct net_device *dev)
{
	struct guise_link_dev *gl = netdev_priv(dev);

	netif_stop_queue(dev);
	napi_disable(&gl->napi);
	del_timer_sync(&gl->retry);
	return 0;
}

static const struct net_device_ops guise_link_ops = {
	.ndo_open = guise_link_open,
	.ndo_stop = guise_link_stop,
	.ndo_start_xmit = guise_link_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static const struct net_device_ops guise_raw_link_ops = {
	.ndo_open = guise_link_open,
	.ndo_stop = guise_link_stop,
	.ndo_start_xmit = guise_link_xmit,
};

static void guise_raw_link_setup(struct net_device *dev)
{
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_POINTOPOINT | IFF_NOARP | IFF_MULTICAST;
	dev->tx_queue_len = DEFAULT_TX_QUEUE_LEN;
	dev->header_ops = &ip_tunnel_header_ops;
	dev->netdev_ops = &guise_raw_link_ops;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = ETH_MAX_MTU;
}

static void guise_ether_link_setup(struct net_device *dev, const struct guise_link *link)
{
	dev->netdev_ops = &guise_link_ops;
	dev->max_mtu = 65521;
	if (is_valid_ether_addr(link->mac))
		eth_hw_addr_set(dev, link->mac);
	else
		eth_hw_addr_random(dev);
}

static void guise_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct guise_link_dev *gl = netdev_priv(dev);

	strscpy(info->driver, "guise", sizeof(info->driver));
	strscpy(info->bus_info, gl->link->kind, sizeof(info->bus_info));
}

static const struct ethtool_ops guise_ethtool_ops = {
	.get_drvinfo = guise_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_ts_info = ethtool_op_get_ts_info,
};

long guise_link_add(unsigned int index)
{
	struct guise_link *link;
	struct guise_link_dev *gl;
	struct net_device *dev;
	bool raw;
	int err;

	if (index >= GUISE_MAX_LINKS)
		return -EINVAL;
	link = &guise_region.links[index];
	if (!link->used || guise_links[index])
		return -EINVAL;
	raw = link->features & GUISE_LINK_RAW;
	dev = raw ? alloc_netdev(sizeof(*gl), "tun%d", NET_NAME_ENUM, guise_raw_link_setup)
		  : alloc_etherdev(sizeof(*gl));
	if (!dev)
		return -ENOMEM;
	gl = netdev_priv(dev);
	gl->dev = dev;
	gl->link = link;
	gl->index = index;
	strscpy(dev->name, link->name, IFNAMSIZ);
	if (!raw)
		guise_ether_link_setup(dev, link);
	dev->ethtool_ops = &guise_ethtool_ops;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->hw_features = NETIF_F_SG;
	if (link->features & GUISE_LINK_CSUM)
		dev->hw_features |= NETIF_F_HW_CSUM;
	if (link->features & GUISE_LINK_TSO)
		dev->hw_features |= NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN;
	dev->features = dev->hw_features;
	if (!(link->features & GUISE_LINK_NOGRO)) {
		dev->hw_features |= NETIF_F_GRO;
		dev->features |= NETIF_F_GRO;
	}
	dev->vlan_features = dev->features;
	dev->mtu = link->mtu ? link->mtu : ETH_DATA_LEN;
	netif_napi_add(dev, &gl->napi, guise_link_poll);
	timer_setup(&gl->retry, guise_link_retry, 0);
	dev->ifindex = guise_link_index(dev->name);
	err = register_netdev(dev);
	if (err == -EBUSY) { /* another interface has the index by now */
		dev->ifindex = 0;
		err = register_netdev(dev);
	}
	if (err) {
		netif_napi_del(&gl->napi);
		free_netdev(dev);
		return err;
	}
	if (link->features & GUISE_LINK_NOGRO) {
		rtnl_lock();
		dev->wanted_features &= ~NETIF_F_GRO;
		netdev_update_features(dev);
		rtnl_unlock();
	}
	memcpy(link->mac, dev->dev_addr, ETH_ALEN);
	link->mtu = dev->mtu;
	guise_links[index] = gl;
	return dev->ifindex;
}

long guise_link_del(unsigned int index)
{
	struct guise_link_dev *gl;

	if (index >= GUISE_MAX_LINKS || !guise_links[index])
		return -EINVAL;
	gl = guise_links[index];
	guise_links[index] = NULL;
	guise_link_remember(gl->dev);
	unregister_netdev(gl->dev);
	netif_napi_del(&gl->napi);
	guise_link_free_buffers(gl);
	free_netdev(gl->dev);
	return 0;
}

/* Routes and programs hear of it at once: left alone, Linux tells them up to a second later. */
long guise_link_carrier(unsigned int index, bool on)
{
	struct net_device *dev;

	if (index >= GUISE_MAX_LINKS || !guise_links[index])
		return -EINVAL;
	dev = guise_links[index]->dev;
	rtnl_lock();
	if (on)
		netif_carrier_on(dev);
	else
		netif_carrier_off(dev);
	linkwatch_sync_dev(dev);
	rtnl_unlock();
	return 0;
}

void guise_link_interrupt(u32 rx, u32 tx)
{
	unsigned int i;

	for (i = 0; i < GUISE_MAX_LINKS; i++) {
		struct guise_link_dev *gl = guise_links[i];

		if (!gl)
			continue;
		if (rx & (1U << i))
			napi_schedule(&gl->napi);
		if (tx & (1U << i))
			netif_wake_queue(gl->dev);
	}
}
