# SPDX-License-Identifier: GPL-2.0-only
"""Lines of a shell on a stack that wait until its connections are closed from both sides.

A stack ends when what it has sent is acknowledged. It may then owe an answer to what its peer says
last, and the peer's stack repeats that for a minute before it gives up. Who starts stacks one after
the other, or looks at what they leave behind, has them stay a little longer.
"""

# States: 06 has heard the peer's end, and 0A listens.
UNTIL_CLOSED = """
closed() {
    awk 'FNR > 1 && $4 !~ /0[6A]/ { left = 1 } END { exit left }' /proc/net/tcp /proc/net/tcp6
}
until closed; do sleep 0.05; done
"""
