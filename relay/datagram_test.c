// SPDX-License-Identifier: GPL-2.0-only
/*
 * UDP through the engine, between a stack and this host's loopback.
 *
 *	from the stack	one socket sends to many addresses of 127/8, port RELAYED, where the
 *			engine has its socket; the route leads to an echo on the host, or, for
 *			every eighth address, to a closed port
 *	from the host	sockets send to a port of the engine, which passes the datagrams on to
 *			an echo in the stack
 */
#include "relay/datagram.h"
#include "relay/refusal.h"

#include "relay/testing.h"

#include <errno.h>

#define RELAYED 5000
#define SERVED  7000
#define FIRST   0x7f010000u /* the first of the relayed addresses */
#define SECONDS 30

static struct end relayed, port, echo_on_host, echo_in_stack, client;
static struct sockaddr_storage echo_address, closed_address, port_address;
static uint32_t clients_address = 0x7f000001;

static bool is_refused(unsigned int d)
{
	return d % 8 == 7;
}

static bool route(struct engine *g, const struct sockaddr_storage *dst, struct engine_route *to)
{
	unsigned int d = ntohl(((const struct sockaddr_in *)dst)->sin_addr.s_addr) - FIRST;

	(void)g;
	to->inside = false;
	to->to = is_refused(d) ? closed_address : echo_address;
	return true;
}

static bool server(struct end *e, struct sockaddr_storage *own, struct sockaddr_storage *to)
{
	(void)e;
	*own = four(0x7f000003, 0);
	*to = four(0x7f000001, SERVED);
	return true;
}

static const struct engine_ops ops = { .route = route, .server = server };

static void begin_sockets(void)
{
	struct sockaddr_storage any = four(0, RELAYED), lo = four(0x7f000001, 0);
	struct sockaddr_storage served = four(0x7f000001, SERVED);
	struct end closed;

	end_init(&relayed, &engine, true, -1, NULL, datagram_outward);
	tap(end_socket(&relayed, AF_INET, SOCK_DGRAM, 0) >= 0 &&
		    !end_transparent(&relayed, AF_INET) &&
		    !end_option(&relayed, SOL_SOCKET, SO_REUSEADDR, 1) &&
		    !end_option(&relayed, IPPROTO_IP, IP_RECVORIGDSTADDR, 1) &&
		    !end_call(&relayed, bind, &any, address_length(&any), 0, 0, 0) &&
		    !end_watch(&relayed, EPOLLIN),
	    "a socket for what the stack sends");
	port = testing_socket(false, SOCK_DGRAM, &lo);
	port.ready = datagram_inward;
	port_address = testing_name(&port);
	echo_on_host = testing_socket(false, SOCK_DGRAM, &lo);
	echo_address = testing_name(&echo_on_host);
	echo_in_stack = testing_socket(true, SOCK_DGRAM, &served);
	closed = testing_socket(false, SOCK_DGRAM, &lo);
	closed_address = testing_name(&closed);
	end_close(&closed);
	tap(!end_option(&port, IPPROTO_IP, IP_PKTINFO, 1) && !end_watch(&port, EPOLLIN),
	    "a port of the host");
}

static void open_client(void)
{
	struct sockaddr_storage at = four(clients_address, 0);

	end_close(&client);
	client = testing_socket(true, SOCK_DGRAM, &at);
}

static void echo(struct end *e)
{
	struct sockaddr_storage from;
	char buf[64];
	socklen_t len;
	long n;

	for (;;) {
		len = sizeof(from);
		n = end_call(e, recvfrom, buf, sizeof(buf), MSG_DONTWAIT, &from, &len);
		if (n < 0)
			return;
		end_call(e, sendto, buf, n, MSG_DONTWAIT, &from, len);
	}
}

static void turn(void)
{
	engine_timers(&engine);
	engine_turn(&engine, 0);
	echo(&echo_on_host);
	echo(&echo_in_stack);
}

static void send_to(unsigned int d, uint32_t value)
{
	struct sockaddr_storage dst = four(FIRST + d, RELAYED);

	end_call(&client, sendto, &value, sizeof(value), MSG_DONTWAIT, &dst, address_length(&dst));
}

/* Receives a datagram: its value, and its sender. False: none has come yet. */
static bool heard(struct end *e, uint32_t *value, uint32_t *from)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	if (end_call(e, recvfrom, value, sizeof(*value), MSG_DONTWAIT, &a, &len) < 0)
		return false;
	*from = ntohl(((struct sockaddr_in *)&a)->sin_addr.s_addr);
	return true;
}

/* Whether each of n destinations echoes its value once. Few are sent to at a time, because queues
 * are short. */
static bool all_answer(unsigned int n, uint32_t salt)
{
	time_t deadline = time(NULL) + SECONDS;
	unsigned int sent = 0, heard_of = 0;
	uint32_t value, from;

	for (; heard_of < n && !testing_late(deadline); turn()) {
		for (; sent < n && sent - heard_of < 32; sent++)
			send_to(sent + sent / 7, sent ^ salt);
		while (heard(&client, &value, &from)) {
			value ^= salt;
			if (from != FIRST + value + value / 7)
				return false;
			heard_of++;
		}
	}
	if (heard_of < n)
		printf("# %u of %u answered\n", heard_of, n);
	return heard_of == n;
}

static void many_from_the_stack(unsigned int n)
{
	unsigned int before = testing_descriptors();

	engine.most_flows = n;
	open_client();
	tap(all_answer(n, 0) && engine.flow.n == n, "%u conversations from the stack", n);
	tap(all_answer(n, 0x5a5a5a5a) && engine.flow.n == n, "... go on");
	send_to(n + n / 7, 0);
	for (time_t deadline = time(NULL) + SECONDS; !testing_late(deadline); turn()) {
		uint32_t value, from;

		if (heard(&client, &value, &from))
			break;
	}
	tap(engine.flow.n == n && testing_descriptors() == before + n,
	    "one more ends another, and each has a descriptor of the host");
	engine.now += DATAGRAM_SILENCE_MS + 1;
	tap(datagram_sweep(&engine) == -1 || !engine.flow.n, "silent ones end");
	turn();
	tap(testing_descriptors() == before, "their descriptors are closed");
}

/* Each answer must come to the socket that asked; with many sockets a mistake is seen best. */
static void many_from_the_host(unsigned int n)
{
	struct end *asker = calloc(n, sizeof(*asker));
	unsigned int good = 0, wrong = 0, sent = 0;
	time_t deadline = time(NULL) + SECONDS;

	engine.most_flows = n;
	for (unsigned int i = 0; i < n; i++) {
		asker[i] = testing_socket(false, SOCK_DGRAM, NULL);
		end_call(&asker[i], connect, &port_address, address_length(&port_address), 0, 0, 0);
	}
	for (unsigned int at = 0; good < n && !wrong && !testing_late(deadline); turn()) {
		for (; sent < n && sent - good < 32; sent++)
			end_call(&asker[sent], sendto, &sent, sizeof(sent), MSG_DONTWAIT, 0, 0);
		for (unsigned int k = 0; k < sent; k++) {
			uint32_t value, from;

			/* It is nearly always the answer to one of the last questions. */
			at = (sent - 1 - k) % n;
			if (k > 64 && time(NULL) + SECONDS - 2 < deadline)
				break;
			if (heard(&asker[at], &value, &from)) {
				good += value == at;
				wrong += value != at;
			}
		}
	}
	tap(good == n && engine.flow.n == n, "%u from the host, each has its own answer", n);
	for (unsigned int i = 0; i < n; i++)
		end_close(&asker[i]);
	free(asker);
	datagram_end_all(&engine);
	turn();
}

/* ---- random conversations ---------------------------------------------------------- */

#define MOST         64
#define DESTINATIONS 200
#define ASKERS       50
#define STEPS        4000

/* A model: the conversations that the engine must have, and when each was used last. */
static struct {
	bool inward;
	unsigned int client_port, d;
	unsigned int used;
} model[MOST];
static unsigned int n_model, step, mark;
static struct end asker[ASKERS];

static void forget(unsigned int i)
{
	model[i] = model[--n_model];
}

static void model_uses(bool inward, unsigned int client_port, unsigned int d, bool stays)
{
	unsigned int oldest = 0, i;

	for (i = 0; i < n_model; i++)
		if (model[i].inward == inward && model[i].client_port == client_port &&
		    model[i].d == d)
			break;
	if (i == n_model) {
		for (unsigned int k = 1; k < n_model; k++)
			if (model[k].used < model[oldest].used)
				oldest = k;
		if (n_model == MOST)
			forget(oldest);
		i = n_model++;
	}
	model[i].inward = inward;
	model[i].client_port = client_port;
	model[i].d = d;
	model[i].used = step;
	if (!stays)
		forget(i);
}

static bool talk_outward(void)
{
	unsigned int d = chance(DESTINATIONS);
	time_t deadline = time(NULL) + SECONDS;
	struct sockaddr_storage a = testing_name(&client);
	uint32_t value, from;

	send_to(d, step);
	model_uses(false, port_of(&a), d, !is_refused(d));
	if (is_refused(d)) {
		do {
			turn();
		} while (engine.flow.n != n_model && !testing_late(deadline));
		turn();
		return !heard(&client, &value, &from);
	}
	while (!testing_late(deadline)) {
		turn();
		if (heard(&client, &value, &from))
			return value == step && from == FIRST + d;
	}
	return false;
}

static bool talk_inward(void)
{
	struct end *e = &asker[chance(ASKERS)];
	time_t deadline = time(NULL) + SECONDS;
	struct sockaddr_storage a;
	uint32_t value, from;

	if (e->fd < 0) {
		*e = testing_socket(false, SOCK_DGRAM, NULL);
		end_call(e, connect, &port_address, address_length(&port_address), 0, 0, 0);
	}
	a = testing_name(e);
	end_call(e, sendto, &step, sizeof(step), MSG_DONTWAIT, 0, 0);
	model_uses(true, port_of(&a), 0, true);
	while (!testing_late(deadline)) {
		turn();
		if (heard(e, &value, &from))
			return value == step;
	}
	return false;
}

/* Moves the engine's clock on, so that whatever is used from now on is newer. */
static uint64_t next_ms(void)
{
	uint64_t now = engine.now;

	while (engine.now == now)
		engine_timers(&engine);
	return engine.now;
}

static bool do_one(uint64_t *mark_ms)
{
	uint32_t what = chance(100);

	if (what < 55)
		return talk_outward();
	if (what < 85)
		return talk_inward();
	if (what < 90) {
		open_client();
	} else if (what < 94) {
		end_close(&asker[chance(ASKERS)]);
	} else if (what < 97) {
		next_ms();
		*mark_ms = next_ms();
		mark = step;
		next_ms();
	} else if (what < 99 && *mark_ms) {
		engine.now = *mark_ms + DATAGRAM_SILENCE_MS;
		datagram_sweep(&engine);
		for (unsigned int i = n_model; i--;)
			if (model[i].used <= mark)
				forget(i);
		turn();
	} else if (what == 99 && !chance(4)) {
		datagram_end_all(&engine);
		n_model = 0;
	}
	return true;
}

static void at_random(void)
{
	unsigned int before = testing_descriptors(), outward, open;
	uint64_t mark_ms = 0;
	bool good = true;

	engine.most_flows = MOST;
	for (unsigned int i = 0; i < ASKERS; i++)
		end_init(&asker[i], &engine, false, -1, NULL, NULL);
	for (step = 1; step <= STEPS && good; step++) {
		good = do_one(&mark_ms);
		outward = open = 0;
		for (unsigned int i = 0; i < n_model; i++)
			outward += !model[i].inward;
		for (unsigned int i = 0; i < ASKERS; i++)
			open += asker[i].fd >= 0;
		if (step % 16 == 0)
			good = good && testing_descriptors() == before + outward + open;
		good = good && engine.flow.n == n_model;
	}
	if (!tap(good, "they come, go, are refused, displaced and silent in any order"))
		printf("# step %u: %zu of %u\n", step, engine.flow.n, n_model);
	for (unsigned int i = 0; i < ASKERS; i++)
		end_close(&asker[i]);
}

int main(void)
{
	unsigned int most = testing_begin("datagram", &ops), many = 10000;

	if (many > most - 64)
		many = most - 64;
	tap(!refusal_begin(&engine), "sockets for refusals");
	end_init(&client, &engine, true, -1, NULL, NULL);
	begin_sockets();
	many_from_the_stack(many);
	many_from_the_host(many < 2000 ? many : 2000);
	open_client();
	at_random();
	engine_end(&engine);
	guise_leave(stack);
	return tap_end();
}
