// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bugs, for the test that the kernel's own checks find them. The boot parameter
 * guise_plant= names one, which then happens at the end of the boot.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char planted[16];

static int __init guise_plant(char *name)
{
	strscpy(planted, name, sizeof(planted));
	return 0;
}
early_param("guise_plant", guise_plant);

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);
static DEFINE_MUTEX(sleeping);

static void plant_inversion(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);

	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static void plant_sleep(void)
{
	spin_lock(&first);
	mutex_lock(&sleeping);
	mutex_unlock(&sleeping);
	spin_unlock(&first);
}

static void plant_leak(void)
{
	char *lost = kstrdup("lost", GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(lost);
}

static void plant_overrun(void)
{
	char *text = kmalloc(40, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(text);
	text[40] = 1;
	kfree(text);
}

static void plant_use_after_free(void)
{
	char *text = kmalloc(40, GFP_KERNEL);

	kfree(text);
	OPTIMIZER_HIDE_VAR(text);
	text[20] = 1;
	kfree(kmalloc(40, GFP_KERNEL));
}

static void plant_list(void)
{
	static LIST_HEAD(head);
	struct list_head entry;

	list_add(&entry, &head);
	entry.next->prev = &entry + 1;
	list_del(&entry);
}

static const struct {
	const char *name;
	void (*plant)(void);
} bugs[] = {
	{ "inversion", plant_inversion },
	{ "sleep", plant_sleep },
	{ "leak", plant_leak },
	{ "overrun", plant_overrun },
	{ "use-after-free", plant_use_after_free },
	{ "list", plant_list },
};

static int __init guise_plant_bug(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (!strcmp(planted, bugs[i].name))
			bugs[i].plant();
	return 0;
}
late_initcall(guise_plant_bug);
