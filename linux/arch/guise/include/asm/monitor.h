/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hooks of the monitor (linux/patches/SERIES/monitor-*). Each is one line at the place where
 * something happens, and knows the name of the function that it is in: also where that is
 * inlined into another one. A hook whose kind is not recorded costs a load and a branch.
 */
#ifndef _ASM_GUISE_MONITOR_H
#define _ASM_GUISE_MONITOR_H

#include <asm/guise.h>
#include <guise/monitor.h>

struct sock;
struct tcp_congestion_ops;

struct guise_hook {
	const char *function;
};

/* What a congestion control has beyond the window: up to GUISE_MONITOR_VALUES numbers. */
struct guise_control {
	const struct tcp_congestion_ops *ops;
	const char *name[GUISE_MONITOR_VALUES];
	void (*values)(const struct sock *sk, u32 *value);
};
#define GUISE_CONTROL(ops_, values_, ...)                                   \
	static const struct guise_control guise_control __used __aligned(8) \
		__section("guise_controls") = { .ops = &(ops_),             \
						.name = { __VA_ARGS__ },    \
						.values = (values_) }

extern const struct guise_hook __start_guise_hooks[], __stop_guise_hooks[];

static inline struct guise_monitor_head *guise_monitor_head(void)
{
	return (void *)(unsigned long)(guise_region.base + guise_region.size -
				       guise_region.monitor_size);
}

/* The place of record n. */
static inline struct guise_record *guise_monitor_place(struct guise_monitor_head *h, u64 n)
{
	return (struct guise_record *)((char *)h + GUISE_MONITOR_RECORDS) + (n & (h->capacity - 1));
}

static inline bool guise_monitors(unsigned int kind)
{
	return unlikely(READ_ONCE(guise_region.monitor_kinds) & 1ULL << kind);
}

void guise_monitor_tcp(const struct sock *sk, unsigned int kind, const struct guise_hook *hook,
		       u32 seq, u32 end, u32 count, u32 detail);
void guise_monitor_udp(const struct sock *sk, unsigned int kind, const struct guise_hook *hook,
		       u32 seq, u32 end, u32 count, u32 detail);
/* By whichever protocol the socket has. */
void guise_monitor_any(const struct sock *sk, unsigned int kind, const struct guise_hook *hook,
		       u32 seq, u32 end, u32 count, u32 detail);
void guise_monitor_sysctl(const char *name, const struct guise_hook *hook);

#define guise_monitor_by(writer, kind, ...)                                   \
	do {                                                                  \
		static const struct guise_hook guise_hook __used __aligned(8) \
			__section("guise_hooks") = { __func__ };              \
		if (guise_monitors(GUISE_EVENT_##kind))                       \
			writer(__VA_ARGS__);                                  \
	} while (0)

/* kind: the name of one (guise/monitor.h), which also says what the other arguments are. */
#define guise_monitor(kind, sk, seq, end, count, detail)                                         \
	guise_monitor_by(guise_monitor_tcp, kind, sk, GUISE_EVENT_##kind, &guise_hook, seq, end, \
			 count, detail)
#define guise_monitor_datagram(kind, sk, count, detail)                                      \
	guise_monitor_by(guise_monitor_udp, kind, sk, GUISE_EVENT_##kind, &guise_hook, 0, 0, \
			 count, detail)
#define guise_monitor_option(sk, level, number)                                                \
	guise_monitor_by(guise_monitor_any, OPTION, sk, GUISE_EVENT_OPTION, &guise_hook, 0, 0, \
			 number, level)
#define guise_monitor_setting(name) \
	guise_monitor_by(guise_monitor_sysctl, SYSCTL, name, &guise_hook)

#endif
