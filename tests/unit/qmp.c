/* SPDX-License-Identifier: BSD-2-Clause */
/* The QMP client: messages, and a monitor that misbehaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/vmm/qmp.h"

/* Nobody waits for ever; a busy host lets all wait for seconds. */
#define WITHIN_NS (20 * UNI_NSEC_PER_SEC)

#define GREETING "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n"
#define OK	 "{\"return\": {}}\r\n"

static struct uni_qmp_message parse(const char *text)
{
	struct uni_qmp_message m;

	assert_int_equal(uni_qmp_parse(text, strlen(text), &m), 0);
	return m;
}

static void kinds(void **state)
{
	static const struct {
		const char *text;
		enum uni_qmp_kind kind;
	} good[] = {
		{ GREETING, UNI_QMP_GREETING },
		{ OK, UNI_QMP_RETURN },
		{ "{\"event\": \"STOP\"}", UNI_QMP_EVENT },
		{ "{\"error\": {\"class\": \"x\", \"desc\": \"no\\u0007 \"}}", UNI_QMP_ERROR },
		{ "{}", UNI_QMP_OTHER },
	};
	static const char *const bad[] = { "", "x", "[]", "1", "{", "{\"a\":}", "{\"a\":1}}",
		"\xff{}", "{\"a\":\"\xff\"}" };
	struct uni_qmp_message m;

	for (size_t i = 0; i < uni_array_len(good); i++) {
		m = parse(good[i].text);
		assert_int_equal(m.kind, good[i].kind);
		assert_null(strchr(m.desc, '\a'));
		uni_qmp_message_free(&m);
	}
	for (size_t i = 0; i < uni_array_len(bad); i++)
		assert_int_equal(uni_qmp_parse(bad[i], strlen(bad[i]), &m), -UNI_EFORMAT);
}

static int hva_of(const char *json, uint64_t *ret)
{
	struct uni_qmp_message m = parse(json);
	int rc = uni_qmp_take_gpa2hva(&m, ret);

	uni_qmp_message_free(&m);
	return rc;
}

static void addresses(void **state)
{
	uint64_t v = 7;

	assert_int_equal(hva_of("{\"return\": \"Host virtual address for 0x200000 (microvm.ram) is "
				"0x7f12345678a0\\r\\n\"}",
				 &v),
		0);
	assert_true(v == 0x7f12345678a0);
	assert_int_equal(
		hva_of("{\"return\": \"No memory is mapped at address 0xf000\\r\\n\"}", &v),
		-UNI_EFAULT);
	assert_int_equal(
		hva_of("{\"return\": \"Host virtual address for 0 (a) is 0x\"}", &v), -UNI_EPROTO);
	assert_int_equal(
		hva_of("{\"return\": \"Host virtual address for 0 (a) is 0x12345678901234567\"}",
			&v),
		-UNI_EPROTO);
	assert_int_equal(hva_of("{\"return\": 5}", &v), -UNI_EPROTO);
	assert_int_equal(hva_of("{\"error\": {}}", &v), -UNI_EPROTO);
	assert_true(v == 0x7f12345678a0);
}

static void values(void **state)
{
	struct uni_qmp_message m;
	bool running = false;
	char text[8];

	m = parse("{\"return\": {\"status\": \"running, and much more\", \"running\": true}}");
	assert_int_equal(uni_qmp_take_status(&m, &running, text, sizeof(text)), 0);
	assert_true(running);
	assert_string_equal(text, "running");
	uni_qmp_message_free(&m);
	m = parse("{\"return\": {\"name\": \"a\\u001bb\"}}");
	assert_int_equal(uni_qmp_take_name(&m, text, sizeof(text)), 0);
	assert_null(strchr(text, 27));
	assert_int_equal(uni_qmp_take_status(&m, &running, NULL, 0), -UNI_EPROTO);
	uni_qmp_message_free(&m);
}

/* A monitor that answers each line by the next of its texts, then hangs up. */
struct monitor {
	char dir[32], path[48];
	const char *text[8]; /* [0]: unasked */
	bool silent;	     /* hangs instead of hanging up */
	int fd;
	pthread_t thread;
};

static void *monitor_main(void *arg)
{
	struct monitor *m = arg;
	int fd = accept(m->fd, NULL, NULL);
	char c;

	for (int i = 0; m->text[i] != NULL; i++) {
		size_t len = strlen(m->text[i]);

		if (i > 0) {
			while (recv(fd, &c, 1, 0) == 1 && c != '\n')
				;
		}
		/* In two parts: messages do not come whole. */
		(void)!send(fd, m->text[i], len / 2, MSG_NOSIGNAL);
		(void)usleep(2000);
		(void)!send(fd, m->text[i] + len / 2, len - len / 2, MSG_NOSIGNAL);
	}
	while (m->silent && recv(fd, &c, 1, 0) == 1)
		;
	(void)close(fd);
	return NULL;
}

static void monitor_start(struct monitor *m)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	memcpy(m->dir, "/tmp/uni-qmp-XXXXXX", 20);
	assert_non_null(mkdtemp(m->dir));
	(void)snprintf(m->path, sizeof(m->path), "%s/q", m->dir);
	memcpy(un.sun_path, m->path, sizeof(m->path));
	m->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(m->fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(m->fd, 1), 0);
	assert_int_equal(pthread_create(&m->thread, NULL, monitor_main, m), 0);
}

static void monitor_join(struct monitor *m)
{
	(void)pthread_join(m->thread, NULL);
	(void)close(m->fd);
	(void)unlink(m->path);
	(void)rmdir(m->dir);
}

static void a_talk(void **state)
{
	struct monitor m = { .text = { GREETING, OK,
				     "{\"event\": \"RESUME\"}\r\n{\"return\": {\"running\": false, "
				     "\"status\": \"paused\"}}\r\n",
				     "{\"error\": {\"desc\": \"no\"}}\r\n",
				     "{\"return\": \"Host virtual address for 0x1000 (ram) is "
				     "0xabc000\"}\r\n" } };
	struct uni_err err = { 0 };
	struct uni_qmp *q = NULL;
	bool running = true;
	uint64_t hva;
	char name[8];

	monitor_start(&m);
	assert_int_equal(uni_qmp_open(m.path, 1000, &q, &err), 0);
	assert_int_equal(uni_qmp_status(q, &running, NULL, 0), 0);
	assert_false(running);
	assert_int_equal(uni_qmp_name(q, name, sizeof(name)), -UNI_ENOTSUP);
	assert_int_equal(uni_qmp_gpa2hva(q, 0x1000, &hva), 0);
	assert_true(hva == 0xabc000);
	assert_int_equal(uni_qmp_gpa2hva(q, 0x1000, &hva), -UNI_EGONE);
	uni_qmp_close(q);
	monitor_join(&m);
}

static void bad_monitors(void **state)
{
	static const struct {
		const char *first, *second;
		bool silent;
		int code;
	} bad[] = {
		{ NULL, NULL, true, UNI_EBUSY },
		{ NULL, NULL, false, UNI_EGONE },
		{ "SSH-2.0-OpenSSH\r\n", NULL, true, UNI_EPROTO },
		{ "{\"return\": {}}\n", NULL, true, UNI_EPROTO },
		{ GREETING, "{\"error\": {}}\n", true, UNI_ENOTSUP },
		{ GREETING, "[[[[\n", true, UNI_EPROTO },
		{ GREETING, NULL, true, UNI_ETIMEDOUT },
	};

	for (size_t i = 0; i < uni_array_len(bad); i++) {
		struct monitor m = { .silent = bad[i].silent,
			.text = { bad[i].first, bad[i].second } };
		uint64_t begin_ns = uni_now_ns();
		struct uni_err err = { 0 };
		struct uni_qmp *q = NULL;

		monitor_start(&m);
		assert_int_equal(uni_qmp_open(m.path, 300, &q, &err), -bad[i].code);
		assert_int_equal(err.code, bad[i].code);
		assert_null(q);
		assert_true(uni_now_ns() - begin_ns < WITHIN_NS);
		monitor_join(&m);
	}
}

/* A line that never ends must not grow without end. */
static void endless_line(void **state)
{
	char *flood = malloc(2 * UNI_QMP_MESSAGE_MAX);
	struct monitor m = { .text = { flood } };
	struct uni_err err = { 0 };
	struct uni_qmp *q = NULL;

	assert_non_null(flood);
	memset(flood, ' ', 2 * UNI_QMP_MESSAGE_MAX);
	flood[2 * UNI_QMP_MESSAGE_MAX - 1] = '\0';
	monitor_start(&m);
	assert_int_equal(uni_qmp_open(m.path, 2000, &q, &err), -UNI_EPROTO);
	monitor_join(&m);
	free(flood);
}

static void nobody_there(void **state)
{
	struct uni_err err = { 0 };
	struct uni_qmp *q = NULL;

	assert_int_equal(uni_qmp_open("/nonexistent/q", 0, &q, &err), -UNI_ENOENT);
	err = (struct uni_err){ 0 };
	assert_int_equal(uni_qmp_open("", 0, &q, &err), -UNI_EUSAGE);
	uni_qmp_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(addresses),
		cmocka_unit_test(values),
		cmocka_unit_test(a_talk),
		cmocka_unit_test(bad_monitors),
		cmocka_unit_test(endless_line),
		cmocka_unit_test(nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
