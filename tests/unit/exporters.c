/* SPDX-License-Identifier: BSD-2-Clause */
/* Each format's output for a few calls and stacks, by its own rules and counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/io.h"
#include "format/export.h"
#include "profile/calls.h"

struct calls {
	const struct uni_call_event *v;
	size_t nr;
};

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct calls *c = ctx;

	*ret = c->v;
	*nr_ret = c->nr;
	c->nr = 0;
	return *nr_ret != 0;
}

static const char *name_of_func(void *ctx, uint32_t func)
{
	static const char *const names[] = { "outer", "in,ner", "" };

	return func < uni_array_len(names) ? names[func] : "";
}

static const char *name_of_thread(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	*number_ret = thread == 0 ? 10 : 20;
	return thread == 0 ? "tid" : "web";
}

static const struct uni_call_event events[] = {
	/* The end of a call that began before: uftrace has no place for it. */
	{ .type = UNI_CALL_LEAVE,
		.flags = UNI_CALL_BEGAN,
		.thread = 1,
		.func = 0,
		.ns = 500,
		.duration = 500,
		.self = 500,
		.cpu = 1 },
	{ .type = UNI_CALL_ENTER, .thread = 0, .func = 0, .ns = 1000 },
	{ .type = UNI_CALL_ENTER, .thread = 0, .func = 1, .depth = 1, .ns = 2000 },
	{ .type = UNI_CALL_LEAVE,
		.thread = 0,
		.func = 1,
		.depth = 1,
		.ns = 2500,
		.duration = 500,
		.self = 500 },
	{ .type = UNI_CALL_LEAVE,
		.thread = 0,
		.func = 0,
		.ns = 4071,
		.duration = 3071,
		.self = 2571 },
	{ .type = UNI_CALL_ENTER, .thread = 1, .func = 2, .ns = 5000, .cpu = 1 },
	{ .type = UNI_CALL_LEAVE,
		.flags = UNI_CALL_CUT,
		.thread = 1,
		.func = 2,
		.ns = 9000,
		.duration = 4000,
		.self = 4000,
		.cpu = 1 },
	{ .type = UNI_CALL_LEAF, .thread = 1, .func = 1, .ns = 9500, .cpu = 1 },
	{ .type = UNI_CALL_LOST, .thread = 1, .count = 7, .ns = 9600, .cpu = 1 },
};

static void add(struct uni_profile *p, const char *stack, double value)
{
	uint32_t frames[16];
	size_t nr = 0;

	while (*stack != '\0') {
		size_t len = strcspn(stack, "|");

		frames[nr++] = uni_profile_frame_named(p, stack, len, UNI_FK_GUEST);
		stack += len + (stack[len] == '|');
	}
	assert_int_equal(uni_profile_add(p, frames, nr, value, 0.0), 0);
}

/* main calls work twice: directly, and below itself. */
static struct uni_profile *make_profile(void)
{
	struct uni_profile *p = uni_profile_create();

	assert_non_null(p);
	add(p, "main|work", 3);
	add(p, "boot|main|work", 4);
	add(p, "boot|main", 2);
	add(p, "@sum", 1);
	assert_int_equal(uni_profile_finish(p), 0);
	return p;
}

/* Returns the exporter's output, of calls if p is NULL; the caller frees it. */
static char *export_to(
	struct uni_profile *p, const char *format, const char *option, size_t *size_ret)
{
	struct calls calls = { events, uni_array_len(events) };
	const struct uni_timeline tl = {
		.ctx = &calls, .read = read_calls, .func = name_of_func, .thread = name_of_thread
	};
	const struct uni_export_opt opt = { option, "yes" };
	struct uni_view v = { .profile = p, .timeline = p == NULL ? &tl : NULL };
	struct uni_err err = { 0 };
	struct uni_strbuf b;
	struct uni_sink *out;
	int rc;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	rc = uni_exporter_by_name(format)->write(&v, &opt, option != NULL, out, &err);
	assert_string_equal(err.msg, "");
	assert_int_equal(rc, 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	if (size_ret != NULL)
		*size_ret = b.len;
	uni_strbuf_addc(&b, '\0');
	return uni_strbuf_detach(&b);
}

static void is(struct uni_profile *p, const char *format, const char *option, const char *want)
{
	char *text = export_to(p, format, option, NULL);

	assert_string_equal(text, want);
	free(text);
}

static void csv_of_calls(void **state)
{
	/* A call that was cut has no time, nor has a leaf. */
	is(NULL, "csv", NULL,
		"function,tid,latency_us,latency_us_self\r\nouter,20,0.5,0.5\r\n"
		"\"in,ner\",10,0.5,0.5\r\nouter,10,3.071,2.571\r\n");
	is(NULL, "csv", "cpu",
		"function,tid,latency_us,latency_us_self\r\nouter,1,0.5,0.5\r\n"
		"\"in,ner\",0,0.5,0.5\r\nouter,0,3.071,2.571\r\n");
}

static void csv_of_functions(void **state)
{
	struct uni_profile *p = make_profile();

	is(p, "csv", NULL,
		"function,image,self,total\r\nwork,,7,7\r\nmain,,2,9\r\n\"'@sum\",,1,1\r\n"
		"boot,,0,6\r\n");
	uni_profile_destroy(p);
}

static const json_t *by_name(const json_t *list, const char *ph, const char *name, size_t nth)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *e = json_array_get(list, i);
		const char *phase = json_string_value(json_object_get(e, "ph"));

		if (phase != NULL && strcmp(phase, ph) == 0 &&
			strcmp(json_string_value(json_object_get(e, "name")), name) == 0 &&
			nth-- == 0)
			return e;
	}
	return NULL;
}

static double number(const json_t *e, const char *key)
{
	assert_true(json_is_number(json_object_get(e, key)));
	return json_number_value(json_object_get(e, key));
}

static void spans(const json_t *list, const char *name, size_t nth, double us, double took)
{
	const json_t *e = by_name(list, "X", name, nth);

	assert_non_null(e);
	assert_true(fabs(number(e, "ts") - us) < 0.0006);
	assert_true(fabs(number(e, "dur") - took) < 0.0006);
}

static void chrome_of_calls(void **state)
{
	char *text = export_to(NULL, "chrome", NULL, NULL);
	json_t *doc = json_loads(text, 0, NULL);
	const json_t *list = json_object_get(doc, "traceEvents"), *e;

	assert_non_null(doc);
	spans(list, "outer", 0, 0.0, 0.5);
	spans(list, "in,ner", 0, 2.0, 0.5);
	spans(list, "outer", 1, 1.0, 3.071);
	spans(list, "[unknown]", 0, 5.0, 4.0);
	assert_null(by_name(list, "X", "outer", 2));
	assert_int_equal(number(by_name(list, "X", "outer", 0), "tid"), 1);
	assert_int_equal(number(by_name(list, "X", "outer", 1), "tid"), 0);
	e = by_name(list, "i", "in,ner", 0);
	assert_true(fabs(number(e, "ts") - 9.5) < 0.0006);
	assert_non_null(by_name(list, "i", "[events lost]", 0));
	e = by_name(list, "M", "thread_name", 0);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(e, "args"), "name")), "web-20");
	json_decref(doc);
	free(text);
}

/* Entry 0, exit 1, lost 2; and how deep. */
static void uftrace_records(const char *folder, const char *name, const char *want)
{
	char path[200], said[200] = "", *data = NULL;
	struct uni_err err = { 0 };
	size_t size = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(uni_read_file(path, 4096, &data, &size, &err), 0);
	assert_int_equal(size % 16, 0);
	for (size_t i = 0; i < size; i += 16) {
		uint64_t time, word;

		memcpy(&time, data + i, 8);
		memcpy(&word, data + i + 8, 8);
		assert_int_equal(word >> 3 & 7, 5); /* its magic */
		(void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%u@%u:%u ",
			(unsigned)(word & 3), (unsigned)(word >> 6 & 1023), (unsigned)time);
	}
	assert_string_equal(said, want);
	free(data);
}

static void uftrace_of_calls(void **state)
{
	static const char *const files[] = { "1000.dat", "1001.dat", "info", "task.txt",
		"guest.sym", "sid-756e6973636f7065.map" };
	struct calls calls = { events, uni_array_len(events) };
	const struct uni_timeline tl = {
		.ctx = &calls, .read = read_calls, .func = name_of_func, .thread = name_of_thread
	};
	const struct uni_view v = { .timeline = &tl };
	char place[] = "/tmp/uni-exporters-XXXXXX", folder[64], path[200];
	struct uni_err err = { 0 };
	int rc;

	assert_non_null(mkdtemp(place));
	(void)snprintf(folder, sizeof(folder), "%s/out", place);
	rc = uni_exporter_by_name("uftrace")->write_folder(&v, NULL, 0, folder, &err);
	assert_string_equal(err.msg, "");
	assert_int_equal(rc, 0);
	uftrace_records(folder, "1000.dat", "0@0:1000 0@1:2000 1@1:2500 1@0:4071 ");
	uftrace_records(folder, "1001.dat", "0@0:5000 1@0:9000 0@0:9500 1@0:9500 2@0:9600 ");
	for (size_t i = 0; i < uni_array_len(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(rmdir(place), 0);
}

static void speedscope_of_stacks(void **state)
{
	struct uni_profile *p = make_profile();
	char *text = export_to(p, "speedscope", NULL, NULL), said[400] = "";
	json_t *doc = json_loads(text, 0, NULL);
	const json_t *one = json_array_get(json_object_get(doc, "profiles"), 0);
	const json_t *samples = json_object_get(one, "samples");
	const json_t *frames = json_object_get(json_object_get(doc, "shared"), "frames");

	assert_non_null(doc);
	assert_int_equal(json_array_size(samples), 4);
	assert_int_equal(json_array_size(json_object_get(one, "weights")), 4);
	for (size_t i = 0; i < 4; i++) {
		const json_t *sample = json_array_get(samples, i);

		for (size_t k = 0; k < json_array_size(sample); k++) {
			size_t at = (size_t)json_integer_value(json_array_get(sample, k));

			(void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s;",
				json_string_value(
					json_object_get(json_array_get(frames, at), "name")));
		}
		(void)snprintf(said + strlen(said), sizeof(said) - strlen(said), " %d\n",
			(int)json_integer_value(
				json_array_get(json_object_get(one, "weights"), i)));
	}
	assert_non_null(strstr(said, "boot;main; 2\n"));
	assert_non_null(strstr(said, "boot;main;work; 4\n"));
	assert_non_null(strstr(said, "main;work; 3\n"));
	assert_non_null(strstr(said, "@sum; 1\n"));
	assert_int_equal(json_integer_value(json_object_get(one, "startValue")), 0);
	assert_int_equal(json_integer_value(json_object_get(one, "endValue")), 10);
	json_decref(doc);
	free(text);
	uni_profile_destroy(p);
}

static void perf_of_stacks(void **state)
{
	struct uni_profile *p = make_profile();
	char *text = export_to(p, "perf", NULL, NULL);

	assert_non_null(strstr(text, ": 4 samples:\n\t               0 work ([guest])\n"
				     "\t               0 main ([guest])\n"
				     "\t               0 boot ([guest])\n\n"));
	assert_non_null(strstr(text, ": 3 samples:\n\t               0 work ([guest])\n"
				     "\t               0 main ([guest])\n\n"));
	assert_non_null(strstr(text, ": 2 samples:\n"));
	assert_non_null(strstr(text, ": 1 samples:\n"));
	free(text);
	uni_profile_destroy(p);
}

static void callgrind_of_stacks(void **state)
{
	struct uni_profile *p = make_profile();
	char *text = export_to(p, "callgrind", NULL, NULL);

	/* Each with its own cost; main calls work from two places, 7 in all, and is called from
	 * one, with 6 below it. */
	assert_string_equal(text,
		"# callgrind format\nversion: 1\ncreator: uniscope\npid: 1\ncmd: guest\npart: 1\n\n"
		"positions: line\nevents: samples\nsummary: 10\n\n"
		"ob=(1) ???\nfl=(1) ???\nfn=(1) main\n0 2\n"
		"cob=(1)\ncfi=(1)\ncfn=(2) work\ncalls=2 0\n0 7\n\n"
		"ob=(1)\nfl=(1)\nfn=(2)\n0 7\n\n"
		"ob=(1)\nfl=(1)\nfn=(3) boot\n"
		"cob=(1)\ncfi=(1)\ncfn=(1)\ncalls=1 0\n0 6\n\n"
		"ob=(1)\nfl=(1)\nfn=(4) @sum\n0 1\n");
	free(text);
	uni_profile_destroy(p);
}

static double self_of(const struct uni_profile *p, const char *name)
{
	struct uni_func_row *rows = NULL;
	double ret = -1.0;
	size_t nr = 0;

	assert_int_equal(uni_profile_functions(p, &rows, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, rows[i].frame);

		if (strcmp(uni_profile_str(p, f->name), name) == 0)
			ret = rows[i].self;
	}
	free(rows);
	return ret;
}

static void calls_as_a_profile(void **state)
{
	static const double want[2][3] = { { 3071, 500, 4000 }, { 2, 2, 1 } };

	for (unsigned count = 0; count < 2; count++) {
		struct calls calls = { events, uni_array_len(events) };
		const struct uni_timeline tl = { .ctx = &calls,
			.read = read_calls,
			.func = name_of_func,
			.thread = name_of_thread };
		struct uni_profile *p = uni_profile_create();
		struct uni_profile_calls st;

		assert_int_equal(uni_profile_add_calls(p, &tl, count != 0, NULL, &st), 0);
		assert_int_equal(uni_profile_finish(p), 0);
		assert_int_equal(st.calls, 5);
		assert_int_equal(st.cut, 1);
		assert_int_equal(st.lost, 7);
		assert_true(self_of(p, "outer") == want[count][0]);
		assert_true(self_of(p, "in,ner") == want[count][1]);
		assert_true(self_of(p, "[unknown]") == want[count][2]);
		assert_string_equal(uni_profile_unit(p), count != 0 ? "calls" : "ns");
		uni_profile_destroy(p);
	}
}

/* To the end of the stream, with its checksum. */
static void pprof_is_whole(void **state)
{
	struct uni_profile *p = make_profile();
	static uint8_t plain[65536];
	z_stream z = { .next_out = plain, .avail_out = sizeof(plain) };
	size_t size;
	char *data = export_to(p, "pprof", NULL, &size);

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (uint8_t *)data;
	z.avail_in = (uInt)size;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_non_null(memmem(plain, z.total_out, "work", 4));
	assert_int_equal(inflateEnd(&z), Z_OK);
	free(data);
	uni_profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_of_calls),
		cmocka_unit_test(csv_of_functions),
		cmocka_unit_test(chrome_of_calls),
		cmocka_unit_test(uftrace_of_calls),
		cmocka_unit_test(speedscope_of_stacks),
		cmocka_unit_test(perf_of_stacks),
		cmocka_unit_test(callgrind_of_stacks),
		cmocka_unit_test(calls_as_a_profile),
		cmocka_unit_test(pprof_is_whole),
	};

	return cmocka_run_group_tests_name("exporters", tests, NULL, NULL);
}
