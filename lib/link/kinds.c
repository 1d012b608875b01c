// SPDX-License-Identifier: GPL-2.0-only
/* The table of link kinds, as kinds.h lists them. */
#include "link/backends.h"

#include <string.h>

#define ETHERNET 0
#define IP       GUISE_LINK_RAW

static const struct guise_link_kind kinds[] = {
#define KIND(name, frames, mtu, forms, ...) { #name, forms, frames, mtu, &guise_link_##name },
#include "link/kinds.h"
};

const struct guise_link_kind *guise_link_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

const char *guise_link_forms(const char *name)
{
	return guise_link_kind(name)->forms;
}

const char *guise_link_kinds(void)
{
#define KIND(name, frames, mtu, forms, ...) "; " forms
	static const char all[] =
#include "link/kinds.h"
		;

	return all + strlen("; ");
}
