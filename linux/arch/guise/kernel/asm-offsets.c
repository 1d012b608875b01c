// SPDX-License-Identifier: GPL-2.0-only
/* Kbuild needs this file. The port's assembly uses no offsets: its arguments are in registers. */
int main(void)
{
	return 0;
}
