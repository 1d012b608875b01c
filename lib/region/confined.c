// SPDX-License-Identifier: GPL-2.0-only
/* See confined.h. */
#include "region/confined.h"

#include "region/identity.h"
#include "region/image.h"

struct guise_confined guise_confined;

int guise_confine(const struct guise_options *opt)
{
	int fd = guise_image_find(opt, guise_confined.image_path, sizeof(guise_confined.image_path),
				  &guise_confined.image_beside);

	if (fd < 0)
		return fd;
	guise_confined.image = fd;
	guise_confined.user_namespace = guise_user_namespace();
	guise_confined.on = true;
	return 0;
}
