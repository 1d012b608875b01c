// SPDX-License-Identifier: GPL-2.0-only
/*
 * Start of the port: guise_boot() enters start_kernel() on the stack of the init
 * task. It returns when the kernel has booted and idles for the first time.
 */
#include <linux/console.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/init_syscalls.h>
#include <linux/kdev_t.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/oom.h>
#include <linux/panic_notifier.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/seq_file.h>
#include <linux/start_kernel.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <generated/utsrelease.h>

#include <asm/guise.h>
#include <asm/setup.h>
#include <asm/sections.h>

/* The end of struct guise_image; see vmlinux.lds.S */
static const struct {
	char release[64];
	u32 region_size, slot_size, ops_size, proc_size;
} guise_image_end __used __section(".guise.release") __aligned(8) = {
	.release = UTS_RELEASE,
	.region_size = sizeof(struct guise_region),
	.slot_size = sizeof(struct guise_slot),
	.ops_size = sizeof(struct guise_host_ops),
	.proc_size = sizeof(struct guise_proc),
};

struct pt_regs guise_no_regs;
unsigned long guise_irq_flag;

extern void guise_memory_init(void);

static void __ref __noreturn guise_start(void)
{
	start_kernel();
	BUG();
}

#ifdef CONFIG_STACKPROTECTOR
unsigned long __stack_chk_guard __ro_after_init;
#endif

/* The host side calls this once, in the process that creates the region. The value that
 * protects stacks is set while this runs. */
__visible void guise_boot(struct guise_slot *slot);
__visible __no_stack_protector void guise_boot(struct guise_slot *slot)
{
	unsigned long top = (unsigned long)init_stack + THREAD_SIZE;

	guise_current = &init_task;
	set_task_stack_end_magic(&init_task);
	init_task.thread.sp = guise_first_frame(top, guise_start);
	guise_region.vcpu->carrier = slot->id;
	guise_enter(&slot->host_sp, init_task.thread.sp, &guise_region.vcpu->entered);
}

void __init setup_arch(char **cmdline_p)
{
	strscpy(boot_command_line, guise_region.cmdline, COMMAND_LINE_SIZE);
	*cmdline_p = boot_command_line;
	setup_initial_init_mm(_text, _etext, _edata, _end);
	parse_early_param();
	guise_memory_init();
}

void __init trap_init(void)
{
}

static void guise_stop(const char *why)
{
	guise_host_do(panic, (u64)why, 0, 0);
}

void machine_restart(char *cmd)
{
	guise_stop("restart");
}

void machine_halt(void)
{
	guise_stop("halt");
}

void machine_power_off(void)
{
	guise_stop("power off");
}

static int guise_panic(struct notifier_block *nb, unsigned long event, void *text)
{
	guise_stop(text);
	return NOTIFY_DONE;
}

static struct notifier_block guise_panic_block = { .notifier_call = guise_panic };

static int __init guise_early(void)
{
	atomic_notifier_chain_register(&panic_notifier_list, &guise_panic_block);
	/* Show what the checks find, which they report as warnings; not their other messages. */
	if (IS_ENABLED(CONFIG_GUISE_STRICT))
		console_loglevel = LOGLEVEL_WARNING + 1;
	return 0;
}
early_initcall(guise_early);

/* A delay uses the host's processor. No code on a packet's way delays. */
void __delay(unsigned long loops)
{
	while (loops--)
		barrier();
}

void __ndelay(unsigned long nsecs)
{
	u64 end = guise_host_do(clock, 0, 0, 0) + nsecs;

	/* Simulated time does not move while a context runs. */
	if (guise_region.clock_mode == GUISE_CLOCK_SIM)
		return;
	while (guise_host_do(clock, 0, 0, 0) < end)
		cpu_relax();
}

void __udelay(unsigned long usecs)
{
	__ndelay(usecs * 1000);
}

void __const_udelay(unsigned long xloops)
{
	__ndelay((xloops * 1000) >> 32);
}

void calibrate_delay(void)
{
	loops_per_jiffy = 1 << 20;
}

static int c_show(struct seq_file *m, void *v)
{
	seq_puts(m, "processor\t: 0\nmodel name\t: guise virtual CPU\n\n");
	return 0;
}

static void *c_start(struct seq_file *m, loff_t *pos)
{
	return *pos < 1 ? (void *)1 : NULL;
}

static void *c_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return NULL;
}

static void c_stop(struct seq_file *m, void *v)
{
}

const struct seq_operations cpuinfo_op = {
	.start = c_start,
	.next = c_next,
	.stop = c_stop,
	.show = c_show,
};

/* For each slot a shadow task, for each place a leader (shadow.c), and the kernel's own. */
#define TASKS (GUISE_MAX_SLOTS + GUISE_MAX_PROCS + 1024)

static void __init guise_raise(const char *limit)
{
	struct file *file = filp_open(limit, O_WRONLY, 0);
	char number[16];
	loff_t at = 0;
	int len;

	len = snprintf(number, sizeof(number), "%d", TASKS);
	if (IS_ERR(file) || kernel_write(file, number, len, &at) != len)
		pr_warn("guise: cannot raise %s: the stack has room for fewer threads\n", limit);
	if (!IS_ERR(file))
		fput(file);
}

/*
 * Linux allows only as many tasks as fill an eighth of its memory with their stacks: 986 with
 * 256 MiB; and a small kernel has 4096 pids. This allows as many as the stack has slots and
 * places for. Where there is no memory for all of them, a program gets the error of that.
 */
static void __init guise_allow_tasks(void)
{
	struct rlimit *tasks = &current->signal->rlim[RLIMIT_NPROC];

	tasks->rlim_cur = tasks->rlim_max = RLIM_INFINITY;
	guise_raise("/proc/sys/kernel/threads-max");
	if (pid_max < TASKS)
		guise_raise("/proc/sys/kernel/pid_max");
}

/*
 * The last initcall never returns, and so is what pid 1 does: there is no file system from
 * which kernel_init() could start a program. What kernel_init() does after the initcalls is
 * done here.
 */
static int __init guise_init(void)
{
	struct rlimit *files = &current->signal->rlim[RLIMIT_NOFILE];

	init_mkdir("/proc", 0555);
	init_mkdir("/sys", 0555);
	init_mkdir("/dev", 0755);
	init_mkdir("/dev/net", 0755);
	if (init_mount("proc", "/proc", "proc", 0, NULL))
		pr_warn("guise: no /proc\n");
	if (init_mount("sysfs", "/sys", "sysfs", 0, NULL))
		pr_warn("guise: no /sys\n");
	if (IS_ENABLED(CONFIG_DEBUG_FS) &&
	    init_mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL))
		pr_warn("guise: no /sys/kernel/debug\n");
	init_mknod("/dev/net/tun", S_IFCHR | 0666, new_encode_dev(MKDEV(10, 200)));

	/* As many as a host allows by default. The host limits what a program may open. */
	files->rlim_cur = files->rlim_max = 1024 * 1024;
	guise_allow_tasks();
	kernel_sigaction(SIGCHLD, SIG_IGN);

	/* No task has memory of its own, so to kill one would free none: when the region is
	 * full, allocations fail. */
	oom_killer_disable(0);

	system_state = SYSTEM_RUNNING;
	rcu_end_inkernel_boot();
	guise_init_loop();
}
late_initcall_sync(guise_init);
