/* SPDX-License-Identifier: GPL-2.0-only */
/* What the holder writes of JSON that printf() does not. */
#ifndef GUISE_HOLDER_JSON_H
#define GUISE_HOLDER_JSON_H

#include <stdio.h>

void json_string(FILE *out, const char *text);

#endif
