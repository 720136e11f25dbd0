/* SPDX-License-Identifier: BSD-2-Clause */
/* The replies below /ftrace/, without sockets: the guest is a list of packets made here. And who
 * may ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "serve/ftrace.h"
#include "serve/guard.h"
#include "serve/peer.h"

#define HEAD                                                \
	"# tracer: function_graph\n"                        \
	"#\n"                                               \
	"# CPU  DURATION                  FUNCTION CALLS\n" \
	"# |     |   |                     |   |   |   |\n"

struct packet {
	struct uni_trace_sub head;
	uint64_t words[(UNI_TRACE_SUB_SIZE - UNI_TRACE_SUB_HEAD) / 8];
};

struct guest {
	struct uni_ring_info info;
	struct packet packet; /* that is written now */
	size_t words;
	uint64_t tsc;
	enum uni_ftrace_tracer tracer;
	bool on;
	int fails; /* what poll and apply say */
};

/* Calls of 0x1000, 0x1010, ... one after the other, of 100 ns each: 1 GHz. */
static void calls(struct guest *g, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		uint64_t func = 0x1000 + 16 * i;

		g->packet.words[g->words++] = (uint32_t)g->tsc | (func | UNI_TRACE_ENTRY) << 32;
		g->tsc += 100;
		g->packet.words[g->words++] = (uint32_t)g->tsc | (UINT64_C(0x8000) | UNI_TRACE_EXIT)
									 << 32;
		g->tsc += 100;
	}
}

static void next_packet(struct guest *g)
{
	struct uni_trace_sub *h = &g->packet.head;

	h->words_before += g->words;
	h->begin_seq++;
	h->ts_begin = g->tsc;
	g->words = 0;
}

static struct guest *new_guest(void)
{
	struct guest *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->info = (struct uni_ring_info){ .nr_cpus = 1, .tsc_hz = 1000000000 };
	g->info.kinds[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY;
	g->info.kinds[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT;
	g->tsc = g->packet.head.ts_begin = 1000;
	g->packet.head.begin_seq = 1;
	return g;
}

static int apply(void *ctx, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err)
{
	struct guest *g = ctx;

	if (g->fails != 0)
		return uni_err_set(err, (enum uni_errcode)g->fails, "the guest says no");
	g->tracer = tracer;
	g->on = on;
	return 0;
}

static int poll_guest(void *ctx, uni_ring_packet_fn fn, void *arg, struct uni_err *err)
{
	struct guest *g = ctx;

	if (g->fails != 0)
		return uni_err_set(err, (enum uni_errcode)g->fails, "the guest is gone");
	return g->words == 0 ? 0 : fn(arg, 0, &g->packet.head, UNI_TRACE_SUB_HEAD + g->words * 8);
}

static const struct uni_ftrace_ops ops = { .apply = apply, .poll = poll_guest };

static struct uni_ftrace *serve(struct guest *g, size_t bytes)
{
	const struct uni_ftrace_cfg cfg = { .ops = &ops,
		.ctx = g,
		.info = &g->info,
		.tracer = UNI_FTRACE_GRAPH,
		.max_bytes = bytes,
		.max_readers = 2 };
	struct uni_ftrace *f;

	assert_int_equal(uni_ftrace_create(&cfg, &f, NULL), 0);
	return f;
}

static char *read_all(struct uni_ftrace_reader *r)
{
	struct uni_strbuf b;
	char buf[7];
	long n;

	uni_strbuf_init(&b);
	while ((n = uni_ftrace_read(r, buf, sizeof(buf))) > 0)
		uni_strbuf_add(&b, buf, (size_t)n);
	assert_int_equal(n, 0);
	uni_ftrace_reader_close(r);
	uni_strbuf_addc(&b, '\0');
	return uni_strbuf_detach(&b);
}

static void asks(struct uni_ftrace *f, enum uni_ftrace_method m, const char *path, const char *body,
	unsigned status, const char *want)
{
	struct uni_ftrace_reply r;
	char *text;

	uni_ftrace_request(f, m, path, body, strlen(body), &r);
	assert_int_equal(r.status, status);
	text = r.reader != NULL ? read_all(r.reader) : strdup(r.body.s);
	if (want != NULL)
		assert_string_equal(text, want);
	free(text);
	uni_strbuf_deinit(&r.body);
}

static void reads(struct uni_ftrace *f, const char *path, const char *want)
{
	asks(f, UNI_FTRACE_READ, path, "", 200, want);
}

static void files(void **state)
{
	struct guest *g = new_guest();
	struct uni_ftrace *f = serve(g, 0);

	reads(f, "/ftrace/available_tracers", "nop function function_graph\n");
	reads(f, "/ftrace/current_tracer", "function_graph\n");
	reads(f, "/ftrace/trace_clock", "x86-tsc\n");
	asks(f, UNI_FTRACE_WRITE, "/ftrace/trace_clock", "global", 200, "");
	reads(f, "/ftrace/tracing_on", "0\n");
	reads(f, "/ftrace/tracing_enable/on", "");
	assert_true(g->on);
	reads(f, "/ftrace/tracing_on", "1\n");
	asks(f, UNI_FTRACE_WRITE, "/ftrace/tracing_on", "0\n", 200, "");
	assert_false(g->on);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/tracing_on", "1", 200, "");
	assert_true(g->on);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/tracing_on", "2", 400, NULL);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/tracing_on", "", 400, NULL);
	reads(f, "/ftrace/tracing_enable/off", "");
	assert_false(g->on);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/current_tracer", "function\n", 200, "");
	assert_int_equal(g->tracer, UNI_FTRACE_FUNCTION);
	reads(f, "/ftrace/current_tracer", "function\n");
	asks(f, UNI_FTRACE_WRITE, "/ftrace/current_tracer", "functio", 400, NULL);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/trace_pipe", "x", 400, NULL);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/available_tracers", "x", 405, NULL);
	asks(f, UNI_FTRACE_HEAD, "/ftrace/available_tracers", "", 200,
		"nop function function_graph\n");
	asks(f, UNI_FTRACE_HEAD, "/ftrace/trace_pipe", "", 200, "");
	asks(f, UNI_FTRACE_HEAD, "/ftrace/tracing_enable/on", "", 200, "");
	asks(f, UNI_FTRACE_HEAD, "/ftrace/nothing", "", 404, NULL);
	asks(f, UNI_FTRACE_READ, "/ftrace/nothing", "", 404, NULL);
	asks(f, UNI_FTRACE_READ, "/trace", "", 404, NULL);
	asks(f, UNI_FTRACE_READ, "", "", 404, NULL);
	reads(f, "/ftrace",
		"ftrace files available:\n\tavailable_tracers\n\tcurrent_tracer\n"
		"\ttrace_clock\n\ttracing_on\n\ttracing_enable/on\n"
		"\ttracing_enable/off\n\ttrace\n\ttrace_pipe\n");
	reads(f, "/", NULL);
	uni_ftrace_destroy(f);
	free(g);
}

#define CALL0 " 0)   0.100 us    |  0x1000();\n"
#define CALL1 " 0)   0.100 us    |  0x1010();\n"

/* A sub-buffer is seen while it is written, each call once, and on when it is closed. */
static void traces(void **state)
{
	struct guest *g = new_guest();
	struct uni_ftrace *f = serve(g, 0);

	reads(f, "/ftrace/trace", HEAD);
	reads(f, "/ftrace/trace_pipe", "");
	calls(g, 1);
	reads(f, "/ftrace/trace", HEAD CALL0);
	reads(f, "/ftrace/trace", HEAD CALL0);
	calls(g, 2);
	reads(f, "/ftrace/trace", HEAD CALL0 CALL0 CALL1);
	reads(f, "/ftrace/trace_pipe", CALL0 CALL0 CALL1);
	reads(f, "/ftrace/trace_pipe", "");
	reads(f, "/ftrace/trace", HEAD);
	calls(g, 1);
	assert_int_equal(uni_ftrace_poll(f, NULL), 0);
	next_packet(g);
	calls(g, 2);
	reads(f, "/ftrace/trace", HEAD CALL0 CALL0 CALL1);
	asks(f, UNI_FTRACE_CLEAR, "/ftrace/trace", "", 200, "");
	reads(f, "/ftrace/trace", HEAD);
	calls(g, 1);
	asks(f, UNI_FTRACE_WRITE, "/ftrace/trace", "", 200, "");
	reads(f, "/ftrace/trace", HEAD);
	calls(g, 1);
	/* Another tracer begins anew. */
	asks(f, UNI_FTRACE_WRITE, "/ftrace/current_tracer", "nop", 200, "");
	asks(f, UNI_FTRACE_WRITE, "/ftrace/current_tracer", "function_graph", 200, "");
	reads(f, "/ftrace/trace", HEAD);
	uni_ftrace_destroy(f);
	free(g);
}

/* A call that goes on across two reads of the pipe. */
static void pipe_goes_on(void **state)
{
	struct guest *g = new_guest();
	struct uni_ftrace *f = serve(g, 0);

	g->packet.words[g->words++] = (uint32_t)g->tsc | (UINT64_C(0x2000) | UNI_TRACE_ENTRY) << 32;
	g->tsc += 100;
	g->packet.words[g->words++] = (uint32_t)g->tsc | (UINT64_C(0x3000) | UNI_TRACE_ENTRY) << 32;
	g->tsc += 100;
	g->packet.words[g->words++] = (uint32_t)g->tsc | (UINT64_C(0x7000) | UNI_TRACE_EXIT) << 32;
	reads(f, "/ftrace/trace_pipe",
		" 0)               |  0x2000() {\n 0)   0.100 us    |    0x3000();\n");
	g->tsc += 100;
	g->packet.words[g->words++] = (uint32_t)g->tsc | (UINT64_C(0x8000) | UNI_TRACE_EXIT) << 32;
	reads(f, "/ftrace/trace_pipe", " 0)   0.300 us    |  } /* 0x2000 */\n");
	uni_ftrace_destroy(f);
	free(g);
}

/* The oldest goes when there is no more room. */
static void newest_stays(void **state)
{
	struct guest *g = new_guest();
	struct uni_ftrace *f = serve(g, UNI_TRACE_SUB_SIZE);
	struct uni_ftrace_reply r;
	char *text;
	size_t lines = 0;

	for (unsigned i = 0; i < 20; i++) {
		calls(g, 4000);
		assert_int_equal(uni_ftrace_poll(f, NULL), 0);
		next_packet(g);
	}
	calls(g, 1);
	uni_ftrace_request(f, UNI_FTRACE_READ, "/ftrace/trace", "", 0, &r);
	text = read_all(r.reader);
	for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	assert_true(lines >= 5 && lines <= 4 + 4000 + 1);
	assert_non_null(strstr(text, CALL0));
	free(text);
	uni_strbuf_deinit(&r.body);
	uni_ftrace_destroy(f);
	free(g);
}

/* Readers are counted, and one that goes away in the middle leaves nothing behind. */
static void readers(void **state)
{
	struct guest *g = new_guest();
	struct uni_ftrace *f = serve(g, 0);
	struct uni_ftrace_reply a, b, c;
	char buf[4];

	calls(g, 10);
	uni_ftrace_request(f, UNI_FTRACE_READ, "/ftrace/trace_pipe", "", 0, &a);
	assert_int_equal(uni_ftrace_read(a.reader, buf, sizeof(buf)), sizeof(buf));
	asks(f, UNI_FTRACE_READ, "/ftrace/trace_pipe", "", 503, NULL);
	uni_ftrace_request(f, UNI_FTRACE_READ, "/ftrace/trace", "", 0, &b);
	uni_ftrace_request(f, UNI_FTRACE_READ, "/ftrace/trace", "", 0, &c);
	assert_int_equal(c.status, 503);
	assert_null(c.reader);
	uni_ftrace_reader_close(a.reader);
	uni_ftrace_reader_close(b.reader);
	uni_strbuf_deinit(&a.body);
	uni_strbuf_deinit(&b.body);
	uni_strbuf_deinit(&c.body);
	/* Recording goes on, and so do readers. */
	calls(g, 1);
	reads(f, "/ftrace/trace", HEAD CALL0);
	reads(f, "/ftrace/trace_pipe", CALL0);
	reads(f, "/ftrace/tracing_enable/on", "");
	uni_ftrace_destroy(f);
	free(g);
}

static void fails(void **state)
{
	struct guest *g = new_guest();
	struct uni_ftrace *f = serve(g, 0);

	g->fails = UNI_EGONE;
	asks(f, UNI_FTRACE_READ, "/ftrace/tracing_enable/on", "", 503, "the guest is gone\n");
	asks(f, UNI_FTRACE_READ, "/ftrace/trace", "", 503, "the guest is gone\n");
	g->fails = UNI_EPERM;
	asks(f, UNI_FTRACE_READ, "/ftrace/trace_pipe", "", 500, "the guest is gone\n");
	reads(f, "/ftrace/tracing_on", "0\n");
	g->fails = 0;
	reads(f, "/ftrace/trace", HEAD);
	uni_ftrace_destroy(f);
	free(g);
}

static void guard(void **state)
{
	static const char *const good[] = { "localhost", "LOCALHOST:9090", "127.0.0.1",
		"127.0.0.1:9090", "[::1]:9090", "[::1]" };
	static const char *const bad[] = { "", "example.com", "example.com:9090", "localhost:9091",
		"localhost.example.com", "127.0.0.1.example.com", "127.0.0.1:", "127.0.0.1:9090x",
		"127.0.0.10", "127.0.0.1:0x2382 ", ":9090" };

	for (size_t i = 0; i < uni_array_len(good); i++)
		assert_null(uni_serve_refuses(good[i], NULL, NULL, 9090));
	for (size_t i = 0; i < uni_array_len(bad); i++)
		assert_non_null(uni_serve_refuses(bad[i], NULL, NULL, 9090));
	assert_non_null(uni_serve_refuses(NULL, NULL, NULL, 9090));
	assert_non_null(uni_serve_refuses("localhost", "http://localhost:9090", NULL, 9090));
	assert_non_null(uni_serve_refuses("localhost", "null", NULL, 9090));
	assert_non_null(uni_serve_refuses("localhost", NULL, "cross-site", 9090));
	assert_non_null(uni_serve_refuses("localhost", NULL, "same-site", 9090));
	assert_null(uni_serve_refuses("localhost", NULL, "same-origin", 9090));
	assert_null(uni_serve_refuses("localhost", NULL, "none", 9090));
	/* The page itself may ask, by the name that it was asked for, and no other. */
	assert_null(uni_serve_refuses_page("localhost:9090", NULL, NULL, 9090));
	assert_null(uni_serve_refuses_page(
		"localhost:9090", "http://localhost:9090", "same-origin", 9090));
	assert_non_null(uni_serve_refuses_page("localhost:9090", "http://example.com", NULL, 9090));
	assert_non_null(uni_serve_refuses_page("localhost:9090", "http://localhost", NULL, 9090));
	assert_non_null(
		uni_serve_refuses_page("localhost:9090", "https://localhost:9090", NULL, 9090));
	assert_non_null(uni_serve_refuses_page("localhost:9090", "null", NULL, 9090));
}

static uint16_t name_of(int fd, struct sockaddr_in *ret)
{
	socklen_t len = sizeof(*ret);

	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &len), 0);
	return ntohs(ret->sin_port);
}

/* A right goes by the connection that asks, not by another one to the same port. */
static void peers(void **state)
{
	struct sockaddr_in ours = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } },
			   client, other;
	int fd[3];
	uint16_t port;
	uid_t uid = (uid_t)-1;

	for (unsigned i = 0; i < uni_array_len(fd); i++)
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd[0], (struct sockaddr *)&ours, sizeof(ours)), 0);
	port = name_of(fd[0], &ours);
	assert_int_equal(listen(fd[0], 2), 0);
	assert_int_equal(connect(fd[1], (struct sockaddr *)&ours, sizeof(ours)), 0);
	(void)name_of(fd[1], &client);
	assert_true(uni_peer_uid((struct sockaddr *)&client, port, &uid));
	assert_int_equal(uid, getuid());
	/* It has a port, but no connection. */
	other = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = ours.sin_addr };
	assert_int_equal(bind(fd[2], (struct sockaddr *)&other, sizeof(other)), 0);
	(void)name_of(fd[2], &other);
	assert_false(uni_peer_uid((struct sockaddr *)&other, port, &uid));
	assert_false(uni_peer_uid((struct sockaddr *)&client, ntohs(other.sin_port), &uid));
	assert_false(uni_peer_uid(NULL, port, &uid));
	client.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	assert_false(uni_peer_uid((struct sockaddr *)&client, port, &uid));
	for (unsigned i = 0; i < uni_array_len(fd); i++)
		(void)close(fd[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(traces),
		cmocka_unit_test(pipe_goes_on),
		cmocka_unit_test(newest_stays),
		cmocka_unit_test(readers),
		cmocka_unit_test(fails),
		cmocka_unit_test(guard),
		cmocka_unit_test(peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
