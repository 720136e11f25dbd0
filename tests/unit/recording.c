/* SPDX-License-Identifier: BSD-2-Clause */
#include "session_place.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "elf_spec.h"
#include "obj/usym.h"

static void check_meta(const struct place *p, const struct uni_record_meta *meta)
{
	assert_string_equal(meta->target, p->meta.target);
	assert_string_equal(meta->arch, "x86_64");
	assert_string_equal(meta->command, "record \xef\xbf\xbd\xef\xbf\xbd[31m");
	assert_string_equal(meta->image_path, p->meta.image_path);
	assert_string_equal(meta->image_id, "1234ab");
	assert_true(meta->bias == p->meta.bias);
	assert_true(meta->frequency == 99.5);
	assert_int_equal(meta->nr_vcpus, 3);
	assert_int_equal(meta->info.pid, 77);
	assert_true(meta->realtime_offset_ns == p->meta.realtime_offset_ns);
}

static void check_watches(struct uni_recording *rec, const struct uni_watch *want)
{
	const struct uni_watch *gw = uni_recording_guest(rec, 0).watch;

	assert_int_equal(uni_recording_guest(rec, 0).nr_watch, 2);
	assert_string_equal(gw[0].name, "calls");
	assert_true(gw[0].gva == UINT64_MAX - 3);
	assert_memory_equal(gw[0].first, want->first, 4);
	assert_memory_equal(gw[0].last, want->last, 4);
	assert_int_equal(gw[0].t_last_ns, 2);
	assert_null(gw[1].first);
}

static void round_trip(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	uint8_t first[4] = { 1, 2, 3, 4 }, last[4] = { 5, 6, 7, 0xff };
	const struct uni_watch w[2] = { { .name = "calls",
						.gva = UINT64_MAX - 3,
						.size = 4,
						.t_first_ns = 1,
						.t_last_ns = 2,
						.first = first,
						.last = last },
		{ .name = "never", .size = 8 } };
	struct uni_record_stats stats = { .samples = 5,
		.ticks = 10000,
		.late = 1,
		.skipped = 2,
		.throttled = 3,
		.failed = 4,
		.truncated = 5,
		.guessed = 7,
		.weight = 10101,
		.lost = 6,
		.begin_ns = T0,
		.end_ns = T0 + 9,
		.unwind_ns = 8,
		.own_cpu_ns = 9 };
	struct uni_vcpu_times times[2] = { { 0 }, { 1, 2, 3, 4, 5, 6, 7, true } };
	struct uni_record_stats got;
	struct uni_recording *rec;
	struct count c = { .stop_at = 100 };
	uint64_t torn = 9;

	stats.stop[UNI_STOP_LOOP] = 11;
	stats.state[UNI_VCPU_HALTED] = 12;
	stats.state[UNI_VCPU_STOLEN] = 13;
	stats.squares[UNI_VCPU_STOLEN] = 169;
	stats.host_ns = 14;
	stats.host_runs = 15;
	stats.serve_ns = 16;
	stats.silent = 2;
	stats.nr_times = 2;
	stats.times = times;
	stats.pause = (struct uni_pause_stats){ 1, 2, 3, 4, 5 };
	for (uint64_t n = 0; n < 10000; n++)
		put(r, n);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	for (uint64_t n = 10000; n < 10100; n++)
		put(r, n);
	assert_int_equal(close_with(r, &stats, w, 2, &p->err), 0);
	assert_int_equal(read_all(p, true, &torn).nr, 10100);
	assert_int_equal(torn, 0);

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	check_meta(p, uni_recording_meta(rec));
	stats.samples = 10100; /* as written, not as taken */
	got = *uni_recording_guest(rec, 0).stats;
	assert_memory_equal(got.times, times, sizeof(times));
	got.times = times;
	assert_memory_equal(&got, &stats, sizeof(stats));
	check_watches(rec, w);
	assert_null(uni_recording_guest(rec, 0).symtab);
	assert_int_equal(uni_recording_each(rec, count, &c, NULL, &p->err), 5); /* passed on */
	assert_int_equal(c.nr, 100);
	uni_recording_close(rec);
	uni_recording_close(NULL);
}

static void symbols_travel(void **state)
{
	static const struct spec_sym syms[] = { { "main", 0x1000, 0x10, STT_FUNC, STB_GLOBAL,
		SPEC_TEXT } };
	const struct elf_spec spec = { .text = 0x1000,
		.data = 0x9000,
		.code_size = 0x40,
		.syms = syms,
		.nr_syms = 1,
		.build_id = "\x12\x34" };
	struct place *p = *state;
	struct uni_record_stats stats = { 0 };
	struct uni_recording *rec;
	struct uni_recorder *r;
	struct uni_image *img;
	struct elf_image e;
	const char *name;
	uint64_t off;

	p->meta.image_id[0] = '\0';
	r = create(p);
	elf_spec_write(&spec, &e);
	assert_int_equal(uni_image_from_memory("/k.elf", e.data, e.size, &img, &p->err), 0);
	assert_int_equal(uni_recorder_add_image(r, 0, img, &p->err), 0);
	uni_image_destroy(img);
	assert_int_equal(close_with(r, &stats, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_non_null(uni_recording_guest(rec, 0).symtab);
	assert_true(uni_symtab_lookup(uni_recording_guest(rec, 0).symtab, 0x1004, &name, &off));
	assert_string_equal(name, "main");
	assert_string_equal(uni_recording_meta(rec)->image_path, "/k.elf");
	uni_recording_close(rec);
}

static struct uni_image *image_of(const char *path, const char *function, const char *build_id)
{
	const struct spec_sym sym = { function, 0x1000, 0x10, STT_FUNC, STB_GLOBAL, SPEC_TEXT };
	const struct elf_spec spec = { .text = 0x1000,
		.data = 0x9000,
		.code_size = 0x40,
		.syms = &sym,
		.nr_syms = 1,
		.build_id = build_id };
	struct uni_image *img = NULL;
	struct elf_image e;

	elf_spec_write(&spec, &e);
	assert_int_equal(uni_image_from_memory(path, e.data, e.size, &img, NULL), 0);
	return img;
}

/* Two programs linked to the same addresses, in one guest. */
static void several_images_travel(void **state)
{
	struct place *p = *state;
	struct uni_image *kernel = image_of("/k.elf", "kmain", "\x12\x34");
	struct uni_image *app = image_of("/lib/app", "start", "\x56\x78");
	const uint64_t app_bias = 0x7f0000000000;
	struct uni_record_stats stats = { 0 };
	const struct uni_symtab *names, *part;
	const struct uni_record_meta *meta;
	struct uni_recording *rec;
	struct uni_recorder *r;
	const char *name;
	uint64_t off, svma;

	p->meta.image_id[0] = '\0';
	r = create(p);
	assert_int_equal(uni_recorder_add_image(r, 0, kernel, &p->err), 0);
	for (unsigned i = 1; i < UNI_IMAGES_MAX; i++)
		assert_int_equal(uni_recorder_add_more(r, 0, app, app_bias + i, &p->err), 0);
	assert_int_equal(uni_recorder_add_more(r, 0, app, 5, &p->err), -UNI_ERANGE);
	uni_image_destroy(kernel);
	uni_image_destroy(app);
	assert_int_equal(close_with(r, &stats, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	meta = uni_recording_meta(rec);
	assert_int_equal(meta->nr_more, UNI_IMAGES_MAX - 1);
	assert_string_equal(meta->more[0].path, "/lib/app");
	assert_int_equal(meta->more[2].bias, app_bias + 3);
	/* As all who name addresses do: by the main image's bias. */
	names = uni_recording_guest(rec, 0).symtab;
	assert_true(uni_symtab_lookup(names, 0x1004, &name, &off));
	assert_string_equal(name, "kmain");
	assert_true(uni_symtab_lookup(names, 0x1004 + app_bias + 1 - meta->bias, &name, &off));
	assert_string_equal(name, "start");
	assert_int_equal(off, 4);
	assert_false(uni_symtab_lookup(names, 0x5000, &name, &off));
	part = uni_symtab_part(names, 0x1004 + app_bias + 1 - meta->bias, &svma);
	assert_string_equal(uni_symtab_path(part), "/lib/app");
	assert_int_equal(svma, 0x1004);
	assert_string_equal(uni_symtab_path(uni_symtab_part(names, 0x5000, &svma)), "/k.elf");
	assert_string_equal(uni_symtab_id(names), "1234");
	uni_recording_close(rec);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(uni_write_full(fd, text, strlen(text)), 0);
	assert_int_equal(close(fd), 0);
}

static int try_create(struct place *p, const char *path, bool overwrite)
{
	struct uni_recorder *r = NULL;
	struct uni_record_stats stats = { 0 };
	int rc;

	p->err.code = 0;
	rc = uni_recorder_create(path, &p->meta, overwrite, &r, &p->err);
	return rc < 0 ? rc : close_with(r, &stats, NULL, 0, &p->err);
}

static void never_replaces_what_is_no_session(void **state)
{
	struct place *p = *state;
	char other[128], file[192];

	(void)snprintf(other, sizeof(other), "%s/other", p->dir);
	write_file(other, "precious");
	assert_int_equal(try_create(p, other, false), -UNI_EBUSY);
	assert_int_equal(try_create(p, other, true), -UNI_EBUSY); /* a file */
	assert_int_equal(access(other, F_OK), 0);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkdir(other, 0777), 0);
	(void)snprintf(file, sizeof(file), "%s/precious", other);
	write_file(file, "precious");
	assert_int_equal(try_create(p, other, true), -UNI_EBUSY); /* no session in it */
	assert_int_equal(unlink(file), 0);
	(void)snprintf(file, sizeof(file), "%s/session.json", other);
	write_file(file, "{\"format\": \"something else\"}");
	assert_int_equal(try_create(p, other, true), -UNI_EBUSY);
	assert_int_equal(try_create(p, "-", true), -UNI_EUSAGE);
	assert_int_equal(try_create(p, "", true), -UNI_EUSAGE);
	(void)snprintf(file, sizeof(file), "%s/no/such/parent", p->dir);
	assert_int_equal(try_create(p, file, true), -UNI_EIO);
	assert_non_null(strstr(p->err.msg, "parent"));
}

/* A recorder that is killed before it writes session.json leaves part of this. */
static void replaces_what_a_killed_recorder_left(void **state)
{
	static const char *const left[] = { "", "symbols/", "guest-0/", "guest-0/metadata.tmp-12",
		"guest-0/metadata", "symbols/12.usym.tmp-34", "session.json.tmp-56" };
	struct place *p = *state;
	char file[192];

	for (size_t nr = 0; nr <= sizeof(left) / sizeof(left[0]); nr++) {
		for (size_t i = 0; i < nr; i++) {
			(void)snprintf(file, sizeof(file), "%s/%s", p->path, left[i]);
			if (file[strlen(file) - 1] == '/')
				assert_true(mkdir(file, 0700) == 0 || errno == EEXIST);
			else
				write_file(file, "");
		}
		assert_int_equal(try_create(p, p->path, true), 0);
		(void)snprintf(file, sizeof(file), "%s/session.json", p->path);
		assert_int_equal(unlink(file), 0);
	}
	(void)snprintf(file, sizeof(file), "%s/guest-0/precious", p->path);
	write_file(file, "precious");
	assert_int_equal(try_create(p, p->path, true), -UNI_EBUSY);
	assert_non_null(strstr(p->err.msg, "is not a session"));
	assert_int_equal(access(file, F_OK), 0);
}

static void replaces_a_session_when_asked(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	struct uni_record_stats stats = { 0 };
	char file[128], link[128];

	for (uint64_t n = 0; n < 10; n++)
		put(r, n);
	/* Nobody may take the folder away from a running recorder. */
	assert_int_equal(try_create(p, p->path, true), -UNI_EBUSY);
	assert_non_null(strstr(p->err.msg, "being recorded"));
	assert_int_equal(close_with(r, &stats, NULL, 0, &p->err), 0);
	assert_int_equal(try_create(p, p->path, false), -UNI_EBUSY);
	assert_int_equal(read_all(p, true, NULL).nr, 10);

	/* A stranger inside: all is left as it is. */
	(void)snprintf(file, sizeof(file), "%s/guest-0/notes.txt", p->path);
	write_file(file, "precious");
	assert_int_equal(try_create(p, p->path, true), -UNI_EBUSY);
	assert_non_null(strstr(p->err.msg, "guest-0/notes.txt"));
	assert_int_equal(read_all(p, true, NULL).nr, 10);
	assert_int_equal(unlink(file), 0);

	/* Through a link it would be somebody else's folder. */
	(void)snprintf(link, sizeof(link), "%s/link", p->dir);
	assert_int_equal(symlink(p->path, link), 0);
	assert_int_equal(try_create(p, link, true), -UNI_EBUSY);

	assert_int_equal(try_create(p, p->path, true), 0);
	assert_int_equal(read_all(p, true, NULL).nr, 0);
}

static void unasked_samples_are_written_within_a_second(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	uint64_t begin = uni_now_ns();
	struct stat st = { 0 };
	char file[128];

	(void)snprintf(file, sizeof(file), "%s/guest-0/samples-vcpu0", p->path);
	put(r, 0);
	while (stat(file, &st) != 0 || st.st_size == 0) {
		assert_true(uni_now_ns() - begin < 60 * UNI_NSEC_PER_SEC); /* a busy machine */
		(void)usleep(20000);
	}
	assert_int_equal(read_all(p, false, NULL).nr, 1); /* open sessions are read as well */
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
}

static void lost_samples_are_counted(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	uint64_t pc = 1;
	struct uni_sample s = { .weight = 5, .vcpu = UNI_VCPU_MAX, .nr = 1, .pc = &pc };
	struct uni_recording *rec;

	uni_recorder_sample(r, &s); /* no such vCPU */
	s.vcpu = 0;
	s.stop = UNI_STOP_NR;
	uni_recorder_sample(r, &s); /* the layout has no word for it */
	s.guest = 1;
	uni_recorder_sample(r, &s); /* no such guest */
	assert_int_equal(uni_recorder_lost(r), 15);
	put(r, 0);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_stats(rec)->lost, 10);
	assert_int_equal(uni_recording_stats(rec)->samples, 1);
	uni_recording_close(rec);
}

/* A recorder that was killed wrote no sums: they are counted from the samples. */
static void those_of_an_open_session_too(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	uint64_t pc = 1;
	struct uni_sample s = { .weight = 5, .stop = UNI_STOP_NR, .nr = 1, .pc = &pc };
	struct uni_recording *rec;

	put(r, 0);
	uni_recorder_sample(r, &s); /* the layout has no word for it */
	put(r, 1);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_stats(rec)->samples, 2);
	assert_int_equal(uni_recording_stats(rec)->lost, 5);
	assert_int_equal(uni_recording_stats(rec)->exits_lost, 0);
	uni_recording_close(rec);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
}

/* One of the guests could not be recorded, and the session says why. */
static void a_failed_guest_says_why(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	const struct uni_record_stats stats = { .end_ns = 1 };
	const struct uni_guest_result result[2] = { { .stats = &stats },
		{ .stats = &stats, .failed = "no such map" } };
	struct uni_recording *rec;
	uint32_t number;

	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &number, &p->err), 0);
	assert_int_equal(uni_recorder_close(r, result, 2, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_string_equal(uni_recording_guest(rec, 0).meta->failed, "");
	assert_string_equal(uni_recording_guest(rec, 1).meta->failed, "no such map");
	uni_recording_close(rec);
}

static int count_vcpus(void *ctx, const struct uni_sample *s)
{
	((uint64_t *)ctx)[s->vcpu]++;
	return 0;
}

static void check_plugged(struct place *p, bool closed)
{
	uint64_t of[UNI_VCPU_MAX] = { 0 };
	struct uni_recording *rec;

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_was_closed(rec), closed);
	assert_int_equal(uni_recording_meta(rec)->nr_vcpus, 7);
	assert_int_equal(uni_recording_each(rec, count_vcpus, of, NULL, &p->err), 0);
	assert_int_equal(of[0], 1);
	assert_int_equal(of[4], 1000);
	assert_int_equal(of[6], 1);
	assert_int_equal(uni_recording_stats(rec)->samples, 1002);
	assert_int_equal(uni_recording_stats(rec)->lost, 0);
	uni_recording_close(rec);
}

/* vCPUs that nobody knew of at the beginning, of a session that is open and of one that is not. */
static void plugged_in_vcpus_are_written(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	uint64_t pc = 1;
	struct uni_sample s = { .t_ns = T0, .weight = 1, .vcpu = 4, .nr = 1, .pc = &pc };
	struct uni_vcpu_times times[7] = { [6] = { .guest_ns = 9 } };
	struct uni_record_stats stats = { .nr_times = 7, .times = times };

	put(r, 0);
	for (unsigned i = 0; i < 1000; i++)
		uni_recorder_sample(r, &s);
	s.vcpu = 6;
	uni_recorder_sample(r, &s);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	check_plugged(p, false);
	assert_int_equal(close_with(r, &stats, NULL, 0, &p->err), 0);
	check_plugged(p, true);
}

struct order {
	uint64_t t_ns;
	uint32_t vcpu;
	unsigned nr;
};

static int check_order(void *ctx, const struct uni_sample *s)
{
	struct order *last = ctx;

	assert_true(s->t_ns > last->t_ns || (s->t_ns == last->t_ns && s->vcpu >= last->vcpu));
	*last = (struct order){ s->t_ns, s->vcpu, last->nr + 1 };
	return 0;
}

/* By time, and among equal times by vCPU; each vCPU ends at another moment. */
static void vcpus_are_merged_by_time(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	struct uni_record_stats stats = { 0 };
	struct order last = { 0 };
	struct uni_recording *rec;
	uint64_t pc = 1;

	for (uint32_t v = 0; v < 37; v++) {
		struct uni_sample s = {
			.t_ns = T0, .weight = 1, .vcpu = v * 5 % 37, .nr = 1, .pc = &pc
		};

		for (uint32_t i = 0; i < 10 + s.vcpu * 7 % 11; i++) {
			s.t_ns += (s.vcpu + i * 3) % 4 * 10;
			uni_recorder_sample(r, &s);
			last.nr++;
		}
	}
	assert_int_equal(close_with(r, &stats, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	pc = last.nr;
	last.nr = 0;
	assert_int_equal(uni_recording_each(rec, check_order, &last, NULL, &p->err), 0);
	assert_int_equal(last.nr, pc);
	uni_recording_close(rec);
}

/* Nobody closed it, so nobody wrote which samples lie in the image: its names tell. */
static void samples_of_a_killed_recorder_have_their_places(void **state)
{
	struct place *p = *state;
	uint64_t pc[3] = { 0xfff0, 0x1005 + p->meta.bias, 0x9000 + p->meta.bias };
	struct uni_sample s = { .t_ns = T0, .weight = 3, .nr = 2, .pc = pc };
	const struct uni_record_stats *st;
	struct uni_recording *rec;
	struct uni_recorder *r;
	struct uni_image *img;

	p->meta.image_id[0] = '\0';
	r = create(p);
	img = image_of("/k.elf", "main", "\x12\x34");
	assert_int_equal(uni_recorder_add_image(r, 0, img, &p->err), 0);
	uni_image_destroy(img);
	uni_recorder_sample(r, &s); /* something unknown, called by main() */
	s.nr = 1;
	uni_recorder_sample(r, &s);
	s.pc = &pc[2];
	s.weight = 1;
	uni_recorder_sample(r, &s);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	st = uni_recording_stats(rec);
	assert_int_equal(st->inside, 3);
	assert_int_equal(st->outside, 4);
	assert_int_equal(st->firmware, 3);
	assert_true(st->outside_low == 0xfff0 && st->outside_high == pc[2]);
	uni_recording_close(rec);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
}

/* A session has files for so many vCPUs only, whichever guest they belong to. */
static void vcpus_are_bounded(void **state)
{
	struct place *p = *state;
	uint32_t number, guests = UNI_SESSION_VCPUS_MAX / UNI_VCPU_MAX;
	uint64_t pc = 1;
	struct uni_sample s = { .weight = 1, .vcpu = UNI_VCPU_MAX - 2, .nr = 1, .pc = &pc };
	struct uni_recording *rec;
	struct uni_recorder *r;

	p->meta.nr_vcpus = UNI_VCPU_MAX;
	r = create(p);
	for (uint32_t i = 2; i < guests; i++)
		assert_int_equal(uni_recorder_add_guest(r, &p->meta, &number, &p->err), 0);
	p->meta.nr_vcpus = 1;
	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &number, &p->err), 0);
	s.guest = number;
	uni_recorder_sample(r, &s); /* the last but one: room for one more */
	p->meta.nr_vcpus = 2;
	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &number, &p->err), -UNI_EINVAL);
	p->meta.nr_vcpus = 1;
	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &number, &p->err), 0);
	s.vcpu = UNI_VCPU_MAX - 1;
	uni_recorder_sample(r, &s);
	assert_int_equal(uni_recorder_lost(r), 1);
	assert_int_equal(uni_recorder_close(r, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_guest(rec, number - 1).meta->nr_vcpus, UNI_VCPU_MAX - 1);
	assert_int_equal(uni_recording_guest(rec, number - 1).stats->lost, 1);
	uni_recording_close(rec);
}

static void missing_session_is_one_clear_line(void **state)
{
	struct place *p = *state;
	struct uni_recording *rec;

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), -UNI_ENOENT);
	assert_non_null(strstr(p->err.msg, p->path));
}

/* Less than a tenth inside is no profile. */
static void elsewhere(void **state)
{
	static const struct {
		uint64_t inside, outside;
		bool want;
	} known[] = {
		{ 0, 0, false },
		{ 0, 1, true },
		{ 1, 8, false },
		{ 1, 9, false },
		{ 1, 10, true },
		{ 100, 901, true },
		{ UINT64_MAX, UINT64_MAX, false },
		{ UINT64_MAX / 9, UINT64_MAX, true },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct uni_record_stats st = { .inside = known[i].inside,
			.outside = known[i].outside };

		assert_true(uni_record_is_elsewhere(&st) == known[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(round_trip),
		T(symbols_travel),
		T(elsewhere),
		T(several_images_travel),
		T(never_replaces_what_is_no_session),
		T(replaces_what_a_killed_recorder_left),
		T(replaces_a_session_when_asked),
		T(unasked_samples_are_written_within_a_second),
		T(lost_samples_are_counted),
		T(those_of_an_open_session_too),
		T(a_failed_guest_says_why),
		T(plugged_in_vcpus_are_written),
		T(vcpus_are_merged_by_time),
		T(samples_of_a_killed_recorder_have_their_places),
		T(vcpus_are_bounded),
		T(missing_session_is_one_clear_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
