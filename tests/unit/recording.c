/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "elf_spec.h"
#include "obj/usym.h"
#include "session/ctf.h"
#include "session/recording.h"
#include "session/sjson.h"

#define T0 5000000000ull

/* A folder of our own with the name of a session in it that does not exist yet. */
struct place {
	char dir[32], path[64];
	struct uni_err err;
	struct uni_record_meta meta;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return 1;
	*state = p;
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/uni-rec-XXXXXX");
	if (mkdtemp(p->dir) == NULL)
		return 1;
	(void)snprintf(p->path, sizeof(p->path), "%s/a.uniscope", p->dir);
	(void)snprintf(p->meta.target, sizeof(p->meta.target), "gdb:unix=/run/q");
	(void)snprintf(p->meta.arch, sizeof(p->meta.arch), "x86_64");
	(void)snprintf(p->meta.command, sizeof(p->meta.command), "record \xff\x1b[31m");
	(void)snprintf(p->meta.image_path, sizeof(p->meta.image_path), "/boot/k \"x\".elf");
	(void)snprintf(p->meta.image_id, sizeof(p->meta.image_id), "1234ab");
	p->meta.bias = 0xffffffff80000000ull;
	p->meta.nr_vcpus = 3;
	p->meta.frequency = 99.5;
	p->meta.info.pid = 77;
	p->meta.realtime_offset_ns = 1700000000000000001ull;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	char cmd[64];
	pid_t pid = fork();

	if (pid == 0) {
		(void)snprintf(cmd, sizeof(cmd), "%s", p->dir);
		(void)execlp("rm", "rm", "-rf", cmd, (char *)NULL);
		_exit(1);
	}
	(void)waitpid(pid, NULL, 0);
	free(p);
	return 0;
}

static struct uni_recorder *create(struct place *p)
{
	struct uni_recorder *r = NULL;

	assert_int_equal(uni_recorder_create(p->path, &p->meta, false, &r, &p->err), 0);
	return r;
}

/* Sample n: one each ms, vCPU n % 3, chain and stop reason from n. */
static void put(struct uni_recorder *r, uint64_t n)
{
	uint64_t pc[8] = { 0x1000 + n % 100, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000, 0x7000,
		0x8000 };
	uint8_t flags[8] = { 0, UNI_FRAME_GUESS };
	struct uni_sample s = { .t_ns = T0 + n * UNI_NSEC_PER_MSEC,
		.weight = 1,
		.vcpu = (uint32_t)(n % 3),
		.pause_ns = (uint32_t)(1000 + n % 50),
		.stop = n % 10 == 0 ? UNI_STOP_FAULT : UNI_STOP_ROOT,
		.nr = (uint16_t)(1 + n % 8),
		.pc = pc,
		.flags = flags };

	uni_recorder_sample(r, &s);
}

struct count {
	uint64_t nr, wrong, last_ns, stop_at;
};

static int count(void *ctx, const struct uni_sample *s)
{
	struct count *c = ctx;
	uint64_t n = (s->t_ns - T0) / UNI_NSEC_PER_MSEC;

	if (s->t_ns < c->last_ns || s->vcpu != n % 3 || s->nr != 1 + n % 8 ||
		s->pc[0] != 0x1000 + n % 100 || s->pause_ns != 1000 + n % 50)
		c->wrong++;
	if (s->nr > 1 && (s->pc[1] != 0x2000 || s->flags[1] != UNI_FRAME_GUESS))
		c->wrong++;
	c->last_ns = s->t_ns;
	return ++c->nr == c->stop_at ? 5 : 0;
}

/* Opens and reads it all; wrong samples fail the test. */
static struct count read_all(struct place *p, bool closed, uint64_t *torn_ret)
{
	struct uni_recording *r = NULL;
	struct count c = { 0 };

	assert_int_equal(uni_recording_open(p->path, &r, &p->err), 0);
	assert_int_equal(uni_recording_was_closed(r), closed);
	assert_int_equal(uni_recording_each(r, count, &c, torn_ret, &p->err), 0);
	assert_int_equal(c.wrong, 0);
	uni_recording_close(r);
	return c;
}

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
	const struct uni_watch *gw;

	assert_int_equal(uni_recording_watches(rec, &gw), 2);
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
		.lost = 6,
		.begin_ns = T0,
		.end_ns = T0 + 9,
		.unwind_ns = 8,
		.own_cpu_ns = 9 };
	const struct uni_record_stats *got;
	struct uni_recording *rec;
	struct count c = { .stop_at = 100 };
	uint64_t torn = 9;

	stats.stop[UNI_STOP_LOOP] = 11;
	stats.pause = (struct uni_pause_stats){ 1, 2, 3, 4, 5 };
	for (uint64_t n = 0; n < 10000; n++)
		put(r, n);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	for (uint64_t n = 10000; n < 10100; n++)
		put(r, n);
	assert_int_equal(uni_recorder_close(r, &stats, w, 2, &p->err), 0);
	assert_int_equal(read_all(p, true, &torn).nr, 10100);
	assert_int_equal(torn, 0);

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	check_meta(p, uni_recording_meta(rec));
	stats.samples = 10100; /* as written, not as taken */
	got = uni_recording_stats(rec);
	assert_memory_equal(got, &stats, sizeof(stats));
	check_watches(rec, w);
	assert_null(uni_recording_symtab(rec));
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
	assert_int_equal(uni_recorder_add_image(r, img, &p->err), 0);
	uni_image_destroy(img);
	assert_int_equal(uni_recorder_close(r, &stats, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_non_null(uni_recording_symtab(rec));
	assert_true(uni_symtab_lookup(uni_recording_symtab(rec), 0x1004, &name, &off));
	assert_string_equal(name, "main");
	assert_string_equal(uni_recording_meta(rec)->image_path, "/k.elf");
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
	return rc < 0 ? rc : uni_recorder_close(r, &stats, NULL, 0, &p->err);
}

static void never_replaces_what_is_no_session(void **state)
{
	struct place *p = *state;
	char other[128], file[192];

	(void)snprintf(other, sizeof(other), "%s/other", p->dir);
	(void)snprintf(file, sizeof(file), "%s/session.json", other);
	write_file(other, "precious");
	assert_int_equal(try_create(p, other, false), -UNI_EBUSY);
	assert_int_equal(try_create(p, other, true), -UNI_EBUSY); /* a file */
	assert_int_equal(access(other, F_OK), 0);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkdir(other, 0777), 0);
	assert_int_equal(try_create(p, other, true), -UNI_EBUSY); /* no session in it */
	write_file(file, "{\"format\": \"something else\"}");
	assert_int_equal(try_create(p, other, true), -UNI_EBUSY);
	assert_int_equal(try_create(p, "-", true), -UNI_EUSAGE);
	assert_int_equal(try_create(p, "", true), -UNI_EUSAGE);
	(void)snprintf(file, sizeof(file), "%s/no/such/parent", p->dir);
	assert_int_equal(try_create(p, file, true), -UNI_EIO);
	assert_non_null(strstr(p->err.msg, "parent"));
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
	assert_int_equal(uni_recorder_close(r, &stats, NULL, 0, &p->err), 0);
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

/* Records in a child until it is killed; each second sample number goes through the pipe. */
static pid_t fork_recorder(struct place *p, int *fd_ret)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct uni_recorder *r = create(p);

		for (uint64_t n = 0;; n++) {
			put(r, n);
			if (n % 100 == 99)
				(void)uni_recorder_flush(r, NULL);
			if (n % 100 == 99 && write(fds[1], &n, sizeof(n)) != sizeof(n))
				_exit(1);
		}
	}
	(void)close(fds[1]);
	*fd_ret = fds[0];
	return pid;
}

static void survives_sigkill(void **state)
{
	struct place *p = *state;
	uint64_t n = 0, torn = 0, want = 2000;
	struct uni_recording *rec;
	const struct uni_record_stats *st;
	struct uni_recorder *r = NULL;
	struct count c;
	int fd;
	pid_t pid = fork_recorder(p, &fd);

	while (n < want && read(fd, &n, sizeof(n)) == sizeof(n))
		;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	/* What the recorder said before it died is there too. */
	while (read(fd, &n, sizeof(n)) == sizeof(n))
		;
	(void)close(fd);
	c = read_all(p, false, &torn);
	assert_true(c.nr >= n + 1);
	assert_true(torn <= 3);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	st = uni_recording_stats(rec);
	assert_int_equal(st->samples, c.nr);
	assert_true(st->truncated >= c.nr / 10);
	assert_int_equal(st->stop[UNI_STOP_FAULT], st->truncated);
	assert_in_range(st->pause.p50_ns, 1000, 1050);
	uni_recording_close(rec);
	/* The lock died with it. */
	assert_int_equal(uni_recorder_create(p->path, &p->meta, true, &r, &p->err), 0);
	assert_int_equal(uni_recorder_close(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
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
		assert_true(uni_now_ns() - begin < 10 * UNI_NSEC_PER_SEC); /* a busy machine */
		(void)usleep(20000);
	}
	assert_int_equal(read_all(p, false, NULL).nr, 1); /* open sessions are read as well */
	assert_int_equal(uni_recorder_close(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
}

static void torn_tail_is_counted(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	char file[128];
	struct stat st;
	uint64_t torn;

	for (uint64_t n = 0; n < 300; n++) {
		put(r, n);
		if (n % 100 == 99)
			assert_int_equal(uni_recorder_flush(r, NULL), 0);
	}
	assert_int_equal(uni_recorder_close(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
	(void)snprintf(file, sizeof(file), "%s/guest-0/samples-vcpu1", p->path);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(truncate(file, st.st_size - 1), 0);
	assert_int_equal(read_all(p, true, &torn).nr, 300 - 33);
	assert_int_equal(torn, 1);
	assert_int_equal(truncate(file, 40), 0); /* not even a header */
	assert_int_equal(read_all(p, true, &torn).nr, 200);
	assert_int_equal(torn, 1);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0666), 0); /* must not hang */
	{
		struct uni_recording *rec;
		struct count c = { 0 };

		assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
		assert_int_equal(uni_recording_each(rec, count, &c, NULL, &p->err), -UNI_EFORMAT);
		uni_recording_close(rec);
	}
}

/* A corrupt packet in the middle costs that packet, not what follows. */
static void corrupt_packet_is_passed_over(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	struct uni_ctf_header h;
	char file[128], *data;
	uint64_t torn;
	size_t size;
	int fd;

	for (uint64_t n = 0; n < 300; n++) {
		put(r, n);
		if (n % 100 == 99)
			assert_int_equal(uni_recorder_flush(r, NULL), 0);
	}
	assert_int_equal(uni_recorder_close(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
	(void)snprintf(file, sizeof(file), "%s/guest-0/samples-vcpu0", p->path);
	assert_int_equal(uni_read_file(file, 1 << 20, &data, &size, NULL), 0);
	assert_int_equal(uni_ctf_header_parse(data, size, &h), 0);
	assert_true(h.packet_size < size);
	fd = open(file, O_WRONLY);
	assert_int_equal(pwrite(fd, "\xff", 1, UNI_CTF_HEADER_SIZE), 1); /* an event id */
	assert_int_equal(read_all(p, true, &torn).nr, 300 - 34);
	assert_int_equal(torn, 1);
	/* A packet of another trace with a fitting size. */
	assert_int_equal(pwrite(fd, data + UNI_CTF_HEADER_SIZE, 1, UNI_CTF_HEADER_SIZE), 1);
	assert_int_equal(read_all(p, true, &torn).nr, 300);
	assert_int_equal(pwrite(fd, "\xff\xff", 2, 4), 2);
	assert_int_equal(read_all(p, true, &torn).nr, 300 - 34);
	assert_int_equal(torn, 1);
	(void)close(fd);
	free(data);
}

static void lost_samples_are_counted(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create(p);
	uint64_t pc = 1;
	struct uni_sample s = { .vcpu = 3, .nr = 1, .pc = &pc };
	struct uni_recording *rec;

	uni_recorder_sample(r, &s); /* no such vCPU */
	s.vcpu = 0;
	s.stop = UNI_STOP_NR;
	uni_recorder_sample(r, &s); /* the layout has no word for it */
	assert_int_equal(uni_recorder_lost(r), 2);
	put(r, 0);
	assert_int_equal(uni_recorder_close(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_stats(rec)->lost, 2);
	assert_int_equal(uni_recording_stats(rec)->samples, 1);
	uni_recording_close(rec);
}

/* A full disk, played by a file-size limit (which must not kill us either). */
static int record_on_a_full_disk(struct place *p)
{
	const struct rlimit limit = { 100000, 100000 };
	struct uni_recorder *r;
	int rc;

	(void)signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 77;
	r = create(p);
	for (uint64_t n = 0; n < 50000; n++) {
		put(r, n);
		if (n % 1000 == 0)
			(void)uni_recorder_flush(r, NULL);
	}
	rc = uni_recorder_close(r, &(struct uni_record_stats){ 0 }, NULL, 0, &p->err);
	return rc == -UNI_EIO && strstr(p->err.msg, "samples lost") != NULL ? 0 : 1;
}

static void full_disk_loses_samples_not_the_session(void **state)
{
	struct place *p = *state;
	struct uni_recording *rec;
	uint64_t torn;
	struct count c;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(record_on_a_full_disk(p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	c = read_all(p, true, &torn);
	assert_int_equal(torn, 0);
	assert_in_range(c.nr, 1000, 20000);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_stats(rec)->samples, c.nr);
	assert_int_equal(uni_recording_stats(rec)->lost, 50000 - c.nr);
	uni_recording_close(rec);
}

static const char sound[] =
	"{\"format\": \"uniscope-session\", \"version\": 1, \"state\": \"open\",\n"
	"\"guests\": [{\"folder\": \"guest-0\", \"trace_layout\": 1, \"nr_vcpus\": 2,\n"
	"\"trace_uuid\": \"12345678-0102-4304-8506-0708090a0bff\",\n"
	"\"images\": [{\"id\": \"12ab\", \"bias\": \"0x10\"}],\n"
	"\"watches\": [{\"size\": 2, \"first\": {\"t_ns\": 1, \"bytes\": \"00ff\"}}]}]}";

/* The sound text with one part replaced. */
static int parse_with(const char *from, const char *to, struct uni_err *err)
{
	struct uni_session *s = calloc(1, sizeof(*s));
	const char *at = strstr(sound, from);
	char text[1024];
	int n, rc;

	assert_non_null(s);
	assert_non_null(at);
	n = snprintf(
		text, sizeof(text), "%.*s%s%s", (int)(at - sound), sound, to, at + strlen(from));
	err->code = 0;
	rc = uni_session_parse(text, (size_t)n, s, err);
	if (rc == 0)
		uni_session_deinit(s);
	free(s);
	return rc;
}

static void corrupt_json_is_refused(void **state)
{
	static const char *const swaps[][2] = {
		{ "00ff", "00fg" },
		{ "00ff", "00f" },
		{ "\"size\": 2", "\"size\": 0" },
		{ "\"size\": 2", "\"size\": 4294967298" },
		{ "\"size\": 2", "\"size\": -2" },
		{ "\"size\": 2", "\"size\": 99999999999999999999" },
		{ "\"nr_vcpus\": 2", "\"nr_vcpus\": 65" },
		{ "\"nr_vcpus\": 2", "\"nr_vcpus\": 0" },
		{ "\"nr_vcpus\": 2", "\"nr_vcpus\": \"2\"" },
		{ "guest-0", "../guest-0" },
		{ "12ab", "../../etc/passwd" },
		{ "12ab", "" },
		{ "0x10", "0x10000000000000000" },
		{ "\"open\"", "\"ajar\"" },
		{ "4304", "43" },
		{ "\"trace_layout\": 1", "\"trace_layout\": 2" },
		{ "[{\"folder\"", "[{\"folder\": 1, \"folder\"" },
		{ "}]}]}", "}]}]" },
		{ "uniscope-session", "other" },
	};
	struct uni_err err = { 0 };

	assert_int_equal(parse_with("00ff", "ffff", &err), 0);
	for (size_t i = 0; i < uni_array_len(swaps); i++) {
		if (parse_with(swaps[i][0], swaps[i][1], &err) != -UNI_EFORMAT)
			fail_msg("accepted: %s", swaps[i][1]);
		assert_true(err.msg[0] != '\0');
	}
	assert_int_equal(parse_with("\"version\": 1", "\"version\": 2", &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, "version 2"));
}

static void missing_session_is_one_clear_line(void **state)
{
	struct place *p = *state;
	struct uni_recording *rec;

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), -UNI_ENOENT);
	assert_non_null(strstr(p->err.msg, p->path));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(round_trip),
		T(symbols_travel),
		T(never_replaces_what_is_no_session),
		T(replaces_a_session_when_asked),
		T(survives_sigkill),
		T(unasked_samples_are_written_within_a_second),
		T(torn_tail_is_counted),
		T(corrupt_packet_is_passed_over),
		T(lost_samples_are_counted),
		T(full_disk_loses_samples_not_the_session),
		T(corrupt_json_is_refused),
		T(missing_session_is_one_clear_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
