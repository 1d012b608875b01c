// SPDX-License-Identifier: GPL-2.0-only
/* The console of the kernel's messages, by the host service of that name. */
#include <linux/console.h>
#include <linux/init.h>

#include <asm/guise.h>

static void guise_console_write(struct console *con, const char *text, unsigned int len)
{
	guise_host_do(console, (u64)text, len, 0);
}

static struct console guise_console = {
	.name = "guise",
	.write = guise_console_write,
	.flags = CON_PRINTBUFFER | CON_ENABLED | CON_ANYTIME,
	.index = -1,
};

static int __init guise_console_init(void)
{
	register_console(&guise_console);
	return 0;
}
console_initcall(guise_console_init);
