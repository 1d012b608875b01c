// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses what the monitor records, and shows its records as text, inside the stack:
 *
 *	/proc/net/guise/kinds	which kinds are recorded: a name in each line. To be written by who
 *				administers the network: names, "all" or "none"
 *	/proc/net/guise/events	the records that are there, the oldest first, a line for each:
 *				time, kind, function, and name=value of each field that is not 0
 *
 * Limits: what is overwritten while the file is read is left out, and a line "# N lost" says so.
 */
#include <linux/init.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <generated/utsrelease.h>

#include <asm/monitor.h>

#define KINDS_TEXT 1024

static const char *const kind_name[] = {
#define GUISE_EVENT(NAME, name, says) [GUISE_EVENT_##NAME] = name,
	GUISE_EVENTS(GUISE_EVENT)
#undef GUISE_EVENT
};

static_assert(GUISE_EVENT_KINDS <= 64, "a bit for each kind");

static void write_head(struct guise_monitor_head *h)
{
	unsigned int n = __stop_guise_hooks - __start_guise_hooks;

	h->offset = ktime_get_real_ns() - ktime_get_ns();
	if (h->magic == GUISE_MONITOR_MAGIC)
		return;
	h->version = GUISE_MONITOR_VERSION;
	h->record_size = sizeof(struct guise_record);
	h->controls = 1; /* 0 is none */
	h->hooks = min_t(unsigned int, n, GUISE_MONITOR_HOOKS);
	for (unsigned int i = 0; i < h->hooks; i++)
		strscpy(h->hook[i], __start_guise_hooks[i].function, sizeof(h->hook[i]));
	strscpy(h->release, UTS_RELEASE, sizeof(h->release));
	smp_store_release(&h->magic, GUISE_MONITOR_MAGIC);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static int kinds_show(struct seq_file *m, void *v)
{
	for (unsigned int i = 0; i < GUISE_EVENT_KINDS; i++)
		if (guise_region.monitor_kinds & BIT_ULL(i))
			seq_printf(m, "%s\n", kind_name[i]);
	return 0;
}

/* 0, or -EINVAL for a name that is none. */
static int parse_kinds(char *text, u64 *kinds)
{
	char *name;
	int i;

	*kinds = 0;
	while ((name = strsep(&text, " \t\n,"))) {
		if (!*name || !strcmp(name, "none"))
			continue;
		if (!strcmp(name, "all")) {
			*kinds = GENMASK_ULL(GUISE_EVENT_KINDS - 1, 0);
			continue;
		}
		i = match_string(kind_name, GUISE_EVENT_KINDS, name);
		if (i < 0)
			return -EINVAL;
		*kinds |= BIT_ULL(i);
	}
	return 0;
}

static int kinds_write(struct file *file, char *text, size_t size)
{
	u64 kinds;
	int err;

	if (!ns_capable(init_net.user_ns, CAP_NET_ADMIN))
		return -EPERM;
	err = parse_kinds(text, &kinds);
	if (err)
		return err;
	if (kinds)
		write_head(guise_monitor_head());
	WRITE_ONCE(guise_region.monitor_kinds, kinds);
	return 0;
}

/* ---- events --------------------------------------------------------------------------------- */

struct reading {
	u64 next, until, lost;
	struct guise_record record;
};

static bool copy_record(struct guise_monitor_head *h, u64 n, struct guise_record *to)
{
	*to = *guise_monitor_place(h, n);
	return n + h->capacity >= h->begun;
}

/* The record at next; what is overwritten is passed over. */
static void *events_at(struct reading *at)
{
	struct guise_monitor_head *h = guise_monitor_head();

	if (h->begun > h->capacity && at->next < h->begun - h->capacity) {
		at->lost += h->begun - h->capacity - at->next;
		at->next = h->begun - h->capacity;
	}
	if (at->next >= at->until || !copy_record(h, at->next, &at->record))
		return NULL;
	return at;
}

static void *events_start(struct seq_file *m, loff_t *pos)
{
	struct reading *at = m->private;
	struct guise_monitor_head *h = guise_monitor_head();

	if (!*pos) {
		at->until = h->written;
		at->next = h->begun > h->capacity ? h->begun - h->capacity : 0;
		at->lost = 0;
	}
	return events_at(at);
}

static void *events_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct reading *at = m->private;

	at->next++;
	(*pos)++;
	return events_at(at);
}

static void events_stop(struct seq_file *m, void *v)
{
}

static void show_address(struct seq_file *m, const char *name, const struct guise_record *r,
			 const u8 *address, unsigned int port)
{
	if (r->family == AF_INET6)
		seq_printf(m, " %s=[%pI6c]:%u", name, address, port);
	else
		seq_printf(m, " %s=%pI4:%u", name, address, port);
}

/* What stands before them in the line, or is shown by its name. */
static bool is_shown(size_t offset)
{
	return offset == offsetof(struct guise_record, time) ||
	       offset == offsetof(struct guise_record, kind) ||
	       offset == offsetof(struct guise_record, hook) ||
	       offset == offsetof(struct guise_record, local_port) ||
	       offset == offsetof(struct guise_record, remote_port) ||
	       offset == offsetof(struct guise_record, control);
}

static void show_numbers(struct seq_file *m, const struct guise_record *r)
{
#define NUMBER(type, name, unit, source)                               \
	if (r->name && !is_shown(offsetof(struct guise_record, name))) \
		seq_printf(m, " " #name "=%llu", (unsigned long long)r->name);
#define NUMBERS(type, name, n, unit, source)
	GUISE_RECORD_FIELDS(NUMBER, NUMBERS)
#undef NUMBER
#undef NUMBERS
}

static void show_control(struct seq_file *m, const struct guise_record *r)
{
	const struct guise_monitor_control *c;

	if (!r->control ||
	    r->control >= min_t(u32, guise_monitor_head()->controls, GUISE_MONITOR_CONTROLS))
		return;
	c = &guise_monitor_head()->control[r->control];
	seq_printf(m, " cc=%.*s", (int)sizeof(c->name), c->name);
	for (unsigned int i = 0; i < GUISE_MONITOR_VALUES && *c->value[i]; i++)
		seq_printf(m, " %.*s=%u", (int)sizeof(c->value[i]), c->value[i], r->value[i]);
}

static int events_show(struct seq_file *m, void *v)
{
	struct reading *at = m->private;
	const struct guise_record *r = &at->record;
	const unsigned int hooks = __stop_guise_hooks - __start_guise_hooks;

	if (at->lost)
		seq_printf(m, "# %llu lost\n", at->lost);
	at->lost = 0;
	seq_printf(m, "%llu.%09u %s %s", div_u64(r->time, NSEC_PER_SEC),
		   (u32)(r->time - div_u64(r->time, NSEC_PER_SEC) * NSEC_PER_SEC),
		   r->kind < GUISE_EVENT_KINDS ? kind_name[r->kind] : "?",
		   r->hook < hooks ? __start_guise_hooks[r->hook].function : "?");
	if (r->kind == GUISE_EVENT_SYSCTL) {
		seq_printf(m, " name=%.*s\n", (int)(sizeof(r->local) + sizeof(r->remote)),
			   r->local);
		return 0;
	}
	show_address(m, "local", r, r->local, r->local_port);
	show_address(m, "remote", r, r->remote, r->remote_port);
	show_numbers(m, r);
	show_control(m, r);
	seq_putc(m, '\n');
	return 0;
}

static const struct seq_operations events_ops = {
	.start = events_start,
	.next = events_next,
	.stop = events_stop,
	.show = events_show,
};

static int __init guise_events_init(void)
{
	struct proc_dir_entry *dir = proc_net_mkdir(&init_net, "guise", init_net.proc_net);

	if (!dir ||
	    !proc_create_seq_private("events", 0400, dir, &events_ops, sizeof(struct reading),
				     NULL) ||
	    !proc_create_net_single_write("kinds", 0600, dir, kinds_show, kinds_write, NULL))
		return -ENOMEM;
	return 0;
}
late_initcall(guise_events_init);
