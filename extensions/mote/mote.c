// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mote: a whole small protocol, with its own family of sockets and its own number in the header
 * of IPv4. An example for protocols that TCP and UDP cannot be bent into.
 *
 * What it promises: datagrams between ports, as UDP's, and the number of those that were lost.
 * Each datagram has a number, which counts what its socket has sent. A connected socket compares
 * the numbers of its peer's datagrams, and getsockopt(MOTE_LOST) says how many are missing.
 * Nothing is sent again. A datagram for a port that nobody has is answered by ICMP "port
 * unreachable", and a connected socket gets ECONNREFUSED for it.
 *
 * How: a socket is one of Linux's inet sockets as far as IPv4 needs it (routes, marks, the bound
 * interface); the ports are its own. All bound sockets are on one list.
 *
 * Limits: IPv4 alone; one list for all sockets, so not for thousands of them; no multicast. A
 * peer that sends to others as well, or whose datagrams overtake each other, is counted wrong.
 */
#include <linux/icmp.h>
#include <linux/module.h>
#include <net/checksum.h>
#include <net/icmp.h>
#include <net/inet_common.h>
#include <net/ip.h>
#include <net/protocol.h>
#include <net/route.h>
#include <net/sock.h>

#include "mote.h"

#define FIRST_FREE 49152 /* ports that are given to who asks for none */
#define HEADER     sizeof(struct mote_header)

struct mote_sock {
	struct inet_sock inet; /* first */
	struct hlist_node node;
	__be32 address, peer; /* 0: any; not connected */
	__be16 port, peer_port;
	u32 number; /* of the next datagram */
	u32 expected, lost;
	bool heard;
};

static HLIST_HEAD(bound);
static DEFINE_SPINLOCK(bound_lock);
static u16 last_given = FIRST_FREE;

static struct mote_sock *mote(const struct sock *sk)
{
	return (struct mote_sock *)sk;
}

/* ---- ports; bound_lock is held ------------------------------------------------------------ */

static bool is_taken(const struct net *net, __be32 address, __be16 port)
{
	const struct mote_sock *m;

	hlist_for_each_entry(m, &bound, node) if (m->port == port &&
						  net_eq(sock_net(&m->inet.sk), net) &&
						  (!m->address || !address ||
						   m->address == address)) return true;
	return false;
}

static int take(struct mote_sock *m, __be32 address, __be16 port)
{
	const struct net *net = sock_net(&m->inet.sk);

	if (port && is_taken(net, address, port))
		return -EADDRINUSE;
	for (unsigned int n = 0; !port && n < 65536 - FIRST_FREE; n++) {
		last_given = last_given == 65535 ? FIRST_FREE : last_given + 1;
		if (!is_taken(net, address, htons(last_given)))
			port = htons(last_given);
	}
	if (!port)
		return -EADDRINUSE;
	m->address = address;
	m->port = port;
	hlist_add_head(&m->node, &bound);
	return 0;
}

/* The socket for a datagram, with a reference; one that is connected to its sender first. */
static struct sock *find(const struct net *net, __be32 address, __be16 port, __be32 peer,
			 __be16 peer_port)
{
	struct sock *found = NULL;
	struct mote_sock *m;

	spin_lock_bh(&bound_lock);
	hlist_for_each_entry(m, &bound, node)
	{
		struct sock *sk = &m->inet.sk;

		if (m->port != port || !net_eq(sock_net(sk), net) ||
		    (m->address && m->address != address))
			continue;
		if (m->peer_port && m->peer == peer && m->peer_port == peer_port) {
			found = sk;
			break;
		}
		if (!m->peer_port)
			found = sk;
	}
	if (found)
		sock_hold(found);
	spin_unlock_bh(&bound_lock);
	return found;
}

/* Binds the locked socket to any port, unless it has one. */
static int autobind(struct sock *sk)
{
	int err = 0;

	spin_lock_bh(&bound_lock);
	if (!mote(sk)->port)
		err = take(mote(sk), 0, 0);
	spin_unlock_bh(&bound_lock);
	return err;
}

/* ---- what comes in ------------------------------------------------------------------------ */

static void count_lost(struct mote_sock *m, const struct mote_header *h)
{
	u32 number = ntohl(h->number);

	if (m->heard && (s32)(number - m->expected) > 0)
		m->lost += number - m->expected;
	if (!m->heard || (s32)(number - m->expected) >= 0)
		m->expected = number + 1;
	m->heard = true;
}

static int mote_rcv(struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	const struct mote_header *h;
	unsigned int length;
	struct sock *sk;

	if (!pskb_may_pull(skb, HEADER))
		goto drop;
	ip = ip_hdr(skb);
	h = (const struct mote_header *)skb->data;
	length = ntohs(h->length);
	if (length < HEADER || length > skb->len || pskb_trim_rcsum(skb, length))
		goto drop;
	if (csum_tcpudp_magic(ip->saddr, ip->daddr, length, IPPROTO_MOTE,
			      skb_checksum(skb, 0, (int)length, 0)))
		goto drop;
	h = (const struct mote_header *)skb->data;
	sk = find(dev_net(skb->dev), ip->daddr, h->destination, ip->saddr, h->source);
	if (!sk) {
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, 0);
		goto drop;
	}
	if (mote(sk)->peer_port)
		count_lost(mote(sk), h);
	if (sock_queue_rcv_skb(sk, skb))
		kfree_skb(skb);
	sock_put(sk);
	return 0;
drop:
	kfree_skb(skb);
	return 0;
}

/* An ICMP error about a datagram of ours, whose first bytes follow the header in skb->data. */
static int mote_err(struct sk_buff *skb, u32 info)
{
	const struct iphdr *ip = (const struct iphdr *)skb->data;
	const struct mote_header *h = (const struct mote_header *)(skb->data + ip->ihl * 4);
	const int type = icmp_hdr(skb)->type, code = icmp_hdr(skb)->code;
	struct sock *sk;

	sk = find(dev_net(skb->dev), ip->saddr, h->source, ip->daddr, h->destination);
	if (!sk)
		return -ENOENT;
	if (mote(sk)->peer_port && type == ICMP_DEST_UNREACH && code <= NR_ICMP_UNREACH &&
	    code != ICMP_FRAG_NEEDED) {
		WRITE_ONCE(sk->sk_err, icmp_err_convert[code].errno);
		sk_error_report(sk);
	}
	sock_put(sk);
	return 0;
}

/* ---- the calls of programs ---------------------------------------------------------------- */

static const struct sockaddr_mote *check_address(const void *address, int len)
{
	const struct sockaddr_mote *a = address;

	if (len < (int)sizeof(*a))
		return ERR_PTR(-EINVAL);
	return a->family == AF_MOTE ? a : ERR_PTR(-EAFNOSUPPORT);
}

static int mote_bind(struct socket *sock, struct sockaddr *address, int len)
{
	const struct sockaddr_mote *a = check_address(address, len);
	struct sock *sk = sock->sk;
	int err;

	if (IS_ERR(a))
		return (int)PTR_ERR(a);
	if (a->address && inet_addr_type(sock_net(sk), a->address) != RTN_LOCAL)
		return -EADDRNOTAVAIL;
	lock_sock(sk);
	spin_lock_bh(&bound_lock);
	err = mote(sk)->port ? -EINVAL : take(mote(sk), a->address, a->port);
	spin_unlock_bh(&bound_lock);
	release_sock(sk);
	return err;
}

static int mote_connect(struct socket *sock, struct sockaddr *address, int len, int flags)
{
	struct mote_sock *m = mote(sock->sk);
	const struct sockaddr_mote *a;
	int err = 0;

	lock_sock(sock->sk);
	if (len >= (int)sizeof(address->sa_family) && address->sa_family == AF_UNSPEC) {
		m->peer = 0;
		m->peer_port = 0;
		goto out;
	}
	a = check_address(address, len);
	err = IS_ERR(a) ? (int)PTR_ERR(a) : a->port ? autobind(sock->sk) : -EINVAL;
	if (err)
		goto out;
	m->peer = a->address;
	m->peer_port = a->port;
	m->heard = false;
	m->lost = 0;
out:
	release_sock(sock->sk);
	return err;
}

static int mote_getname(struct socket *sock, struct sockaddr *address, int peer)
{
	struct sockaddr_mote *a = (struct sockaddr_mote *)address;
	const struct mote_sock *m = mote(sock->sk);

	if (peer && !m->peer_port)
		return -ENOTCONN;
	*a = (struct sockaddr_mote){
		.family = AF_MOTE,
		.port = peer ? m->peer_port : m->port,
		.address = peer ? m->peer : m->address,
	};
	return sizeof(*a);
}

/* Fills the header in, which the first skb begins with; fragments hang on it. */
static void finish(struct sk_buff *skb, struct mote_sock *m, const struct flowi4 *flow)
{
	struct mote_header *h = (struct mote_header *)skb_transport_header(skb);
	int at = skb_transport_offset(skb), length = (int)skb->len - at;

	*h = (struct mote_header){
		.source = flow->fl4_sport,
		.destination = flow->fl4_dport,
		.number = htonl(m->number++),
		.length = htons((u16)length),
	};
	h->check = csum_tcpudp_magic(flow->saddr, flow->daddr, length, IPPROTO_MOTE,
				     skb_checksum(skb, at, length, 0));
	skb->ip_summed = CHECKSUM_UNNECESSARY;
}

static int transmit(struct sock *sk, struct msghdr *msg, size_t len, struct flowi4 *flow)
{
	struct inet_cork cork;
	struct ipcm_cookie ipc;
	struct sk_buff *skb;
	struct rtable *rt;

	rt = ip_route_output_flow(sock_net(sk), flow, sk);
	if (IS_ERR(rt))
		return (int)PTR_ERR(rt);
	if (rt->rt_flags & RTCF_BROADCAST && !sock_flag(sk, SOCK_BROADCAST)) {
		ip_rt_put(rt);
		return -EACCES;
	}
	ipcm_init_sk(&ipc, inet_sk(sk));
	ipc.addr = flow->daddr;
	skb = ip_make_skb(sk, flow, ip_generic_getfrag, msg, (int)(len + HEADER), HEADER, &ipc, &rt,
			  &cork, msg->msg_flags);
	ip_rt_put(rt); /* what ip_make_skb() took it has set to NULL */
	if (IS_ERR_OR_NULL(skb))
		return skb ? (int)PTR_ERR(skb) : 0;
	finish(skb, mote(sk), flow);
	return ip_send_skb(sock_net(sk), skb);
}

static int mote_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct mote_sock *m = mote(sk);
	__be32 to = m->peer;
	__be16 port = m->peer_port;
	struct flowi4 flow;
	int err;

	if (len > 65535 - sizeof(struct iphdr) - HEADER)
		return -EMSGSIZE;
	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (msg->msg_name) {
		const struct sockaddr_mote *a = check_address(msg->msg_name, msg->msg_namelen);

		if (IS_ERR(a))
			return (int)PTR_ERR(a);
		to = a->address;
		port = a->port;
		if (!port)
			return -EINVAL;
	} else if (!port) {
		return -EDESTADDRREQ;
	}
	lock_sock(sk);
	err = sock_error(sk);
	if (!err)
		err = autobind(sk);
	if (!err) {
		flowi4_init_output(&flow, READ_ONCE(sk->sk_bound_dev_if), READ_ONCE(sk->sk_mark), 0,
				   RT_SCOPE_UNIVERSE, IPPROTO_MOTE, 0, to, m->address, port,
				   m->port, sk->sk_uid);
		err = transmit(sk, msg, len, &flow);
	}
	release_sock(sk);
	return err ? err : (int)len;
}

static int mote_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sockaddr_mote *from = msg->msg_name;
	struct sock *sk = sock->sk;
	struct sk_buff *skb;
	size_t copied;
	int err;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	skb = skb_recv_datagram(sk, (unsigned int)flags, &err);
	if (!skb)
		return err;
	copied = skb->len - HEADER;
	if (copied > len) {
		copied = len;
		msg->msg_flags |= MSG_TRUNC;
	}
	err = skb_copy_datagram_msg(skb, HEADER, msg, (int)copied);
	if (!err && from) {
		const struct mote_header *h = (const struct mote_header *)skb->data;

		*from = (struct sockaddr_mote){
			.family = AF_MOTE,
			.port = h->source,
			.address = ip_hdr(skb)->saddr,
		};
		msg->msg_namelen = sizeof(*from);
	}
	if (!err) {
		sock_recv_cmsgs(msg, sk, skb);
		err = (int)(flags & MSG_TRUNC ? skb->len - HEADER : copied);
	}
	skb_free_datagram(sk, skb);
	return err;
}

static int mote_getsockopt(struct socket *sock, int level, int name, char __user *value,
			   int __user *length)
{
	int n, lost = (int)mote(sock->sk)->lost;

	if (level != SOL_MOTE || name != MOTE_LOST)
		return -ENOPROTOOPT;
	if (get_user(n, length))
		return -EFAULT;
	if (n < (int)sizeof(lost))
		return -EINVAL;
	if (put_user((int)sizeof(lost), length) || copy_to_user(value, &lost, sizeof(lost)))
		return -EFAULT;
	return 0;
}

static int mote_ioctl(struct socket *sock, unsigned int request, unsigned long argument)
{
	return -ENOIOCTLCMD; /* those of interfaces */
}

static int mote_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	spin_lock_bh(&bound_lock);
	if (mote(sk)->port)
		hlist_del_init(&mote(sk)->node);
	spin_unlock_bh(&bound_lock);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

static const struct proto_ops mote_ops = {
	.family = AF_MOTE,
	.owner = THIS_MODULE,
	.release = mote_release,
	.bind = mote_bind,
	.connect = mote_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = mote_getname,
	.poll = datagram_poll,
	.ioctl = mote_ioctl,
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = sock_no_shutdown,
	.getsockopt = mote_getsockopt,
	.sendmsg = mote_sendmsg,
	.recvmsg = mote_recvmsg,
	.mmap = sock_no_mmap,
};

static struct proto mote_proto = {
	.name = "MOTE",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct mote_sock),
};

static int mote_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct sock *sk;

	if (sock->type != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != IPPROTO_MOTE)
		return -EPROTONOSUPPORT;
	sk = sk_alloc(net, AF_MOTE, GFP_KERNEL, &mote_proto, kern);
	if (!sk)
		return -ENOMEM;
	sock->ops = &mote_ops;
	sock_init_data(sock, sk);
	sk->sk_protocol = IPPROTO_MOTE;
	sk->sk_destruct = inet_sock_destruct;
	inet_sk(sk)->uc_ttl = -1;
	inet_sk(sk)->pmtudisc = IP_PMTUDISC_DONT;
	INIT_HLIST_NODE(&mote(sk)->node);
	return 0;
}

static const struct net_proto_family mote_family = {
	.family = AF_MOTE,
	.create = mote_create,
	.owner = THIS_MODULE,
};

static const struct net_protocol mote_protocol = {
	.handler = mote_rcv,
	.err_handler = mote_err,
	.no_policy = 1,
};

static int __init mote_register(void)
{
	int err = proto_register(&mote_proto, 1);

	if (err)
		return err;
	err = inet_add_protocol(&mote_protocol, IPPROTO_MOTE);
	if (err)
		goto unregister_proto;
	err = sock_register(&mote_family);
	if (err)
		goto del_protocol;
	return 0;
del_protocol:
	inet_del_protocol(&mote_protocol, IPPROTO_MOTE);
unregister_proto:
	proto_unregister(&mote_proto);
	return err;
}
module_init(mote_register);

MODULE_DESCRIPTION("Mote, a small datagram protocol");
MODULE_LICENSE("GPL");
