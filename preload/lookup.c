// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that are looked up by name: dlsym and dlvsym.
 *
 * A program that looks a function up by a handle of libc (Python's ctypes and cffi, plug-ins)
 * would get libc's own function, past the hook of that name. So the loader's answer is examined:
 * if it is a function that has a hook, the hook is returned instead. There is one exception.
 * Another library may define the function as well, and lie between this library and libc. When
 * the caller lies there, too, it gets the loader's answer: it may be such a definition, which the
 * hook calls and which wants the next one.
 *
 * The answer to RTLD_NEXT and RTLD_DEFAULT depends on the caller, which the loader recognises by
 * its return address. They find this library where they should, by its place in the loader's
 * list. So dlsym and dlvsym are a few instructions each (preload/isa/), which in these cases
 * jump to the loader's function: to the loader, the program itself has called it.
 *
 * The loader's own dlsym cannot be found by dlsym. It is taken from the first loaded object
 * behind this library that has one, through the objects' tables of symbols (DT_GNU_HASH). That
 * code calls no other function, because a sanitizer's runtime may need it before it is set up.
 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>

#define NOT_INSTRUMENTED __attribute__((no_sanitize("address", "undefined")))
#define HIDDEN           __attribute__((visibility("hidden")))
#define HIDDEN_VERSION   0x8000 /* of a symbol: one of an older interface */

typedef void *look_up(void *handle, const char *name);
typedef void *look_up_version(void *handle, const char *name, const char *version);

/* The loader's; NULL until they are asked for. preload/isa/ knows these names. */
look_up *preload_host_dlsym HIDDEN;
look_up_version *preload_host_dlvsym HIDDEN;

look_up *preload_find_dlsym(void) HIDDEN;
look_up_version *preload_find_dlvsym(void) HIDDEN;
void *preload_look_up(void *handle, const char *name, const char *caller) HIDDEN;
void *preload_look_up_version(void *handle, const char *name, const char *version,
			      const char *caller) HIDDEN;

/* What the linker knows of this library: its first and its last byte. */
extern const char __ehdr_start[] HIDDEN;
extern const char _end[] HIDDEN;

/* ---- symbols of an object ------------------------------------------------------------ */

struct symbols {
	ElfW(Addr) base;
	const ElfW(Sym) * symbol;
	const char *names;
	const uint32_t *hash;     /* DT_GNU_HASH */
	const uint16_t *versions; /* or NULL */
};

/* The loader adds where the object lies to the addresses in its table, where it can write there. */
NOT_INSTRUMENTED static const void *address(const struct symbols *s, const ElfW(Dyn) * d)
{
	return (const void *)(d->d_un.d_ptr < s->base ? s->base + d->d_un.d_ptr : d->d_un.d_ptr);
}

/* False: it has no such tables. */
NOT_INSTRUMENTED static bool read_symbols(ElfW(Addr) base, const ElfW(Dyn) * d, struct symbols *s)
{
	s->base = base;
	s->symbol = NULL;
	s->names = NULL;
	s->hash = NULL;
	s->versions = NULL;
	for (; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			s->symbol = address(s, d);
		else if (d->d_tag == DT_STRTAB)
			s->names = address(s, d);
		else if (d->d_tag == DT_GNU_HASH)
			s->hash = address(s, d);
		else if (d->d_tag == DT_VERSYM)
			s->versions = address(s, d);
	}
	return s->symbol && s->names && s->hash;
}

NOT_INSTRUMENTED static bool same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return *a == *b;
}

/* The function of that name, in the version that new programs get; NULL if there is none. */
NOT_INSTRUMENTED static void *find(const struct symbols *s, const char *name)
{
	const uint32_t buckets = s->hash[0], first = s->hash[1], words = s->hash[2];
	const ElfW(Addr) *bloom = (const void *)(s->hash + 4);
	const uint32_t *bucket = (const void *)(bloom + words), *chain = bucket + buckets;
	const unsigned int bits = 8 * sizeof(*bloom);
	uint32_t hash = 5381, i;
	ElfW(Addr) word;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	word = bloom[hash / bits % words];
	if (!(word >> hash % bits & word >> (hash >> s->hash[3]) % bits & 1))
		return NULL;
	i = bucket[hash % buckets];
	if (i < first)
		return NULL;
	for (;; i++) {
		const ElfW(Sym) *symbol = &s->symbol[i];
		uint32_t its = chain[i - first];

		if ((its | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
		    same(s->names + symbol->st_name, name) &&
		    !(s->versions && s->versions[i] & HIDDEN_VERSION))
			return (void *)(s->base + symbol->st_value);
		if (its & 1) /* the last of its bucket */
			return NULL;
	}
}

NOT_INSTRUMENTED static void *function_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic,
					  const char *name)
{
	struct symbols symbols;

	return read_symbols(base, dynamic, &symbols) ? find(&symbols, name) : NULL;
}

/* ---- the loader's functions ------------------------------------------------------------ */

NOT_INSTRUMENTED static void *behind_this(const char *name)
{
	const struct link_map *map = _r_debug.r_map;
	void *function = NULL;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	while (map && !function && (map = map->l_next))
		function = function_of(map->l_addr, map->l_ld, name);
	return function;
}

NOT_INSTRUMENTED look_up *preload_find_dlsym(void)
{
	return preload_host_dlsym = (look_up *)behind_this("dlsym");
}

NOT_INSTRUMENTED look_up_version *preload_find_dlvsym(void)
{
	return preload_host_dlvsym = (look_up_version *)behind_this("dlvsym");
}

/* ---- by a handle ------------------------------------------------------------------------- */

struct search {
	const char *name, *caller;
	const void *found;
	bool behind;    /* this library has been passed, */
	bool other;     /* another function of that name before the one that was found, */
	bool asks;      /* and the object that asks */
	bool is_hooked; /* the answer */
};

static bool has(const struct dl_phdr_info *object, const char *address)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		uintptr_t first = object->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (uintptr_t)address - first < p->p_memsz)
			return true;
	}
	return false;
}

static int search_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct search *s = data;
	const ElfW(Dyn) *dynamic = NULL;
	void *function = NULL;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum && !dynamic; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
	if (s->behind && dynamic)
		function = function_of(object->dlpi_addr, dynamic, s->name);
	if (function && function == s->found) {
		s->is_hooked = !s->other || !s->asks;
		return 1;
	}
	s->other |= function != NULL;
	s->asks |= s->behind && has(object, s->caller);
	s->behind |= dynamic == _DYNAMIC;
	return 0;
}

/* What the loader has found for the program. guise itself gets it as it is. */
static void *answer(void *found, const char *name, const char *caller)
{
	struct search search = { .name = name, .caller = caller, .found = found };
	void *hook;

	if (!found || (caller >= __ehdr_start && caller < _end))
		return found;
	hook = function_of((ElfW(Addr))__ehdr_start, _DYNAMIC, name);
	/* The loader's list, while nobody can change it. */
	if (hook && found != hook)
		dl_iterate_phdr(search_object, &search);
	return search.is_hooked ? hook : found;
}

void *preload_look_up(void *handle, const char *name, const char *caller)
{
	look_up *host = preload_host_dlsym ? preload_host_dlsym : preload_find_dlsym();

	return answer(host(handle, name), name, caller);
}

void *preload_look_up_version(void *handle, const char *name, const char *version,
			      const char *caller)
{
	look_up_version *host = preload_host_dlvsym ? preload_host_dlvsym : preload_find_dlvsym();

	return answer(host(handle, name, version), name, caller);
}
