/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel image's file, in the creator of a stack. See image.c. */
#ifndef GUISE_REGION_IMAGE_H
#define GUISE_REGION_IMAGE_H

#include "region/stack.h"

#include <elf.h>
#include <stdint.h>

struct guise_image_file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[16];
};

/* Finds it: a descriptor of its file, and the path; or -errno with a sentence. beside: it is the
 * one that comes with guise, and was not named. */
int guise_image_find(const struct guise_options *opt, char *path, size_t size, bool *beside);

/* Finds and checks it: a descriptor from which all members map it, or -errno with a sentence. */
int guise_image_open(const struct guise_options *opt, struct guise_image_file *im);

/* Its data into the region's file, relocated to base. 0, or -errno with a sentence. */
int guise_image_load(struct guise_stack *s, const struct guise_image_file *im, uint64_t base);

/* Into the region's file, before it is mapped. 0, or -errno with a sentence. */
int guise_region_write(const struct guise_stack *s, const void *data, size_t n, uint64_t at);

#endif
