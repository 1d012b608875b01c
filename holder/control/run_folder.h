/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef GUISE_HOLDER_RUN_FOLDER_H
#define GUISE_HOLDER_RUN_FOLDER_H

/*
 * Removes the socket at path, and its name (a symbolic link, or NULL) unless another stack has
 * that by now; and the folder, if nothing else is in it.
 */
void run_folder_free(const char *path, const char *name);

#endif
