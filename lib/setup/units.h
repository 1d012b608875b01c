/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quantities as tc writes them. Each function takes a whole word, gives 0 and
 * the value, or -EINVAL with a sentence that names the units; the sentence
 * begins with what. Decimals are written with a point in every locale.
 */
#ifndef GUISE_SETUP_UNITS_H
#define GUISE_SETUP_UNITS_H

#include <stdint.h>

/* "20ms", "1.5s", "100us", "7ns", "0": nanoseconds */
int guise_unit_time(const char *word, const char *what, uint64_t *ns);
/* "0.2%", "0.2": of 2^32 - 1 */
int guise_unit_percent(const char *word, const char *what, uint64_t *scaled);
/* "100mbit", "10kbps": bytes per second; bit and its multiples are decimal,
 * kibit and so on binary, bps means bytes */
int guise_unit_rate(const char *word, const char *what, uint64_t *bytes);
/* "32kb", "1mb", "1500", "256kbit": bytes, at most max; multiples are of 1024 */
int guise_unit_size(const char *word, const char *what, uint64_t max, uint64_t *bytes);
/* a number that fits 32 bits */
int guise_unit_count(const char *word, const char *what, uint64_t *count);
/* a number that fits 64 bits; 0x.. too */
int guise_unit_seed(const char *word, const char *what, uint64_t *seed);

#endif
