/* SPDX-License-Identifier: BSD-2-Clause */
/* A session is followed while it is recorded. Each time, the page's data of the new part gives the
 * same as reading all of it anew. */
#include "session_place.h"

#include <fcntl.h>
#include <zlib.h>

#include "base/checked.h"
#include "page/page.h"
#include "recording/follow.h"

#define PATIENCE_NS (3 * UNI_NSEC_PER_SEC)

static const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;

struct live {
	struct uni_recorder *rec;
	struct uni_follow *f;
	struct uni_page_growing *g;
	struct uni_page_whole whole;
	uint64_t n;
};

static void put_at(struct uni_recorder *r, uint64_t n, uint32_t vcpu)
{
	uint64_t pc[6] = { 0x1000 + n * n % 100 * (vcpu + 1), 0x2000 + n % 7, 0x3000, 0x4000,
		0x5000, 0x6000 };
	uint8_t flags[6] = { 0 };
	const struct uni_sample s = { .t_ns = T0 + n * UNI_NSEC_PER_MSEC,
		.weight = 1 + n % 3,
		.vcpu = vcpu,
		.pause_ns = (uint32_t)(n % 70000),
		.nr = (uint16_t)(1 + n % 6),
		.pc = pc,
		.flags = flags };

	uni_recorder_sample(r, &s);
}

/* Each vCPU at each moment. */
static void put_many(struct live *l, uint64_t nr)
{
	for (uint64_t end = l->n + nr; l->n < end; l->n++) {
		for (uint32_t v = 0; v < 3; v++)
			put_at(l->rec, l->n, v);
		if (l->n % 500 == 0)
			assert_int_equal(uni_recorder_flush(l->rec, NULL), 0);
	}
	assert_int_equal(uni_recorder_flush(l->rec, NULL), 0);
}

static void begin(struct live *l, struct place *p, struct uni_page_whole whole)
{
	*l = (struct live){ .rec = create(p), .whole = whole };
	assert_int_equal(uni_follow_open(p->path, PATIENCE_NS, &l->f, &p->err), 0);
	assert_int_equal(
		uni_page_growing_create(uni_follow_recording(l->f), &opts, &l->whole, &l->g), 0);
}

static int look(struct live *l, struct place *p)
{
	const struct uni_follow_taker to = { uni_page_growing_sample, uni_page_growing_exit, l->g };

	return uni_follow_look(l->f, &to, &p->err);
}

static void end(struct live *l)
{
	const struct uni_record_stats stats = { 0 };

	uni_page_growing_destroy(l->g);
	uni_follow_close(l->f);
	if (l->rec != NULL)
		assert_int_equal(close_with(l->rec, &stats, NULL, 0, NULL), 0);
}

/* Unpacked; it is one whole gzip member, whatever pieces it was made of. */
static char *data_of(
	struct live *l, struct uni_recording *rec, struct uni_page_growing *g, size_t *len_ret)
{
	const struct uni_page_input in = {
		.title = "t", .rec = rec, .opts = &opts, .growing = g, .whole = l->whole
	};
	const size_t room = 32u << 20;
	struct uni_page_left left;
	struct uni_err err = { 0 };
	struct uni_strbuf packed;
	struct uni_sink *out;
	z_stream z = { 0 };
	char *data = malloc(room);

	uni_strbuf_init(&packed);
	assert_non_null(data);
	assert_int_equal(uni_sink_open_strbuf(&packed, &out), 0);
	assert_int_equal(uni_page_write_data(&in, out, &left, &err), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (unsigned char *)packed.s;
	z.avail_in = (unsigned)packed.len;
	z.next_out = (unsigned char *)data;
	z.avail_out = (unsigned)room;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	*len_ret = room - z.avail_out;
	(void)inflateEnd(&z);
	uni_strbuf_deinit(&packed);
	return data;
}

static void check_same(struct live *l, struct place *p)
{
	struct uni_recording *rec = NULL;
	size_t len, want_len;
	char *got = data_of(l, uni_follow_recording(l->f), l->g, &len), *want;

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	want = data_of(l, rec, NULL, &want_len);
	assert_int_equal(len, want_len);
	assert_memory_equal(got, want, len);
	free(got);
	free(want);
	uni_recording_close(rec);
}

/* By and by the columns have many pieces, and the last one always grows. */
static void same_as_anew(void **state)
{
	static const uint64_t steps[] = { 1, 2, 40, 1, 3000, 0, 17, 9000, 1, 20000, 5 };
	struct place *p = *state;
	struct live l;

	begin(&l, p, (struct uni_page_whole){ 1000000, 250000, 65536 });
	for (size_t i = 0; i < uni_array_len(steps); i++) {
		put_many(&l, steps[i]);
		assert_int_equal(look(&l, p), 0);
		check_same(&l, p);
	}
	end(&l);
}

/* The sum of a column of weights, and how many there are. */
static uint64_t weights(const char *data, size_t len, const char *name, uint64_t *nr_ret)
{
	uint32_t head = 0;
	const char *at = data + 8, *end_ = data + len;
	uint64_t sum = 0, v = 0, before = 0, bytes = 0;
	unsigned shift = 0;
	char key[40];
	char *text;

	for (size_t i = 0; i < 4; i++)
		head |= (uint32_t)(unsigned char)data[4 + i] << 8 * i;
	text = strndup(at, head);
	assert_non_null(text);
	(void)snprintf(key, sizeof(key), "{\"name\":\"%s\",", name);
	*nr_ret = 0;
	for (const char *c = strstr(text, "\"columns\""); c != NULL;
		c = strstr(c + 1, "{\"name\":\"")) {
		const char *b = strstr(c, "\"bytes\":");

		assert_non_null(b);
		if (strncmp(c, key, strlen(key)) == 0) {
			*nr_ret = strtoull(strstr(c, "\"nr\":") + 5, NULL, 10);
			bytes = strtoull(b + 8, NULL, 10);
			break;
		}
		if (c[0] == '{')
			before += strtoull(b + 8, NULL, 10);
	}
	at += head + before;
	assert_true(at + bytes <= end_);
	for (uint64_t i = 0; i < bytes; i++) {
		v |= (uint64_t)((unsigned char)at[i] & 0x7f) << shift;
		shift += 7;
		if (((unsigned char)at[i] & 0x80) == 0) {
			sum += v;
			v = shift = 0;
		}
	}
	free(text);
	return sum;
}

/* Bounded, in samples and in nodes: what they sum up to is the same. */
static void bounded(void **state)
{
	struct place *p = *state;
	uint64_t sum, nr, want = 0;
	struct live l;
	size_t len;

	for (int nodes = 0; nodes < 2; nodes++) {
		want = 0;
		begin(&l, p, (struct uni_page_whole){ 8000, 2000, nodes ? 40 : 65536 });
		for (int i = 0; i < 12; i++) {
			uint64_t from = l.n;
			char *data;

			put_many(&l, 1000 + (uint64_t)i * 77);
			for (uint64_t n = from; n < l.n; n++)
				want += 3 * (1 + n % 3);
			assert_int_equal(look(&l, p), 0);
			data = data_of(&l, uni_follow_recording(l.f), l.g, &len);
			sum = weights(data, len, "s.weight", &nr);
			assert_int_equal(sum, want);
			assert_true(nr > 0 && nr <= (nodes ? 2000 : 16000));
			free(data);
		}
		end(&l);
		(void)teardown(state);
		assert_int_equal(setup(state), 0);
		p = *state;
	}
}

/* One that is waited for, one that is not, and one that comes back then. */
static void late(void **state)
{
	struct place *p = *state;
	struct live l;

	begin(&l, p, (struct uni_page_whole){ 1000000, 250000, 65536 });
	put_many(&l, 10);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(uni_recording_stats(uni_follow_recording(l.f))->samples, 30);
	/* Two are ahead by two seconds: what they have waits for the third. */
	for (uint64_t n = 10; n < 2010; n++) {
		put_at(l.rec, n, 0);
		put_at(l.rec, n, 1);
	}
	assert_int_equal(uni_recorder_flush(l.rec, NULL), 0);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(uni_recording_stats(uni_follow_recording(l.f))->samples, 30);
	for (uint64_t n = 2010; n < 4010; n++) {
		put_at(l.rec, n, 0);
		put_at(l.rec, n, 1);
	}
	assert_int_equal(uni_recorder_flush(l.rec, NULL), 0);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(uni_recording_stats(uni_follow_recording(l.f))->samples, 30 + 8000);
	put_at(l.rec, 3000, 2);
	assert_int_equal(uni_recorder_flush(l.rec, NULL), 0);
	assert_int_equal(look(&l, p), -UNI_EAGAIN);
	end(&l);
}

/* Bytes that are no packet end their stream, and only that stream; a closed stream is read as a
 * whole. */
static void damaged(void **state)
{
	static const char junk[300] = "no packet";
	struct place *p = *state;
	struct live l;
	char name[128];
	int fd;

	begin(&l, p, (struct uni_page_whole){ 1000000, 250000, 65536 });
	put_many(&l, 10);
	assert_int_equal(look(&l, p), 0);
	(void)snprintf(name, sizeof(name), "%s/guest-0/samples-vcpu1", p->path);
	fd = open(name, O_WRONLY | O_APPEND);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, junk, 5), 5);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(uni_follow_torn(l.f), 0);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	(void)close(fd);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(uni_follow_torn(l.f), 1);
	for (uint64_t n = 10; n < 20; n++)
		put_at(l.rec, n, 0);
	assert_int_equal(uni_recorder_flush(l.rec, NULL), 0);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(close_with(l.rec, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
	l.rec = NULL;
	assert_int_equal(look(&l, p), -UNI_EAGAIN);
	end(&l);
	assert_int_equal(uni_follow_open(p->path, PATIENCE_NS, &l.f, &p->err), -UNI_ENOTSUP);
}

/* A packet is seen once its last byte is there, however much of it came before. */
static void half_a_packet(void **state)
{
	struct place *p = *state;
	uint8_t data[65536];
	ssize_t first, size;
	struct live l;
	char name[128];
	int fd;

	begin(&l, p, (struct uni_page_whole){ 1000000, 250000, 65536 });
	put_many(&l, 10);
	assert_int_equal(look(&l, p), 0);
	(void)snprintf(name, sizeof(name), "%s/guest-0/samples-vcpu1", p->path);
	fd = open(name, O_RDWR);
	assert_true(fd >= 0);
	first = pread(fd, data, sizeof(data), 0);
	put_many(&l, 10);
	size = pread(fd, data, sizeof(data), 0);
	assert_in_range(size, first + 100, sizeof(data) - 1);
	assert_int_equal(ftruncate(fd, first), 0);
	for (ssize_t there = first + 1; there < size; there += 7) {
		assert_int_equal(pwrite(fd, data, (size_t)there, 0), there);
		assert_int_equal(look(&l, p), 0);
		assert_int_equal(uni_follow_torn(l.f), 0);
		assert_in_range(uni_recording_stats(uni_follow_recording(l.f))->samples, 30, 59);
	}
	assert_int_equal(pwrite(fd, data, (size_t)size, 0), size);
	(void)close(fd);
	assert_int_equal(look(&l, p), 0);
	assert_int_equal(uni_recording_stats(uni_follow_recording(l.f))->samples, 60);
	assert_int_equal(uni_follow_torn(l.f), 0);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = { T(same_as_anew), T(bounded), T(late), T(damaged),
		T(half_a_packet) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
