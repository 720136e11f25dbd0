/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles and tables of VM exits: a session is written, opened and added up. */
#include "session_place.h"

#include "base/sink.h"
#include "base/strbuf.h"
#include "format/export.h"
#include "obj/usym.h"
#include "profile/exits.h"

#define BIAS 0xffffffff80000000ull

/* Functions a, b, c at 0x1000, 0x1010, 0x1020. */
static void add_symbols(struct uni_recorder *r, struct uni_err *err)
{
	static const char *const names[] = { "a", "b", "c" };
	struct uni_symtab *s;

	assert_int_equal(uni_symtab_of_names("/boot/app.elf", names, 3, &s, err), 0);
	assert_int_equal(uni_recorder_add_symtab(r, 0, s, err), 0);
	uni_symtab_destroy(s);
}

static void put_exit(struct uni_recorder *r, struct uni_stream_exit e, uint64_t leaf)
{
	/* Called by c, in the middle of it. */
	const uint64_t pc[] = { BIAS + leaf, BIAS + 0x1025 };

	e.nr = leaf != 0 ? 2 : 0;
	e.pc = pc;
	uni_recorder_exit(r, &e);
}

static const struct uni_stream_exit out = { .t_ns = T0,
	.weight = 1000,
	.host_ns = 20000000,
	.stolen_ns = 1000000,
	.reason = 2,
	.info_kind = UNI_EXIT_INFO_PORT,
	.access = UNI_EXIT_ACCESS_WRITE,
	.info = 0x3f8,
	.userspace = true };

static void record(struct place *p)
{
	struct uni_record_stats st = { .begin_ns = T0, .end_ns = T0 + UNI_NSEC_PER_SEC };
	struct uni_recorder *r;
	struct uni_stream_exit e = out;

	p->meta.exits_every = 1;
	p->meta.bias = BIAS;
	p->meta.image_id[0] = '\0';
	assert_int_equal(uni_recorder_create(p->path, &p->meta, false, &r, &p->err), 0);
	add_symbols(r, &p->err);
	put_exit(r, e, 0x1000); /* 20 us each */
	e.t_ns++;
	e.weight = 10;
	e.host_ns = 10000000; /* and a few of 1 ms */
	e.stolen_ns = 0;
	put_exit(r, e, 0x1001);
	e.t_ns++;
	e.vcpu = 1;
	e.userspace = false;
	e.asleep_ns = 4000000;
	put_exit(r, e, 0x1010);
	e = (struct uni_stream_exit){ .t_ns = T0 + 9,
		.weight = 100,
		.host_ns = 900000000,
		.asleep_ns = 890000000,
		.isa = UNI_EXIT_ISA_VMX,
		.reason = 12 };
	put_exit(r, e, 0x1010);
	e.reason = 777;
	e.weight = 1;
	e.host_ns = 5;
	e.asleep_ns = UINT64_MAX; /* no more than there is */
	put_exit(r, e, 0);
	assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
}

static void folded(
	struct place *p, enum uni_build_what what, struct uni_only vcpu, const char *want)
{
	struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct uni_recording *rec;
	struct uni_profile *profile;
	struct uni_build_read read;
	struct uni_view view = { 0 };
	struct uni_strbuf b;
	struct uni_sink *sink;

	opts.what = what;
	opts.filter.vcpu = vcpu;
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_profile_build(rec, &opts, &profile, &read, &p->err), 0);
	assert_int_equal(read.exits, 1000 + 10 + 10 + 100 + 1);
	view.profile = profile;
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &sink), 0);
	assert_int_equal(uni_exporter_by_name("folded")->write(&view, NULL, 0, sink, &p->err), 0);
	assert_int_equal(uni_sink_close(sink, &p->err), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
	uni_profile_destroy(profile);
	uni_recording_close(rec);
}

static void graph_by_number(void **state)
{
	struct place *p = *state;

	record(p);
	folded(p, UNI_BUILD_EXITS, (struct uni_only){ 0 },
		"[no registers];[exit VMX-0x309] 1\n"
		"c;a;[exit io out 0x3f8] 1010\n"
		"c;b;[exit hlt] 100\n"
		"c;b;[exit io out 0x3f8] 10\n");
	folded(p, UNI_BUILD_EXITS, uni_only(1), "c;b;[exit io out 0x3f8] 10\n");
}

/* Sleeping in a halt is nobody's cost; sleeping in the VMM for a device is. */
static void graph_by_time(void **state)
{
	struct place *p = *state;

	record(p);
	folded(p, UNI_BUILD_EXIT_TIMES, (struct uni_only){ 0 },
		"[no registers];[exit VMX-0x309];[asleep] 5\n"
		"c;a;[exit io out 0x3f8] 29000000\n"
		"c;a;[exit io out 0x3f8];[stolen] 1000000\n"
		"c;b;[exit hlt] 10000000\n"
		"c;b;[exit io out 0x3f8] 6000000\n"
		"c;b;[exit io out 0x3f8];[asleep] 4000000\n");
}

static void assert_row(const struct uni_exit_row *row, const char *label, const char *function,
	double exits, double cost_ns)
{
	assert_string_equal(row->label, label);
	assert_string_equal(row->function, function);
	assert_true(row->exits == exits);
	assert_true(uni_exit_row_cost_ns(row) == cost_ns);
}

static void table(void **state)
{
	const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	const struct uni_exit_row *row, *sum;
	struct place *p = *state;
	struct uni_exit_table *t;
	struct uni_recording *rec;
	struct uni_build_read read;

	record(p);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_exit_table_build(rec, &opts, &t, &read, &p->err), 0);
	assert_int_equal(read.exits, 1121);
	assert_int_equal(uni_exit_table_rows(t, &row), 4);
	assert_row(&row[0], "io out 0x3f8", "a", 1010, 29e6);
	/* The exits do not pay for time that the host gave to others. */
	assert_true(row[0].userspace == 1010 && row[0].stolen_ns == 1e6 && !row[0].halt);
	assert_true(row[0].p50_ns > 17500 && row[0].p50_ns < 22500);
	assert_true(row[0].p99_ns > 17500 && row[0].p99_ns < 22500); /* 10 of 1010 are longer */
	assert_row(&row[1], "hlt", "b", 100, 10e6);
	assert_true(row[1].halt && row[1].asleep_ns == 890e6);
	assert_string_equal(row[1].isa, "VMX");
	assert_row(&row[2], "io out 0x3f8", "b", 10, 10e6);
	assert_true(row[2].userspace == 0 && row[2].asleep_ns == 4e6);
	assert_true(row[2].p99_ns > 875e3 && row[2].p99_ns < 1125e3);
	assert_row(&row[3], "VMX-0x309", "[no registers]", 1, 5);
	assert_true(row[3].asleep_ns == 5);
	sum = uni_exit_table_sum(t);
	assert_true(sum->exits == 1121 && sum->host_ns == 49e6 + 5 && sum->userspace == 1010);
	uni_exit_table_destroy(t);
	uni_exit_table_destroy(NULL);
	uni_recording_close(rec);
}

static void print(const struct uni_exit_table *t, bool json, size_t max_rows, struct uni_strbuf *b)
{
	const struct uni_text_opts text = { .max_rows = max_rows };
	struct uni_sink *sink;

	uni_strbuf_reset(b);
	assert_int_equal(uni_sink_open_strbuf(b, &sink), 0);
	if (json)
		uni_json_exits(t, NULL, sink);
	else
		uni_text_exits(t, &text, sink);
	assert_int_equal(uni_sink_close(sink, NULL), 0);
}

static void printed(void **state)
{
	struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct place *p = *state;
	struct uni_exit_table *t;
	struct uni_recording *rec;
	struct uni_strbuf b;

	record(p);
	opts.filter.vcpu = uni_only(0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_exit_table_build(rec, &opts, &t, NULL, &p->err), 0);
	uni_strbuf_init(&b);
	print(t, false, 2, &b);
	assert_string_equal(b.s, "       EXITS            HOST ms         MEAN us    P99 us ASLEEP "
				 "ms STOLEN ms   VMM  "
				 "EXIT                     FUNCTION\n"
				 "       1,010  90.91%       29.0  74.36%      28.7      18.4      "
				 " 0.0       1.0   100%  "
				 "io out 0x3f8             a\n"
				 "         100   9.00%       10.0  25.64%     100.0         -     "
				 "890.0       0.0     0%  "
				 "hlt                      b\n"
				 "         and 1 more row\n");
	print(t, true, 0, &b);
	assert_non_null(strstr(b.s,
		"{\"exit\":\"hlt\",\"numbers\":\"VMX\",\"function\":\"b\",\"halt\":true,"
		"\"exits\":100,\"to_vmm\":0,\"host_ns\":900000000,\"asleep_ns\":890000000,"
		"\"stolen_ns\":0,"));
	assert_non_null(strstr(b.s, "\"total\":{\"exits\":1111,"));
	uni_strbuf_deinit(&b);
	uni_exit_table_destroy(t);
	uni_recording_close(rec);
}

/* A file that names ever new ports costs no more than so many rows. */
static void rows_are_bounded(void **state)
{
	const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct place *p = *state;
	struct uni_record_stats st = { 0 };
	const struct uni_exit_row *row;
	struct uni_exit_table *t;
	struct uni_recording *rec;
	struct uni_recorder *r;
	struct uni_stream_exit e = out;
	bool found = false;

	p->meta.exits_every = 1;
	p->meta.image_id[0] = '\0';
	assert_int_equal(uni_recorder_create(p->path, &p->meta, false, &r, &p->err), 0);
	for (e.info = 0; e.info < 20000; e.info++) {
		put_exit(r, e, 0x1000);
		if (e.info % 500 == 0)
			assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	}
	assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_exit_table_build(rec, &opts, &t, NULL, &p->err), 0);
	assert_int_equal(uni_exit_table_rows(t, &row), 16384);
	for (size_t i = 0; i < 16384; i++)
		found = found || (strcmp(row[i].label, "(others)") == 0 &&
					 row[i].exits == (20000 - 16383) * 1000.0);
	assert_true(found);
	assert_true(uni_exit_table_sum(t)->exits == 20000 * 1000.0);
	uni_exit_table_destroy(t);
	uni_recording_close(rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(graph_by_number),
		T(graph_by_time),
		T(table),
		T(printed),
		T(rows_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
