/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions after a crash, on a full disk, and damaged on purpose. */
#include "session_place.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/io.h"
#include "recording/ctf.h"
#include "recording/sjson.h"

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
	/* The recorder's words before it died are there too. */
	while (read(fd, &n, sizeof(n)) == sizeof(n))
		;
	(void)close(fd);
	c = read_all(p, false, &torn);
	assert_true(c.nr >= n + 1);
	assert_true(torn <= 3);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	st = uni_recording_stats(rec);
	assert_int_equal(st->samples, c.nr);
	assert_in_range(st->ticks, c.nr / 3, c.nr / 3 + 100);
	assert_int_equal(st->pause.nr, c.nr);
	assert_true(st->truncated >= c.nr / 10);
	assert_int_equal(st->stop[UNI_STOP_FAULT], st->truncated);
	assert_in_range(st->pause.p50_ns, 1000, 1050);
	uni_recording_close(rec);
	/* The lock died with it. */
	assert_int_equal(uni_recorder_create(p->path, &p->meta, true, &r, &p->err), 0);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
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
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
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
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
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
	rc = close_with(r, &(struct uni_record_stats){ .weight = 100000 }, NULL, 0, &p->err);
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
	assert_int_equal(uni_recording_stats(rec)->weight, 2 * c.nr); /* as in the streams */
	assert_int_equal(uni_recording_stats(rec)->lost, 2 * (50000 - c.nr)); /* by weight */
	uni_recording_close(rec);
}

static const char sound[] =
	"{\"format\": \"uniscope-session\", \"version\": 1, \"state\": \"open\",\n"
	"\"guests\": [{\"folder\": \"guest-0\", \"trace_layout\": 1, \"nr_vcpus\": 2,\n"
	"\"trace_uuid\": \"12345678-0102-4304-8506-0708090a0bff\",\n"
	"\"images\": [{\"id\": \"12ab\", \"bias\": \"0x10\"}],\n"
	"\"model\": \"lab\", \"threads\": [{\"id\": 1, \"name\": \"a\", \"object\": \"0x20\"},\n"
	"{\"id\": 2, \"number\": 5}],\n"
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
		uni_session_free_parsed(s);
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
		{ "\"nr_vcpus\": 2", "\"nr_vcpus\": 1025" },
		{ "\"nr_vcpus\": 2", "\"nr_vcpus\": 0" },
		{ "\"nr_vcpus\": 2", "\"nr_vcpus\": \"2\"" },
		{ "guest-0", "../guest-0" },
		{ "12ab", "../../etc/passwd" },
		{ "12ab", "" },
		{ "0x10", "0x10000000000000000" },
		{ "\"open\"", "\"ajar\"" },
		{ "4304", "43" },
		{ "\"trace_layout\": 1", "\"trace_layout\": 4" },
		{ "\"trace_layout\": 1", "\"trace_layout\": 0" },
		{ "[{\"folder\"", "[{\"folder\": 1, \"folder\"" },
		{ "}]}]}", "}]}]" },
		{ "uniscope-session", "other" },
		{ "\"id\": 2", "\"id\": 3" },
		{ "\"id\": 2", "\"id\": \"2\"" },
		{ "\"name\": \"a\"", "\"name\": 1" },
		{ "0x20", "x20" },
		{ "\"number\": 5", "\"number\": -5" },
		{ "\"threads\": [", "\"threads\": 1, \"other\": [" },
		{ "\"lab\"", "7" },
	};
	struct uni_err err = { 0 };

	assert_int_equal(parse_with("00ff", "ffff", &err), 0);
	for (size_t i = 0; i < uni_array_len(swaps); i++) {
		if (parse_with(swaps[i][0], swaps[i][1], &err) != -UNI_EFORMAT)
			fail_msg("accepted: %s", swaps[i][1]);
		assert_true(err.msg[0] != '\0');
	}
	assert_int_equal(parse_with("\"version\": 1", "\"version\": 2", &err), 0);
	assert_int_equal(parse_with("\"version\": 1", "\"version\": 3", &err), -UNI_ENOTSUP);
	assert_int_equal(parse_with("\"version\": 1", "\"version\": 0", &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, "version 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(survives_sigkill),
		T(torn_tail_is_counted),
		T(corrupt_packet_is_passed_over),
		T(full_disk_loses_samples_not_the_session),
		T(corrupt_json_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
