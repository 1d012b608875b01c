// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rings of a packet socket, for a program that maps them.
 *
 * Linux's packet_mmap() fills page tables, which the port does not have. However, the
 * blocks of a ring lie in the region, which the program has mapped already: it only
 * needs to know where. The preload library maps them a second time where the program
 * wants them (preload/sockets/mapping.c).
 */
#include <linux/file.h>
#include <linux/if_packet.h>
#include <linux/net.h>
#include <linux/uaccess.h>
#include <net/sock.h>

#include <net/packet/internal.h>

#include <asm/guise.h>

/* The packet socket of a descriptor. The caller has to give back the reference to its file. */
static struct packet_sock *packet_of(u64 fd, struct file **file)
{
	struct socket *sock;

	*file = fget(fd);
	if (!*file)
		return ERR_PTR(-EBADF);
	sock = sock_from_file(*file);
	if (sock && sock->ops->family == PF_PACKET)
		return container_of(sock->sk, struct packet_sock, sk);
	fput(*file);
	return ERR_PTR(-ENODEV);
}

/* Writes address and length of block `number`, and the length of a frame, to piece; the blocks of
 * the receive ring are counted first. 1, or 0 when there is no such block. */
long guise_ring(u64 fd, u64 number, u64 piece)
{
	struct packet_ring_buffer *rb;
	struct packet_sock *po;
	struct file *file;
	u64 found[3];
	long ret = 0;

	po = packet_of(fd, &file);
	if (IS_ERR(po))
		return PTR_ERR(po);
	mutex_lock(&po->pg_vec_lock);
	for (rb = &po->rx_ring; rb <= &po->tx_ring; rb++) {
		if (!rb->pg_vec)
			continue;
		if (number < rb->pg_vec_len) {
			found[0] = (unsigned long)rb->pg_vec[number].buffer;
			found[1] = (u64)rb->pg_vec_pages * PAGE_SIZE;
			found[2] = rb->frame_size;
			ret = 1;
			break;
		}
		number -= rb->pg_vec_len;
	}
	mutex_unlock(&po->pg_vec_lock);
	if (ret && copy_to_user((void __user *)piece, found, sizeof(found)))
		ret = -EFAULT;
	fput(file);
	return ret;
}

/* Their pages are never given to anything else: a reference stays. */
static void keep_for_ever(struct packet_sock *po)
{
	struct packet_ring_buffer *rb;
	unsigned int i, n;

	mutex_lock(&po->pg_vec_lock);
	for (rb = &po->rx_ring; rb <= &po->tx_ring; rb++)
		for (i = 0; rb->pg_vec && i < rb->pg_vec_len; i++)
			for (n = 0; n < rb->pg_vec_pages; n++) {
				char *at = rb->pg_vec[i].buffer + n * PAGE_SIZE;

				get_page(is_vmalloc_addr(at) ? vmalloc_to_page(at)
							     : virt_to_page(at));
			}
	mutex_unlock(&po->pg_vec_lock);
}

/*
 * While its rings are mapped they cannot be changed. The number of mappings is kept in
 * sk_user_data, which packet sockets do not use. It cannot be kept in packet_sock.mapped:
 * Linux expects that to be 0 when the socket closes, and the port does not learn that a
 * process had mappings when it ended.
 *
 * No change (0): the program that maps them gives up rights, and with them the rest of the
 * region. It may keep the rings, as a program of Linux may, because the kernel does not trust
 * what is in them. But nobody can take them back, so their memory stays a ring's.
 */
long guise_ring_mapped(u64 fd, u64 change)
{
	struct packet_sock *po;
	struct file *file;

	po = packet_of(fd, &file);
	if (IS_ERR(po))
		return PTR_ERR(po);
	if (!change)
		keep_for_ever(po);
	po->sk.sk_user_data = (char *)po->sk.sk_user_data + (long)change;
	fput(file);
	return 0;
}

bool guise_ring_is_mapped(u64 fd)
{
	struct packet_sock *po;
	struct file *file;
	bool mapped;

	po = packet_of(fd, &file);
	if (IS_ERR(po))
		return false;
	mapped = po->sk.sk_user_data;
	fput(file);
	return mapped;
}
