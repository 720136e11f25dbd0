/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "format/import.h"
#include "format/uftrace/data_read.h"

static const struct uni_import_opts no_opts;

/* "root;leaf SELF [SELF2]" lines in tree order: enough to compare by. */
static void dump(const struct uni_profile *p, struct uni_strbuf *b)
{
	for (uint32_t node = UNI_NODE_ROOT, down = 1; node != UNI_NODE_NONE;) {
		const struct uni_node *n = uni_profile_node(p, node);

		if (down != 0 && (n->self != 0 || uni_profile_self2(p, node) != 0)) {
			const char *names[64];
			size_t nr = 0;

			for (uint32_t at = node; at != UNI_NODE_ROOT; nr++) {
				names[nr] = uni_profile_node_name(p, at);
				at = uni_profile_node(p, at)->parent;
			}
			while (nr-- != 0)
				uni_strbuf_addf(b, "%s%s", names[nr], nr != 0 ? ";" : "");
			uni_strbuf_addf(b, " %g", n->self);
			if (uni_profile_has_second(p))
				uni_strbuf_addf(b, " %g", uni_profile_self2(p, node));
			uni_strbuf_addc(b, '\n');
		}
		if (down != 0 && n->child != UNI_NODE_NONE) {
			node = n->child;
		} else {
			down = n->next != UNI_NODE_NONE;
			node = down != 0 ? n->next : n->parent;
		}
	}
}

static struct uni_import_stats reads_bytes(const char *format, const void *data, size_t size,
	const struct uni_import_opts *opts, const char *want)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st = { 0 };
	struct uni_err err = { 0 };
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	assert_int_equal(uni_importer_by_name(format)->read(data, size, opts, p, &st, &err), 0);
	assert_int_equal(uni_profile_finish(p), 0);
	dump(p, &b);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
	uni_profile_destroy(p);
	return st;
}

static struct uni_import_stats reads(
	const char *format, const char *text, const struct uni_import_opts *opts, const char *want)
{
	return reads_bytes(format, text, strlen(text), opts, want);
}

static void fails(const char *format, const char *text, const char *want)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st;
	struct uni_err err = { 0 };

	assert_int_equal(
		uni_importer_by_name(format)->read(text, strlen(text), &no_opts, p, &st, &err),
		-UNI_EFORMAT);
	assert_non_null(strstr(err.msg, want));
	uni_profile_destroy(p);
}

static void folded_lines(void **state)
{
	struct uni_import_stats st;

	st = reads("folded", "a;b 3\na;c 1.5\r\na;b 4\n\na 2", &no_opts, "a 2\na;b 7\na;c 1.5\n");
	assert_int_equal(st.stacks, 4);
	assert_int_equal(st.bad_lines, 0);
	/* Blanks in names belong to them; the count is the last word. */
	st = reads("folded", "f(int, long);lambda 3 10\nx   y\t 5  \n", &no_opts,
		"f(int, long);lambda 3 10\nx   y 5\n");
	assert_int_equal(st.stacks, 2);
	st = reads("folded",
		"a 1\nno count\nb 1e3\nc -4\nd 1.2.3\n;;\nc 99999999999999999999\n5\na 1\n",
		&no_opts, "a 2\n");
	assert_int_equal(st.bad_lines, 6);
	assert_int_equal(st.too_large, 1);
	assert_int_equal(st.first_bad_line, 2);
	st = reads("folded", ";a;;b; 1\n 2\n", &no_opts, "-;a;-;b 1\n[empty] 2\n");
	assert_int_equal(st.empty, 1);
	(void)reads("folded", "\x1b[2J;\xff 1\n", &no_opts, "\xef\xbf\xbd[2J;\xef\xbf\xbd 1\n");
	fails("folded", "", "empty");
	fails("folded", "hello\nworld\n", "COUNT");
}

/* trace.csv: own times below their threads; calls of one function add up. */
static void rows_of_calls(void **state)
{
	static const char rows[] =
		"function,tid,latency_us,latency_us_self\r\nf,1,9,2.5\r\n"
		"g,1,6.5,6.5\r\n\"a, \"\"b\"\"\",2,1,1\r\nf,1,1,1\r\nnot a row\r\n";
	struct uni_import_stats st;

	assert_string_equal(uni_importer_sniff(rows, sizeof(rows) - 1)->name, "csv");
	st = reads("csv", rows, &no_opts, "tid 1;f 3500\ntid 1;g 6500\ntid 2;a, \"b\" 1000\n");
	assert_int_equal(st.stacks, 4);
	assert_int_equal(st.bad_lines, 1);
	assert_int_equal(st.first_bad_line, 6);
	fails("csv", "function,tid,latency_us,latency_us_self\n", "without a call");
	fails("csv", "hello\n", "latency_us");
}

static void folded_options(void **state)
{
	struct uni_import_opts opts = { .diff = true };
	struct uni_import_stats st;

	st = reads("folded", "a;b 3 4\na;c 1\nlambda 3 5 0\nz 0 0\n", &opts,
		"a;b 3 4\nlambda 3 5 0\n");
	assert_int_equal(st.bad_lines, 1);
	assert_int_equal(st.first_bad_line, 2);
	opts = (struct uni_import_opts){ .reverse = true };
	(void)reads("folded", "leaf;mid;root 1\nleaf 2\n", &opts, "leaf 2\nroot;mid;leaf 1\n");
}

/* Frames by their place in the list, outermost first; what is not in it is no sample. */
static void speedscope_samples(void **state)
{
	struct uni_import_stats st;

	st = reads("speedscope",
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{"
		"\"frames\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]},\"profiles\":["
		"{\"type\":\"sampled\",\"name\":\"p\",\"unit\":\"none\",\"startValue\":0,"
		"\"endValue\":15,\"samples\":[[0,1],[0],[2,0],[3],[-1],[0,1]],"
		"\"weights\":[3,2,4,1,1,2.5]}]}",
		&no_opts, "a 2\na;b 5.5\nc;a 4\n");
	assert_int_equal(st.stacks, 4);
	assert_int_equal(st.bad_lines, 2);
	assert_int_equal(st.first_bad_line, 4);
}

/* A place without a function has its address. The reader frees what it knew of images. */
static void pprof_images(void **state)
{
	static const char profile[] =
		"\x0a\x04\x08\x01\x10\x02"	   /* a type: cpu in ns */
		"\x12\x04\x08\x01\x10\x07"	   /* a sample: place 1, 7 */
		"\x1a\x04\x08\x01\x28\x03"	   /* image 1: string 3 */
		"\x22\x06\x08\x01\x10\x01\x18\x10" /* place 1: image 1, 0x10 */
		"\x32\x00\x32\x03"
		"cpu"
		"\x32\x02"
		"ns" /* strings */
		"\x32\x06"
		"/bin/x";

	(void)reads_bytes("pprof", profile, sizeof(profile) - 1, &no_opts, "0x10 7\n");
}

/* Pieces end anywhere; the second line is longer than one. */
static void folded_in_pieces_is_the_same(void **state)
{
	enum { LONG = 700000, LINES = 30000 };
	const struct uni_importer *im = uni_importer_by_name("folded");
	struct uni_profile *p[2] = { uni_profile_create(), uni_profile_create() };
	struct uni_import_stats st[2];
	struct uni_err err = { 0 };
	struct uni_strbuf text, dumped[2];
	FILE *f = tmpfile();

	uni_strbuf_init(&text);
	uni_strbuf_adds(&text, "main;a 1\nmain;");
	for (size_t i = 0; i < LONG; i++)
		uni_strbuf_addc(&text, (char)('a' + i % 26));
	uni_strbuf_adds(&text, " 2\nno number\n");
	for (unsigned i = 0; i < LINES; i++)
		uni_strbuf_addf(&text, "main;a%u;b;c;f%u %u\r\n", i % 7, i, i % 3 + 1);
	uni_strbuf_adds(&text, "main;a 3");
	assert_int_equal(fwrite(text.s, 1, text.len, f), text.len);
	assert_int_equal(fflush(f), 0);
	assert_int_equal(lseek(fileno(f), 1000, SEEK_SET), 1000);
	assert_int_equal(im->read(text.s, text.len, &no_opts, p[0], &st[0], &err), 0);
	assert_int_equal(
		im->read_stream(fileno(f), text.s, 1000, text.len, &no_opts, p[1], &st[1], &err),
		0);
	for (size_t i = 0; i < 2; i++) {
		uni_strbuf_init(&dumped[i]);
		assert_int_equal(uni_profile_finish(p[i]), 0);
		dump(p[i], &dumped[i]);
		uni_profile_destroy(p[i]);
		assert_int_equal(st[i].stacks, LINES + 3);
		assert_int_equal(st[i].first_bad_line, 3);
	}
	assert_string_equal(dumped[0].s, dumped[1].s);
	p[0] = uni_profile_create();
	assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
	assert_int_equal(
		im->read_stream(fileno(f), "", 0, text.len - 1, &no_opts, p[0], &st[0], &err),
		-UNI_ERANGE);
	uni_profile_destroy(p[0]);
	for (size_t i = 0; i < 2; i++)
		uni_strbuf_deinit(&dumped[i]);
	uni_strbuf_deinit(&text);
	(void)fclose(f);
}

/* Frames that a line has in common with the line before are not looked up again. */
static void folded_lines_that_begin_alike(void **state)
{
	const struct uni_import_opts turned = { .reverse = true };

	(void)reads("folded",
		"main;aaaaaaaa;b 1\nmain;aaaaaaaa;bb 1\nmain;aaaaaaaa 1\nmain;aaaaaaaa;;: 1\n"
		"main;aaaaaaaa;;;; 1\nma;aaaaaaaa;b 1\nmain;aaaaaaaa;b 2\n",
		&no_opts,
		"ma;aaaaaaaa;b 1\nmain;aaaaaaaa 1\nmain;aaaaaaaa;-;-;- 1\nmain;aaaaaaaa;-;: 1\n"
		"main;aaaaaaaa;b 3\nmain;aaaaaaaa;bb 1\n");
	(void)reads("folded", "main;aaaaaaaa;b 1\nmain;aaaaaaaa;c 1\n", &turned,
		"b;aaaaaaaa;main 1\nc;aaaaaaaa;main 1\n");
}

static void deep_stacks_are_cut(void **state)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st;
	struct uni_strbuf b;
	size_t deepest = 0;

	uni_strbuf_init(&b);
	for (int i = 0; i < 100000; i++)
		uni_strbuf_adds(&b, "f;");
	uni_strbuf_adds(&b, "g 1\n");
	assert_int_equal(
		uni_importer_by_name("folded")->read(b.s, b.len, &no_opts, p, &st, NULL), 0);
	assert_int_equal(uni_profile_finish(p), 0);
	assert_int_equal(st.cut, 1);
	assert_int_equal(st.first_cut, 1);
	for (uint32_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		if (uni_profile_depth(p, i) > deepest)
			deepest = uni_profile_depth(p, i);
		if (uni_profile_node(p, i)->self != 0)
			assert_string_equal(uni_profile_node_name(p, i), "[deeper]");
	}
	assert_int_equal(deepest, UNI_IMPORT_DEPTH);
	uni_profile_destroy(p);
	/* Leaf first, it is the callers that are lost. */
	uni_strbuf_reset(&b);
	for (int i = 0; i < 100000; i++)
		uni_strbuf_adds(&b, "f+0x1\n");
	uni_strbuf_adds(&b, "1\n\n");
	p = uni_profile_create();
	assert_int_equal(
		uni_importer_by_name("uniprof")->read(b.s, b.len, &no_opts, p, &st, NULL), 0);
	assert_int_equal(st.truncated, 1);
	assert_int_equal(st.cut, 1);
	uni_profile_destroy(p);
	uni_strbuf_deinit(&b);
}

/* perf script's forms that are not its usual one. */
static void refuses_frames(const char *format, const struct uni_strbuf *b)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st;
	struct uni_err err = { 0 };

	assert_false(uni_strbuf_failed(b));
	assert_int_equal(uni_importer_by_name(format)->read(b->s, b->len, &no_opts, p, &st, &err),
		-UNI_ERANGE);
	assert_non_null(strstr(err.msg, "frames"));
	uni_profile_destroy(p);
}

/* An event for each of 4096 open frames; a sample of 8 bytes with 4000 frames. */
static void few_bytes_are_not_many_frames(void **state)
{
	static const char type[] = "\x0a\x04\x08\x01\x10\x02";
	static const char sample[] = "\x12\x06\x0a\x01\x01\x12\x01\x01";
	static const char function[] = "\x2a\x04\x08\x01\x10\x03";
	static const char strings[] = "\x32\0\x32\x01s\x32\x01c\x32\x01";
	struct uni_strbuf b;

	(void)state;
	uni_strbuf_init(&b);
	uni_strbuf_adds(&b,
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{"
		"\"frames\":[{\"name\":\"f\"}]},\"profiles\":[{\"type\":\"evented\",\"name\":"
		"\"p\",\"unit\":\"none\",\"startValue\":0,\"endValue\":1,\"events\":[");
	for (unsigned i = 0; i < 6000; i++)
		uni_strbuf_addf(&b, "%s{\"type\":\"O\",\"frame\":0,\"at\":%u}", i ? "," : "", i);
	uni_strbuf_adds(&b, "]}]}");
	refuses_frames("speedscope", &b);
	uni_strbuf_reset(&b);
	uni_strbuf_add(&b, type, sizeof(type) - 1);
	for (unsigned i = 0; i < 3000; i++)
		uni_strbuf_add(&b, sample, sizeof(sample) - 1);
	uni_strbuf_add(&b, "\x22\x82\xbb\x01\x08\x01", 6); /* a location of 2 + 4000 * 6 bytes */
	for (unsigned i = 0; i < 4000; i++)
		uni_strbuf_add(&b, "\x22\x04\x08\x01\x10\x01", 6);
	uni_strbuf_add(&b, function, sizeof(function) - 1);
	uni_strbuf_add(&b, strings, sizeof(strings) - 1);
	uni_strbuf_add(&b, "f", 1);
	refuses_frames("pprof", &b);
	uni_strbuf_deinit(&b);
}

static void perf_lines(void **state)
{
	struct uni_import_stats st;

	/* A file that was replaced while it ran; brackets in names of files and of functions. */
	(void)reads("perf",
		"p 1/1 [000] 1.5: 10 cycles:\n\t10 hot+0x10 (/lib/libx.so.1 (deleted))\n"
		"\t20 main+0x3 (/bin/p)\n\n"
		"p 1/1 [000] 1.6: 10 cycles:\n\t14 hot+0x14 (/lib/libx.so.1 (deleted))\n"
		"\t20 f(void (*)(int))+0x1 (/bin/dir (x)/p)\n\n"
		"p 1/1 [000] 1.7: 10 cycles:\n\t14 odd+0x14 (/lib/a)b)\n\n",
		&no_opts, "p;f(void (*)(int));hot 10\np;main;hot 10\np;odd 10\n");
	/* Each digit of an address. */
	(void)reads("perf", "p 1 1.5: 3 cycles:\n\tfedcba9876543210 hot+0x10 (/a)\n\n", &no_opts,
		"p;hot 3\n");
	/* No thread known. */
	(void)reads("perf",
		":-1    -1 [000] 2.5:   7 cycles:\n\t14 hot+0x14 (/lib/a)\n\n"
		":-1    -1/-1 [000] 2.5:   7 cycles:\n\t14 hot+0x14 (/lib/a)\n\n",
		&no_opts, ":-1;hot 14\n");
	/* -F without dso, and without an event. */
	(void)reads("perf", "a b 1/2 1.5: cycles:\n\t10 hot+0x10\n\t20 f(void (*)(int))\n\n",
		&no_opts, "a_b;f(void (*)(int));hot 1\n");
	st = reads("perf", "a 1 1.5:\n\t10 hot+0x10\n\t20 main\n\na 1 1.6: \n\t10 x (/a)\n\n",
		&no_opts, "a;main;hot 1\na;x 1\n");
	assert_int_equal(st.bad_lines + st.left_out, 0);
	assert_string_equal(uni_importer_sniff("a 1 1.5:\n\t10 hot\n\n", 18)->name, "perf");
	assert_string_equal(uni_importer_sniff("a 1 1.5: cycles:\n\t10 hot\n\n", 26)->name, "perf");
	/* Without chains. */
	st = reads("perf",
		"a b  28 6.6: 1001 cpu-clock:u:      40118d burn: a+0x5d (/x y: z)\n"
		"    a b  28 6.7: 1001 cpu-clock:u:      401 main+0x1 (/a)\n"
		"a b  28 6.8: 1001 cycles:      401 main+0x1 (/a)\n",
		&no_opts, "a_b;burn: a 1001\na_b;main 1001\n");
	assert_int_equal(st.left_out, 1);
	assert_string_equal(
		uni_importer_sniff("a 1 1.5: cycles:  10 hot+0x1 (/a)\n", 34)->name, "perf");
}

static void traces_of_ftrace(void **state)
{
	struct uni_import_stats st;

	(void)state;
	st = reads("ftrace",
		"# tracer: function_graph\n#\n"
		" 0)               |  f() {\n"
		" 0)   1.000 us    |    g();\n"
		"nonsense\n"
		" 0)   4.000 us    |  }\n",
		&no_opts, "f 3000\nf;g 1000\n");
	assert_int_equal(st.bad_lines, 1);
	assert_int_equal(st.first_bad_line, 5);
	reads("ftrace",
		"# tracer: function\n#\n"
		"  a-1  [000]  1.000001: f <-main\n"
		"  a-1  [000]  1.000002: f <-main\n",
		&no_opts, "main;f 2\n");
	fails("ftrace", "# tracer: function\n#\n", "a trace without a call");
}

static void too_large_numbers(void **state)
{
	struct uni_import_stats st = reads("folded",
		"a;b 1\na;b 1000000000000000\na;c 900000000000000000.5\na;b 999999999999999\na;b "
		"x\n",
		&no_opts, "a;b 1e+15\n");

	assert_int_equal(st.too_large, 2);
	assert_int_equal(st.first_too_large, 2);
	assert_int_equal(st.bad_lines, 1);
	assert_string_equal(uni_importer_sniff("a;b 900000000000000000\n", 23)->name, "folded");
	fails("folded", "a;b 900000000000000000\n", "at most 15 digits");
}

#define HEAD                                                             \
	"#unikernel stack tracer using libxencall hypercall interface\n" \
	"#tracing domid 5 on 2020-03-01 10:00:00 CET (+0100)\n"          \
	"\n"

static void uniprof_raw(void **state)
{
	struct uni_import_stats st;

	st = reads("uniprof",
		HEAD "0x1005\n0x1100\n0x1210\n1\n\n0x1005\n0\n\n1\n\nMissed 3 deadlines\n",
		&no_opts, "0x1210;0x1100;0x1005 1\n[empty] 1\n[truncated];0x1005 1\n");
	assert_int_equal(st.stacks, 3);
	assert_int_equal(st.truncated, 1);
	assert_int_equal(st.empty, 1);
	assert_int_equal(st.missed, 3);
	assert_int_equal(st.bad_lines, 0);
	/* A vCPU that failed has no terminator; a file may end in the middle of a stack. */
	st = reads("uniprof",
		HEAD "Failed to get context for VCPU 1, skipping trace. (ret=-3)\n"
		     "0x1\n1\n\n0x2\n0x3\n",
		&no_opts, "0x1 1\n[truncated];0x3;0x2 1\n");
	assert_int_equal(st.bad_lines, 1);
	assert_int_equal(st.truncated, 1);
	(void)reads("uniprof", "0x1\n250\n\n  0x2\n  12  \n", &no_opts, "0x1 250\n0x2 12\n");
	fails("uniprof", "0x1\n0x2\n", "no uniprof text");
	fails("uniprof", "", "no uniprof text");
	assert_string_equal(uni_importer_sniff(HEAD, sizeof(HEAD) - 1)->name, "uniprof");
	assert_null(uni_importer_sniff("\n" HEAD, sizeof(HEAD)));
}

/* The expectations that the old pipeline fails: reference values of its own test traces. */
static void uniprof_symbolized(void **state)
{
	static const char *const names[] = { "foo", "bar", "baz" }; /* from 0x1000, 0x10 each */
	struct uni_import_opts opts = { 0 };
	struct uni_symtab *sym;
	struct uni_import_stats st;

	assert_int_equal(uni_symtab_of_names("x", names, 3, &sym, NULL), 0);
	opts.symtab = sym;
	/* A caller is looked up at the call; beyond the last symbol nothing has a name. */
	(void)reads("uniprof", "0x1010\n0x1010\n0x1030\n0xffffffffff\n1\n\n", &opts,
		"0xffffffffff;baz;foo;bar 1\n");
	/* A stack that ends in 0 is one truncated stack; the empty one after it is another. */
	st = reads("uniprof", "0x1005\n0\n\n1\n\n", &opts, "[empty] 1\n[truncated];foo 1\n");
	assert_int_equal(st.truncated, 1);
	assert_int_equal(st.empty, 1);
	uni_symtab_destroy(sym);
	/* As symbolize leaves it: the terminator 0 gone, a blank line where it was. */
	st = reads("uniprof", HEAD "foo+0x5\nundef\n\n1\n\n", &no_opts,
		"[empty] 1\n[truncated];undef;foo 1\n");
	assert_int_equal(st.truncated, 1);
	(void)reads("uniprof",
		"operator+\nstd::operator+(int)+0x10\nbar+0\na+b+0xzz\n1\n\nbar\n1\n\n", &no_opts,
		"a+b+0xzz;bar;std::operator+(int);operator+ 1\nbar 1\n");
}

static void sniffing(void **state)
{
	static const struct {
		const char *text, *want;
	} t[] = { { HEAD "0x1\n1\n\n", "uniprof" }, { "0x1\n0x2\n1\n\n", "uniprof" },
		{ "foo+0x1\nbar\n1\n\n", "uniprof" }, { "a;b 1\na;c 2\n", "folded" },
		{ "main 5\n", "folded" }, { "a;b 1\nx\na 2\n", "folded" }, { "", NULL },
		{ "hello\nworld\n", NULL },
		{ "\x7f"
		  "ELF\x02\x01\x01",
			NULL },
		{ "{\"format\": 1}\n", NULL } };

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const struct uni_importer *im = uni_importer_sniff(t[i].text, strlen(t[i].text));

		if (t[i].want == NULL)
			assert_null(im);
		else
			assert_string_equal(im != NULL ? im->name : "none", t[i].want);
	}
	assert_null(uni_importer_by_name("nonsense"));
	/* How sure it is: another one may know the rest of the lines. */
	assert_int_equal(uni_importer_by_name("folded")->sniff("a;b 1\n\na 2\n", 11), 70);
	/* System calls and their results are no stacks; an operator is. */
	assert_null(uni_importer_sniff("[2] read(3, 0x1, 5) = 5\nclose(3)  = 0\n", 38));
	assert_int_equal(uni_importer_by_name("folded")->sniff("a;operator= 1\n", 14), 70);
	assert_int_equal(uni_importer_by_name("folded")->sniff("a;b 1\nx\n", 8), 40);
	assert_int_equal(uni_importer_by_name("folded")->sniff("a;b 1\nx\ny\n", 10), 0);
}

#define ENTER(ns, addr)	      (ns), (uint64_t)(addr) << 16 | 5 << 3
#define LEAVE(ns, addr)	      (ns), (uint64_t)(addr) << 16 | 5 << 3 | 1
#define BOTH(tid)	      ((uint64_t)(tid) << 32 | (tid))
#define SWITCH(misc, tid, ns) (uint64_t)24 << 48 | (uint64_t)(misc) << 32 | 14, BOTH(tid), (ns)
#define EXITS(tid, ns)	      (uint64_t)48 << 48 | 4, BOTH(tid), BOTH(tid), (ns), BOTH(tid), (ns) + 1

static void uftrace(const uint64_t *dat, size_t dat_size, const uint64_t *perf, size_t perf_size,
	uint64_t damaged, const char *want)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_uftrace_events events = { 0 };
	struct uni_uftrace_syms syms;
	struct uni_uftrace_thread thread = { &syms, &events, 7 };
	struct uni_import_stats st = { 0 };
	struct uni_stack stack;
	struct uni_strbuf b;
	size_t at;

	uni_strbuf_init(&b);
	assert_true(uni_uftrace_syms_init(&syms) && uni_stack_init(&stack, p));
	assert_true(uni_uftrace_perf(&events, (const char *)perf, perf_size, &st.damaged));
	uni_uftrace_events_sort(&events);
	assert_int_equal(
		uni_uftrace_dat(&stack, &thread, (const char *)dat, dat_size, &st, &at), 0);
	assert_int_equal(uni_profile_finish(p), 0);
	dump(p, &b);
	assert_string_equal(b.s, want);
	assert_int_equal(st.damaged, damaged);
	uni_strbuf_deinit(&b);
	uni_stack_deinit(&stack);
	uni_uftrace_syms_deinit(&syms);
	uni_vec_free(&events.all);
	uni_profile_destroy(p);
}

static void uftrace_switches(void **state)
{
	static const uint64_t calls[] = { ENTER(100, 1), ENTER(110, 2), LEAVE(150, 2) };
	/* A child of fork(), which returns from what its parent called. */
	static const uint64_t child[] = { ENTER(100, 3), LEAVE(107, 3), LEAVE(110, 2),
		LEAVE(140, 1), ENTER(150, 1), LEAVE(160, 1) };
	/* Switches of two CPUs, and of another thread; one begins before the first call. */
	static const uint64_t switches[] = { SWITCH(0x6000, 7, 130), SWITCH(0, 7, 135),
		SWITCH(0x2000, 7, 160), EXITS(7, 200), SWITCH(0x2000, 7, 90), SWITCH(0, 7, 95),
		SWITCH(0x2000, 8, 111), SWITCH(0x2000, 7, 112), SWITCH(0, 7, 115),
		SWITCH(0, 7, 170) };
	/* Back in the first function, which nothing said: it ran again then. */
	static const uint64_t unended[] = { SWITCH(0x2000, 7, 140), SWITCH(0x2000, 7, 145) };

	(void)state;
	uftrace(child, sizeof(child), NULL, 0, 0, "0x1 40\n0x1;0x2 3\n0x1;0x2;0x3 7\n");
	uftrace(calls, sizeof(calls), NULL, 0, 0, "0x1 10\n0x1;0x2 40\n");
	uftrace(calls, sizeof(calls), switches, sizeof(switches), 0,
		"0x1 50\n0x1;0x2 32\n0x1;0x2;linux:schedule 3\n"
		"0x1;0x2;linux:schedule (pre-empted) 5\n0x1;linux:schedule 10\n");
	uftrace(calls, sizeof(calls), unended, sizeof(unended), 0,
		"0x1 10\n0x1;0x2 30\n0x1;0x2;linux:schedule 10\n");
	uftrace(calls, sizeof(calls), switches, 23, 1, "0x1 10\n0x1;0x2 40\n");
	uftrace(calls, sizeof(calls), switches, 24 + 8, 1,
		"0x1 10\n0x1;0x2 20\n0x1;0x2;linux:schedule (pre-empted) 20\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded_lines),
		cmocka_unit_test(folded_options),
		cmocka_unit_test(rows_of_calls),
		cmocka_unit_test(folded_in_pieces_is_the_same),
		cmocka_unit_test(speedscope_samples),
		cmocka_unit_test(pprof_images),
		cmocka_unit_test(folded_lines_that_begin_alike),
		cmocka_unit_test(deep_stacks_are_cut),
		cmocka_unit_test(few_bytes_are_not_many_frames),
		cmocka_unit_test(perf_lines),
		cmocka_unit_test(traces_of_ftrace),
		cmocka_unit_test(too_large_numbers),
		cmocka_unit_test(uniprof_raw),
		cmocka_unit_test(uniprof_symbolized),
		cmocka_unit_test(sniffing),
		cmocka_unit_test(uftrace_switches),
	};

	return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
