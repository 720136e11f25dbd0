/* SPDX-License-Identifier: BSD-2-Clause */
/* A session in one stream: written and read back byte for byte, cut, damaged, and made by enemies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "recording/bundle.h"

#define FILES 8

/* The data that a reader got. */
struct taken {
	struct {
		char name[160];
		struct uni_strbuf data;
	} file[FILES];
	size_t nr;
	bool open;
};

static int begin(void *arg, const char *sub, const char *name, struct uni_err *err)
{
	struct taken *t = arg;

	(void)err;
	assert_false(t->open);
	assert_true(t->nr < FILES);
	assert_null(strchr(name, '/'));
	assert_true(name[0] != '.');
	(void)snprintf(t->file[t->nr].name, sizeof(t->file[0].name), "%s%s%s",
		sub != NULL ? sub : "", sub != NULL ? "/" : "", name);
	uni_strbuf_init(&t->file[t->nr].data);
	t->open = true;
	return 0;
}

static int data(void *arg, const void *bytes, size_t size, struct uni_err *err)
{
	struct taken *t = arg;

	(void)err;
	assert_true(t->open);
	uni_strbuf_add(&t->file[t->nr].data, bytes, size);
	return 0;
}

static int end(void *arg, struct uni_err *err)
{
	struct taken *t = arg;

	(void)err;
	assert_true(t->open);
	t->open = false;
	t->nr++;
	return 0;
}

static const struct uni_bundle_ops ops = { begin, data, end };

static void forget(struct taken *t)
{
	for (size_t i = 0; i < t->nr + t->open; i++)
		uni_strbuf_deinit(&t->file[i].data);
	memset(t, 0, sizeof(*t));
}

/* In pieces of that size; what the end said. */
static int take(const struct uni_strbuf *b, size_t len, size_t piece, struct taken *t)
{
	struct uni_bundle_reader r;
	struct uni_err err = { 0 };
	int rc = 0;

	uni_bundle_reader_init(&r, &ops, t);
	for (size_t at = 0; rc == 0 && at < len; at += piece)
		rc = uni_bundle_feed(&r, b->s + at, len - at < piece ? len - at : piece, &err);
	return rc == 0 ? uni_bundle_end(&r, &err) : rc;
}

static void put(const char *dir, const char *name, const void *bytes, size_t size)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static const struct {
	const char *name;
	size_t size;
} files[] = {
	{ "session.json", 511 },
	{ "symbols/12ab.usym", 512 },
	{ "guest-0/metadata", 513 },
	{ "guest-0/samples-vcpu0", 0 },
	{ "guest-0/events-vcpu11", 70000 },
};
#define NR (sizeof(files) / sizeof(files[0]))

static uint8_t byte_of(size_t file, size_t at)
{
	return (uint8_t)(file * 41 + at * 7 + at / 256);
}

/* A folder that looks like a session, as a stream. */
static struct uni_strbuf make(char dir[32])
{
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };
	char path[64];

	(void)snprintf(dir, 32, "/tmp/uni-bundle-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/symbols", dir);
	assert_int_equal(mkdir(path, 0777), 0);
	(void)snprintf(path, sizeof(path), "%s/guest-0", dir);
	assert_int_equal(mkdir(path, 0777), 0);
	for (size_t i = 0; i < NR; i++) {
		uint8_t *bytes = malloc(files[i].size + 1);

		assert_non_null(bytes);
		for (size_t k = 0; k < files[i].size; k++)
			bytes[k] = byte_of(i, k);
		put(dir, files[i].name, bytes, files[i].size);
		free(bytes);
	}
	put(dir, "session.json.tmp-77", "x", 1); /* is being written */
	put(dir, "notes.txt", "x", 1);		 /* is none of ours */
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_bundle_write(dir, "web1.uniscope", out, &err), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	return b;
}

static void remove_dir(const char *dir)
{
	static const char *const names[] = { "session.json.tmp-77", "notes.txt" };
	char path[128];

	for (size_t i = 0; i < NR + 2; i++) {
		(void)snprintf(
			path, sizeof(path), "%s/%s", dir, i < NR ? files[i].name : names[i - NR]);
		(void)unlink(path);
	}
	(void)snprintf(path, sizeof(path), "%s/symbols", dir);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/guest-0", dir);
	(void)rmdir(path);
	assert_int_equal(rmdir(dir), 0);
}

static void is_whole(const struct taken *t)
{
	assert_int_equal(t->nr, NR);
	for (size_t i = 0; i < NR; i++) {
		size_t k = 0;

		while (k < t->nr && strcmp(t->file[k].name, files[i].name) != 0)
			k++;
		assert_true(k < t->nr);
		assert_int_equal(t->file[k].data.len, files[i].size);
		for (size_t at = 0; at < files[i].size; at++)
			assert_int_equal((uint8_t)t->file[k].data.s[at], byte_of(i, at));
	}
}

static void round_trip(void **state)
{
	static const size_t pieces[] = { 1, 100, 512, 513, 1 << 20 };
	struct taken t = { 0 };
	char dir[32];
	struct uni_strbuf b = make(dir);

	(void)state;
	assert_true(uni_bundle_is(b.s, b.len));
	assert_false(uni_bundle_is(b.s, 511));
	assert_int_equal(b.len % 512, 0);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		assert_int_equal(take(&b, b.len, pieces[i], &t), 0);
		is_whole(&t);
		forget(&t);
	}
	remove_dir(dir);
	uni_strbuf_deinit(&b);
}

static void to_folder(void **state)
{
	struct uni_bundle_files into = { .fd = -1 };
	struct uni_bundle_reader r;
	struct uni_err err = { 0 };
	char dir[32], dir2[32] = "/tmp/uni-bundle-XXXXXX", path[64];
	struct uni_strbuf b = make(dir);
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir2));
	into.dir_fd = open(dir2, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(into.dir_fd >= 0);
	uni_bundle_reader_init(&r, &uni_bundle_to_folder, &into);
	assert_int_equal(uni_bundle_feed(&r, b.s, b.len, &err), 0);
	assert_int_equal(uni_bundle_end(&r, &err), 0);
	for (size_t i = 0; i < NR; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir2, files[i].name);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, files[i].size);
	}
	/* The same once more: each file is there already. */
	uni_bundle_reader_init(&r, &uni_bundle_to_folder, &into);
	assert_int_equal(uni_bundle_feed(&r, b.s, b.len, &err), -UNI_EFORMAT);
	(void)close(into.dir_fd);
	remove_dir(dir);
	remove_dir(dir2);
	uni_strbuf_deinit(&b);
}

/* Cut anywhere: an error, unless only the end mark's second block is missing. */
static void cut(void **state)
{
	struct taken t = { 0 };
	char dir[32];
	struct uni_strbuf b = make(dir);

	(void)state;
	for (size_t len = 0; len < b.len - 512; len += len < 4096 ? 1 : 997) {
		assert_int_equal(take(&b, len, 4096, &t), -UNI_EFORMAT);
		forget(&t);
	}
	assert_int_equal(take(&b, b.len - 512, 4096, &t), 0);
	is_whole(&t);
	forget(&t);
	remove_dir(dir);
	uni_strbuf_deinit(&b);
}

/* Each byte of a header: the sum tells, of all but the blank behind it. */
static void damaged(void **state)
{
	struct taken t = { 0 };
	char dir[32];
	struct uni_strbuf b = make(dir);

	(void)state;
	for (size_t i = 0; i < 512; i += i == 154 ? 2 : 1) {
		b.s[i] = (char)(b.s[i] ^ 0x55);
		assert_int_equal(take(&b, b.len, 4096, &t), -UNI_EFORMAT);
		forget(&t);
		b.s[i] = (char)(b.s[i] ^ 0x55);
	}
	remove_dir(dir);
	uni_strbuf_deinit(&b);
}

/* One header, its sum right, and the end. */
static int one(const char *name, char type, const char *size)
{
	struct taken t = { 0 };
	struct uni_strbuf b;
	char h[512 + 1024 + 1024] = { 0 };
	unsigned sum = 0;
	int rc;

	memcpy(h, name, strlen(name));
	memcpy(h + 124, size, strlen(size));
	h[156] = type;
	memcpy(h + 257, "ustar", 6);
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (uint8_t)h[i];
	(void)snprintf(h + 148, 8, "%06o", sum);
	uni_strbuf_init(&b);
	uni_strbuf_add(&b, h, sizeof(h));
	rc = take(&b, b.len, 4096, &t);
	forget(&t);
	uni_strbuf_deinit(&b);
	return rc;
}

static void enemies(void **state)
{
	static const char *const bad[] = { "session.json", "/session.json", "a//session.json",
		"a/../session.json", "a/../../etc/passwd", "a/symbols/../../x.usym", "a/x.usym",
		"a/symbols/.usym", "a/symbols/a b.usym", "a/guest-64/metadata",
		"a/guest-00/metadata", "a/guest-0/metadata/x", "a/guest-0/core",
		"a/guest-0/metadata\n", "a/session.json/" };

	(void)state;
	assert_int_equal(one("a/session.json", '0', "00000000000"), 0);
	assert_int_equal(one("./a/guest-3/metadata", '\0', "00000000007"), 0);
	assert_int_equal(one("anything/at/all/", '5', "00000000000"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (one(bad[i], '0', "00000000000") != -UNI_EFORMAT)
			fail_msg("%s is taken", bad[i]);
	}
	for (const char *type = "1234671xgLSK"; *type != '\0'; type++)
		assert_int_equal(one("a/session.json", *type, "00000000000"), -UNI_EFORMAT);
	/* Longer than what follows, by both ways of writing a number. */
	assert_int_equal(one("a/session.json", '0', "00000777777"), -UNI_EFORMAT);
	assert_int_equal(one("a/session.json", '0', "77777777777"), -UNI_EFORMAT);
	assert_int_equal(one("a/session.json", '0', "\x80\1\1\1\1\1\1\1\1\1\1\1"), -UNI_EFORMAT);
	assert_int_equal(one("a/session.json", '0', "0x1"), -UNI_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(to_folder),
		cmocka_unit_test(cut),
		cmocka_unit_test(damaged),
		cmocka_unit_test(enemies),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
