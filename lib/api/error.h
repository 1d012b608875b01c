/* SPDX-License-Identifier: GPL-2.0-only */
/* How the typed wrappers report a failure; guise_fail() is in region/stack.h. */
#ifndef GUISE_API_ERROR_H
#define GUISE_API_ERROR_H

/*
 * Returns ret. A negative one is remembered with the call's name (a constant
 * string), so that guise_error() can say "recvfrom: Connection refused". The
 * sentence is only made when guise_error() is called, because a receive that
 * finds nothing is frequent.
 */
long guise_result(const char *call, long ret);

#endif
