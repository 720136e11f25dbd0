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
	static const struct {
		const char *json;
		int rc;
		uint64_t gpa;
	} cases[] = {
		{ "{\"return\":\"gpa: 0x40000000\\r\\n\"}", 0, 0x40000000 },
		{ "{\"return\":\"Unmapped\\r\\n\"}", -UNI_EFAULT, 0 },
		{ "{\"return\":\"unknown command: 'gva2gpa'\\r\\n\"}", -UNI_EFAULT, 0 },
		{ "{\"return\":\"gpa: 0x\\r\\n\"}", -UNI_EPROTO, 0 },
		{ "{\"return\":\"gpa: 0x11223344556677889\"}", -UNI_EPROTO, 0 },
		{ "{\"return\":{}}", -UNI_EPROTO, 0 },
	};

	(void)state;
	for (size_t i = 0; i < uni_array_len(cases); i++) {
		struct uni_qmp_message m = parse(cases[i].json);
		uint64_t gpa = 0;

		assert_int_equal(uni_qmp_take_gva2gpa(&m, &gpa), cases[i].rc);
		assert_int_equal(gpa, cases[i].gpa);
		uni_qmp_message_free(&m);
	}
}

/* A message of the largest size, and one that is a blank longer. */
static void messages_have_a_limit(void **state)
{
	static char text[UNI_QMP_MESSAGE_MAX + 1];
	struct uni_qmp_message m;

	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"return\":{}}", 13);
	assert_int_equal(uni_qmp_parse(text, UNI_QMP_MESSAGE_MAX, &m), 0);
	uni_qmp_message_free(&m);
	assert_int_equal(uni_qmp_parse(text, sizeof(text), &m), -UNI_EFORMAT);
}

static void physical_addresses(void **state)
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
static void events(void **state)
{
	struct uni_qmp_message m;
	struct uni_qmp_event e;

	m = parse("{\"timestamp\": {\"seconds\": 17, \"microseconds\": 5}, \"event\": "
		  "\"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-\\u0007reset\"}}");
	assert_int_equal(uni_qmp_take_event(&m, &e), 0);
	assert_string_equal(e.name, "SHUTDOWN");
	assert_null(strchr(e.reason, '\a'));
	assert_int_equal(e.wall_ns, 17000005000);
	uni_qmp_message_free(&m);
	m = parse("{\"timestamp\": {\"seconds\": 9223372036854775807, \"microseconds\": -1}, "
		  "\"event\": \"GUEST_PANICKED\", \"data\": {\"action\": \"pause\"}}");
	assert_int_equal(uni_qmp_take_event(&m, &e), 0);
	assert_string_equal(e.reason, "pause");
	assert_int_equal(e.wall_ns, 0);
	uni_qmp_message_free(&m);
	m = parse("{\"event\": 7}");
	assert_int_equal(uni_qmp_take_event(&m, &e), -UNI_EPROTO);
	uni_qmp_message_free(&m);
	m = parse(OK);
	assert_int_equal(uni_qmp_take_event(&m, &e), -UNI_EPROTO);
	uni_qmp_message_free(&m);
}

static int cpu_of(const char *json, struct uni_qmp_cpu *ret)
{
	struct uni_qmp_message m = parse(json);
	int rc = uni_qmp_take_cpu(&m, ret);

	uni_qmp_message_free(&m);
	return rc;
}

static void cpus(void **state)
{
	/* As QEMU 7.2 prints them. */
	static const char real_mode[] =
		"{\"return\": \"\\r\\nCPU#0\\r\\nEAX=00000000 EBX=00000000\\r\\nEIP=0000fff0 "
		"EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\\r\\nCS =f000 ffff0000 "
		"0000ffff "
		"00009b00\\r\\nCR0=60000010 CR2=00000000\\r\\n\"}";
	static const char long_mode[] =
		"{\"return\": \"RAX=0000000000000000\\r\\nRIP=ffffffff80201eb8 RFL=00010286 "
		"[--S--P-] "
		"CPL=0 II=0 A20=1 SMM=0 HLT=1\\r\\nCS =0008 0000000000000000 ffffffff 00a09b00 "
		"DPL=0 "
		"CS64 [-RA]\\r\\nCR0=80010033 CR2=0\\r\\n\"}";
	struct uni_qmp_cpu a, b;

	assert_int_equal(cpu_of(real_mode, &a), 0);
	assert_true(a.pc == 0xfffffff0 && !a.paging && !a.halted && !a.interrupts);
	assert_int_equal(cpu_of(long_mode, &b), 0);
	assert_true(b.pc == 0xffffffff80201eb8 && b.paging && b.halted && b.interrupts &&
		    a.key != b.key);
	assert_int_equal(cpu_of(long_mode, &a), 0);
	assert_true(a.key == b.key);
	assert_int_equal(cpu_of("{\"return\": \"PC=40000000 X00=1\"}", &a), -UNI_ENOTSUP);
	assert_int_equal(cpu_of("{\"return\": \"RIP= CR0=1\"}", &a), -UNI_ENOTSUP);
	assert_int_equal(cpu_of(OK, &a), -UNI_EPROTO);
}

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

static void devices(void **state)
{
	struct uni_qmp_message m =
		parse("{\"return\": [{\"label\": \"gdb\"}, {\"label\": 7}, 3,"
		      "{\"label\": \"on\", \"filename\": \"unix:\"},"
		      "{\"label\": \"off\", \"filename\": \"disconnected:fd:a\"}]}");

	assert_int_equal(uni_qmp_take_chardev(&m, "gdb"), UNI_QMP_CHARDEV_USED);
	assert_int_equal(uni_qmp_take_chardev(&m, "gd"), UNI_QMP_CHARDEV_NONE);
	assert_int_equal(uni_qmp_take_chardev(&m, "on"), UNI_QMP_CHARDEV_USED);
	assert_int_equal(uni_qmp_take_chardev(&m, "off"), UNI_QMP_CHARDEV_LEFT);
	uni_qmp_message_free(&m);
	m = parse(OK);
	assert_int_equal(uni_qmp_take_chardev(&m, "gdb"), UNI_QMP_CHARDEV_NONE);
	uni_qmp_message_free(&m);
}

/* The stub that somebody switched on; how QEMU names its socket depends on whether it has a client.
 */
static void stubs(void **state)
{
	static const struct {
		const char *filename, *keys; /* NULL: none that can be reached */
	} c[] = {
		{ "disconnected:unix:/run/q.sock,server=on", "unix=/run/q.sock" },
		{ "unix:q.sock,server=on <-> ", "unix=q.sock" },
		{ "disconnected:tcp:0.0.0.0:1234,server=on", "tcp=127.0.0.1:1234" },
		{ "disconnected:tcp::1234,server=on", "tcp=127.0.0.1:1234" },
		{ "disconnected:tcp::::1234,server=on", "tcp=127.0.0.1:1234" },
		{ "disconnected:tcp:[::]:1234,server=on", "tcp=127.0.0.1:1234" },
		{ "tcp:10.0.0.2:99,server=on <-> 10.0.0.3:41000", "tcp=10.0.0.2:99" },
		{ "disconnected:tcp:[::1]:1234,server=on", "tcp=[::1]:1234" },
		{ "unix:", NULL },
		{ "tcp:1234", NULL },
		{ "pty:/dev/pts/3", NULL },
		{ "", NULL },
	};
	char text[256], keys[64];

	for (size_t i = 0; i < uni_array_len(c); i++) {
		struct uni_qmp_message m;

		(void)snprintf(text, sizeof(text),
			"{\"return\": [{\"label\": \"x\", \"filename\": \"unix:/x\"}, "
			"{\"label\": \"gdb\", \"filename\": \"%s\"}]}",
			c[i].filename);
		m = parse(text);
		assert_int_equal(uni_qmp_take_gdb(&m, keys, sizeof(keys)), c[i].keys != NULL);
		if (c[i].keys != NULL)
			assert_string_equal(keys, c[i].keys);
		assert_false(uni_qmp_take_gdb(&m, keys, 8));
		uni_qmp_message_free(&m);
	}
}

struct heard {
	char all[128];
};

static void take_name(void *ctx, const struct uni_qmp_event *e)
{
	struct heard *h = ctx;
	size_t len = strlen(h->all);

	(void)snprintf(h->all + len, sizeof(h->all) - len, "%s ", e->name);
}

/* Asks until the other side has hung up: what it sent before is handed over all the same. */
static void events_of_a_talk(void **state)
{
	struct monitor m = { .text = { GREETING, OK,
				     "{\"event\": \"RESUME\"}\r\n{\"return\": {}}\r\n"
				     "{\"event\": \"STOP\"}\r\n{\"event\": \"SHUTDOWN\"}\r\n" } };
	struct uni_err err = { 0 };
	struct uni_qmp *q = NULL;
	struct heard heard = { 0 };
	int rc = 0;

	monitor_start(&m);
	assert_int_equal(uni_qmp_open(m.path, 0, &q, &err), 0);
	uni_qmp_on_event(q, take_name, &heard);
	assert_int_equal(uni_qmp_cont(q), 0);
	assert_string_equal(heard.all, "RESUME ");
	for (uint64_t until_ns = uni_now_ns() + WITHIN_NS; rc == 0 && uni_now_ns() < until_ns;)
		rc = uni_qmp_poll(q);
	assert_int_equal(rc, -UNI_EGONE);
	assert_string_equal(heard.all, "RESUME STOP SHUTDOWN ");
	uni_qmp_close(q);
	monitor_join(&m);
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

/* QEMU's -qmp-pretty. */
static void a_pretty_monitor(void **state)
{
	struct monitor m = {
		.text = { "{\r\n    \"QMP\": {\r\n        \"version\": {\r\n        }\r\n"
			  "    }\r\n}\r\n",
			"{\r\n    \"return\": {\r\n    }\r\n}\r\n",
			"{\r\n    \"return\": {\r\n        \"name\": \"a } \\\" { b\"\r\n"
			"    }\r\n}\r\n" }
	};
	struct uni_err err = { 0 };
	struct uni_qmp *q = NULL;
	char name[16];

	monitor_start(&m);
	assert_int_equal(uni_qmp_open(m.path, 1000, &q, &err), 0);
	assert_int_equal(uni_qmp_name(q, name, sizeof(name)), 0);
	assert_string_equal(name, "a } \" { b");
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
		cmocka_unit_test(physical_addresses),
		cmocka_unit_test(messages_have_a_limit),
		cmocka_unit_test(addresses),
		cmocka_unit_test(values),
		cmocka_unit_test(events),
		cmocka_unit_test(cpus),
		cmocka_unit_test(devices),
		cmocka_unit_test(stubs),
		cmocka_unit_test(a_talk),
		cmocka_unit_test(events_of_a_talk),
		cmocka_unit_test(a_pretty_monitor),
		cmocka_unit_test(bad_monitors),
		cmocka_unit_test(endless_line),
		cmocka_unit_test(nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
