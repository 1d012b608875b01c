// SPDX-License-Identifier: GPL-2.0-only
/* Each kind of link is found by its name, has a backend, and is taken in each of its forms. */
#include "link/link.h"
#define KIND(...)
#include "link/kinds.h"
#include "link/spec.h"

#include "test/tap.h"

#include <errno.h>
#include <string.h>

static bool is_complete(const struct guise_link_backend *b)
{
	return b && b->open && b->attach && b->out && b->in && b->detach;
}

/* Whether each of "A", "A or B", "A, B or C" is one of that kind. */
static bool takes_all(const char *forms, const struct guise_link_kind *kind)
{
	struct guise_link_spec spec;
	char copy[256], *form, *end;
	bool good = strlen(forms) < sizeof(copy);

	if (!good)
		return false;
	strcpy(copy, forms);
	for (form = copy; form && good; form = end) {
		char *last = strstr(form, " or "), *comma = strstr(form, ", ");

		end = comma ? comma : last;
		if (end) {
			*end = '\0';
			end += comma ? strlen(", ") : strlen(" or ");
		}
		good = !guise_link_spec_parse(form, &spec) && spec.kind == kind;
	}
	return good;
}

static void one(const char *name, const char *forms, uint32_t mtu, bool ethernet)
{
	const struct guise_link_kind *kind = guise_link_kind(name);
	struct guise_link_spec spec;
	struct guise_link link;
	char text[64];

	if (!tap(kind && !strcmp(kind->name, name) && strlen(name) < sizeof(link.kind),
		 "%s is known", name))
		return;
	tap(is_complete(kind->backend), "%s has a backend", name);
	tap(kind->mtu == mtu && mtu >= LINK_MTU_LEAST &&
		    mtu <= (ethernet ? LINK_MTU_MOST_ETHERNET : LINK_MTU_MOST_IP),
	    "%s has an MTU", name);
	tap(takes_all(forms, kind) && !strcmp(guise_link_forms(name), forms),
	    "%s is taken as it is written: %s", name, forms);
	snprintf(text, sizeof(text), "%s:fd=0,mac=02:00:00:00:00:01", name);
	tap((guise_link_spec_parse(text, &spec) == 0) == ethernet, "%s has %s MAC address", name,
	    ethernet ? "a" : "no");
	tap(strstr(guise_link_kinds(), forms), "%s is among all that there are", name);
}

int main(void)
{
#define ETHERNET                            true
#define IP                                  false
#define KIND(name, frames, mtu, forms, ...) one(#name, forms, mtu, frames);
#include "link/kinds.h"
	tap(!guise_link_kind("") && !guise_link_kind("ta") && !guise_link_kind("tap:"),
	    "and no other is known");
	return tap_end();
}
