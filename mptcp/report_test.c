// SPDX-License-Identifier: GPL-2.0-only
/* Heads of HTTP and reports are read when they are right, and refused when not. */
#include "report.h"

#include "head.h"

#include "test/tap.h"

static int read_text(struct head *h, const char *text)
{
	return head_read(h, text, strlen(text));
}

static void heads(void)
{
	static char long_one[HEAD_MOST + 10];
	struct head h;

	tap(read_text(&h, "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest") == 27 && h.request && !h.post &&
		    h.keeps && !h.length,
	    "a request");
	tap(read_text(&h, "POST / HTTP/1.0\ncontent-length: 70\n\n") == 36 && h.post && !h.keeps &&
		    h.length == 70,
	    "one with a body");
	tap(read_text(&h, "HTTP/1.1 200 OK\r\nServer: guise-check-mptcp\r\nConnection: close\r\n"
			  "\r\n") > 0 &&
		    h.answer && h.ours && !h.keeps && !h.says_length,
	    "an answer of our own");
	tap(read_text(&h, "GET / HTTP/1.1\r\nServer: guise-check-mptcp\r\n\r\n") > 0 && !h.ours,
	    "a request is none");
	tap(read_text(&h, "GET / HTTP/1.1\r\n") == HEAD_MORE && read_text(&h, "") == HEAD_MORE,
	    "one that is not whole yet");
	tap(read_text(&h, "nonsense\r\n\r\n") == HEAD_BAD &&
		    read_text(&h, "PUT / HTTP/1.1\r\n\r\n") == HEAD_BAD &&
		    read_text(&h, "\r\n\r\n") == HEAD_BAD,
	    "what is none");
	tap(read_text(&h, "POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n") == HEAD_BAD &&
		    read_text(&h, "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n") == HEAD_BAD &&
		    read_text(&h, "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n"
				  "\r\n") == HEAD_BAD &&
		    read_text(&h, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") ==
			    HEAD_BAD,
	    "a length that is none, or two");
	memset(long_one, 'x', sizeof(long_one) - 1);
	memcpy(long_one, "GET / HTTP/1.1\r\n", 16);
	tap(read_text(&h, long_one) == HEAD_BAD, "one that is too long");
	tap(head_read(&h, "GET / HTTP/1.1\r\nX: \0\r\n\r\n", 23) == HEAD_BAD, "a zero byte");
}

static bool reads(struct report *r, const char *text)
{
	return report_read(r, text, strlen(text));
}

static void reports(void)
{
	struct report r = { .protocol = MPTCP, .in = 1 << MP_CAPABLE | 1 << MP_DSS, .bytes = 7 },
		      again;
	char text[REPORT_MOST];

	r.from = (struct address){ 4, { 192, 0, 2, 1 }, 1000 };
	r.syn.saw = r.answer.saw = CAPABLE;
	r.syn.version = r.answer.version = 1;
	r.answer.key = 0x0123456789abcdef;
	r.n_subflows = STATE_SUBFLOWS;
	for (int i = 0; i < STATE_SUBFLOWS; i++)
		r.local[i] = r.remote[i] = (struct address){ 6, { 0xfd, [15] = 1 }, 65535 };
	tap(report_write(&r, text) == strlen(text) && reads(&again, text) &&
		    !memcmp(&r, &again, sizeof(r)),
	    "what is written is read");
	tap(!reads(&again, "") && !reads(&again, "guise-check-mptc 1\n") &&
		    !reads(&again, "guise-check-mptcp 1\nprotocol sctp\n"),
	    "what is none");
	tap(reads(&again, "guise-check-mptcp 2\nfuture x y\nsyn capable\nanswer\nfrom \nsubflow a\n"
			  "subflow 1.2.3.4:5\nin \n\n\n") &&
		    again.syn.saw == UNSEEN && !again.n_subflows && !again.from.family,
	    "lines that are new, or lack something");
}

int main(void)
{
	heads();
	reports();
	return tap_end();
}
