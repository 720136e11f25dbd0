/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "backend/kvm/bpfcheck.h"
#include "backend/kvm/rights.h"
#include "backend/kvm/ways.h"

#define CAP_NONE  "0000000000000000"
#define CAP_BOTH  "000000c000000000" /* 38 and 39 */
#define CAP_BPF	  "0000008000000000"
#define CAP_ADMIN "0000000000200000"

/* A made-up host that can do all, before a test takes something away. */
struct place {
	char root[64];
	struct uni_kvm_bpf_host h;
};

static void put_bytes(const struct place *p, const char *name, const void *data, size_t size)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s%s", p->root, name);
	for (char *s = path + strlen(p->root) + 1; (s = strchr(s, '/')) != NULL; s++) {
		*s = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*s = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void put(const struct place *p, const char *name, const char *text)
{
	put_bytes(p, name, text, strlen(text));
}

static void drop(const struct place *p, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s%s", p->root, name);
	assert_int_equal(unlink(path), 0);
}

/* most: what a process can ever get. */
static void limited_caps(
	const struct place *p, const char *effective, const char *most, int seccomp)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		"Name:\tuniscope\nCapPrm:\tffffffffffffffff\nCapEff:\t%s\nCapBnd:\t%s\n"
		"Seccomp:\t%d\n",
		effective, most, seccomp);
	put(p, "/proc/self/status", text);
}

static void caps(const struct place *p, const char *effective, int seccomp)
{
	limited_caps(p, effective, "000001ffffffffff", seccomp);
}

static const char btf[] = "\0task_struct\0kvm_vcpu\0BPF_FUNC_loop\0BPF_FUNC_x";

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->root, sizeof(p->root), "/tmp/uniscope-hostway-XXXXXX");
	assert_non_null(mkdtemp(p->root));
	p->h = (struct uni_kvm_bpf_host){ .root = p->root,
		.exe = "/opt/uniscope",
		.uid = 1000,
		.release = "6.1.0-18-amd64",
		.memlock_bytes = 8 << 20 };
	caps(p, CAP_BOTH, 0);
	put(p, "/proc/self/uid_map", "         0          0 4294967295\n");
	put(p, "/proc/sys/kernel/cap_last_cap", "40\n");
	put(p, "/proc/sys/kernel/perf_event_paranoid", "3\n");
	put(p, "/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
	put(p, "/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	put_bytes(p, "/sys/kernel/btf/vmlinux", btf, sizeof(btf));
	*state = p;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct place *p = *state;

	(void)nftw(p->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

/* The way fails, for this fact, and the advice holds this text. */
static void refused(const struct place *p, const char *fact, const char *text)
{
	struct uni_host_way w;
	bool found = false;

	uni_kvm_bpf_judge(&p->h, &w);
	assert_false(w.ok);
	if (strstr(w.advice, text) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", text, w.advice);
	for (uint32_t i = 0; i < w.nr; i++) {
		if (strcmp(w.fact[i].name, fact) == 0) {
			assert_false(w.fact[i].ok);
			found = true;
		} else {
			assert_true(w.fact[i].ok); /* one cause, one complaint */
		}
	}
	assert_true(found);
}

static void permitted(const struct place *p)
{
	struct uni_host_way w;

	uni_kvm_bpf_judge(&p->h, &w);
	if (!w.ok)
		fail_msg("%s", w.advice);
	assert_string_equal(w.advice, "");
	assert_string_equal(w.name, "kvm-bpf");
	assert_true(w.nr >= 8);
}

static void a_host_that_permits_it(void **state)
{
	struct place *p = *state;

	permitted(p);
	caps(p, CAP_ADMIN, 0);
	permitted(p);
	/* A missing file forbids nothing. */
	drop(p, "/sys/kernel/security/lockdown");
	drop(p, "/proc/self/uid_map");
	permitted(p);
}

static void each_kernel_option(void **state)
{
	static const char no_loop[] = "\0kvm_vcpu\0BPF_FUNC_loops";
	static const char no_kvm[] = "\0kvm_vcpu_arch\0BPF_FUNC_loop";
	struct place *p = *state;

	p->h.absent = "clang was missing";
	refused(p, "build", "clang was missing");
	p->h.absent = NULL;
	p->h.prog_errno = ENOSYS;
	refused(p, "bpf", "CONFIG_BPF_SYSCALL");
	p->h.prog_errno = EINVAL;
	refused(p, "perf events", "CONFIG_BPF_EVENTS");
	p->h.prog_errno = 0;
	p->h.event_errno = ENOSYS;
	refused(p, "perf events", "CONFIG_PERF_EVENTS");
	p->h.event_errno = 0;
	put_bytes(p, "/sys/kernel/btf/vmlinux", no_loop, sizeof(no_loop));
	refused(p, "bpf_loop", "5.17");
	put_bytes(p, "/sys/kernel/btf/vmlinux", no_kvm, sizeof(no_kvm));
	refused(p, "kvm types", "not loaded");
	put(p, "/sys/module/kvm/initstate", "live\n");
	refused(p, "kvm types", "CONFIG_DEBUG_INFO_BTF_MODULES");
	put(p, "/sys/kernel/btf/kvm", "x");
	permitted(p);
	drop(p, "/sys/kernel/btf/vmlinux");
	refused(p, "btf", "CONFIG_DEBUG_INFO_BTF=y");
}

static void each_capability(void **state)
{
	struct place *p = *state;

	/* The trials fail, too, and say nothing more. */
	p->h.prog_errno = EPERM;
	p->h.event_errno = EACCES;
	caps(p, CAP_NONE, 0);
	refused(p, "capabilities",
		"CAP_BPF and CAP_PERFMON are missing: run as root, or once: setcap "
		"cap_bpf,cap_perfmon+ep /opt/uniscope");
	/* Root of a container has nothing that it could run as; nor would root or setcap help
	 * others. */
	p->h.uid = 0;
	refused(p, "capabilities",
		"CAP_BPF and CAP_PERFMON are missing: this container or service runs without: "
		"start it with --cap-add, or run uniscope on the host");
	p->h.uid = 1000;
	limited_caps(p, CAP_NONE, CAP_BPF, 0);
	refused(p, "capabilities",
		"CAP_BPF and CAP_PERFMON are missing: this container or service runs without");
	caps(p, CAP_BPF, 0);
	refused(p, "capabilities", "CAP_PERFMON is missing");
	caps(p, "0000004000000000", 0);
	refused(p, "capabilities", "CAP_BPF is missing");
	/* A kernel from before they were split off. */
	put(p, "/proc/sys/kernel/cap_last_cap", "37\n");
	caps(p, CAP_NONE, 0);
	refused(p, "capabilities",
		"CAP_SYS_ADMIN (Linux 6.1.0-18-amd64 knows no CAP_BPF) is missing: run as root");
	caps(p, CAP_ADMIN, 0);
	p->h.prog_errno = p->h.event_errno = 0;
	permitted(p);
}

static void what_forbids_it_all_the_same(void **state)
{
	struct place *p = *state;

	p->h.event_errno = EACCES;
	refused(p, "event", "sysctl -w kernel.perf_event_paranoid=2");
	p->h.event_errno = EMFILE;
	refused(p, "event", strerror(EMFILE));
	p->h.event_errno = 0;
	p->h.refused = "the kernel's verifier refuses the program uni_files: too large";
	refused(p, "program", "uni_files: too large");
	p->h.refused = "";
	permitted(p);
	p->h.prog_errno = EPERM;
	refused(p, "program", "kernel.unprivileged_bpf_disabled is 2");
	caps(p, CAP_BOTH, 2);
	refused(p, "program", "seccomp");
	put(p, "/proc/self/uid_map", "         0       1000          1\n");
	refused(p, "user namespace", "on the host");
	put(p, "/proc/self/uid_map", "         0          0 4294967295\n");
	p->h.prog_errno = 0;
	put(p, "/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	refused(p, "lockdown", "lockdown=integrity");
}

static void locked_memory_of_old_kernels(void **state)
{
	struct place *p = *state;

	p->h.release = "5.10.0-28-amd64";
	refused(p, "memlock", "RLIMIT_MEMLOCK is 8192 KiB");
	p->h.memlock_bytes = UINT64_MAX;
	permitted(p);
	p->h.memlock_bytes = 65536;
	caps(p, "000000c001000000", 0); /* with CAP_SYS_RESOURCE the limit can be lifted */
	permitted(p);
	caps(p, CAP_BOTH, 0);
	p->h.release = "5.11.0";
	permitted(p);
}

static void all_causes_are_named(void **state)
{
	struct place *p = *state;
	struct uni_host_way w;

	caps(p, CAP_NONE, 0);
	p->h.prog_errno = p->h.event_errno = EPERM;
	put(p, "/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	uni_kvm_bpf_judge(&p->h, &w);
	assert_false(w.ok);
	assert_non_null(strstr(w.advice, "lockdown"));
	assert_non_null(strstr(w.advice, "; CAP_BPF"));
}

static const struct uni_host_fact *fact(const struct uni_host_way *w, const char *name)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		if (strcmp(w->fact[i].name, name) == 0)
			return &w->fact[i];
	}
	fail_msg("no %s", name);
	return NULL;
}

static void the_pausing_method(void **state)
{
	struct place *p = *state;
	struct uni_kvm_pause_host h = { .root = p->root, .asked = true, .sync_regs = 7 };
	struct uni_host_way w = { 0 };

	put(p, "/proc/self/schedstat", "123 45 6\n");
	uni_kvm_pause_facts(&h, &w);
	assert_int_equal(w.nr, 4);
	for (uint32_t i = 0; i < w.nr; i++)
		assert_true(w.fact[i].ok);

	w.nr = 0;
	put(p, "/proc/self/schedstat", "0 0 0\n");
	put(p, "/proc/sys/kernel/yama/ptrace_scope", "1\n");
	h.sync_regs = 0;
	h.getfd_errno = ENOSYS;
	uni_kvm_pause_facts(&h, &w);
	for (uint32_t i = 0; i < w.nr; i++)
		assert_false(w.fact[i].ok);
	assert_non_null(strstr(fact(&w, "ptrace")->text, "this container"));
	assert_non_null(strstr(fact(&w, "ptrace")->text, "kernel.yama.ptrace_scope=0"));
	assert_non_null(strstr(fact(&w, "pidfd_getfd")->text, "5.6"));

	w.nr = 0;
	h.privileged = true;
	uni_kvm_pause_facts(&h, &w);
	assert_true(fact(&w, "ptrace")->ok);
	w.nr = 0;
	put(p, "/proc/sys/kernel/yama/ptrace_scope", "3\n"); /* nor may root */
	uni_kvm_pause_facts(&h, &w);
	assert_false(fact(&w, "ptrace")->ok);
}

static bool has_fact(const struct uni_host_way *w, const char *name)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		if (strcmp(w->fact[i].name, name) == 0)
			return true;
	}
	return false;
}

/* A container that is not given the device, and one that sees its own processes only. */
static void what_a_container_hides(void **state)
{
	struct place *p = *state;
	struct uni_kvm_pause_host h = { .root = p->root };
	struct uni_host_way w = { 0 };

	put(p, "/proc/misc", "231 snapshot\n232 xkvm\n");
	assert_false(uni_kvm_is_there(p->root));
	uni_kvm_pause_facts(&h, &w);
	assert_false(has_fact(&w, "device") || has_fact(&w, "processes"));
	put(p, "/proc/misc", "231 snapshot\n232 kvm\n");
	assert_true(uni_kvm_is_there(p->root));
	h.inner = true;
	w.nr = 0;
	uni_kvm_pause_facts(&h, &w);
	assert_non_null(strstr(fact(&w, "device")->text, "--device /dev/kvm"));
	assert_non_null(strstr(fact(&w, "processes")->text, "--pid=host"));
	drop(p, "/proc/misc");
	put(p, "/dev/kvm", "");
	assert_true(uni_kvm_is_there(p->root));
	w.nr = 0;
	uni_kvm_pause_facts(&h, &w);
	assert_false(has_fact(&w, "device"));
}

/* Not permitted, in these words. */
static void not_for_us(const struct uni_kvm_rights *r, const char *text)
{
	struct uni_err err = { 0 };

	assert_int_equal(uni_kvm_rights_judge(r, &err), -UNI_EPERM);
	if (strstr(err.msg, text) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", text, err.msg);
}

/* CAP_BPF and CAP_PERFMON are for the kernel; a VMM's process is guarded by others. */
static void whose_process_it_is(void **state)
{
	const uint64_t ptrace = 1u << 19, search = 1u << 2;
	struct uni_kvm_rights r = { .pid = 4121, .mine = 1000, .theirs = 1000 };
	struct place *p = *state;
	struct uni_host_way w;

	not_for_us(&r, "hides itself, and CAP_SYS_PTRACE is missing");
	r.files = true;
	r.scope = '1';
	not_for_us(&r, "kernel.yama.ptrace_scope is 1 and CAP_SYS_PTRACE is missing");
	r.scope = '3';
	r.caps = ptrace;
	not_for_us(&r, "nobody may trace until the next boot");
	r.trace = true;
	assert_int_equal(uni_kvm_rights_judge(&r, NULL), 0);

	r = (struct uni_kvm_rights){ .pid = 4121, .mine = 1000, .caps = 3ull << 38 };
	not_for_us(&r, "it belongs to uid 0, this is uid 1000, and CAP_SYS_PTRACE and "
		       "CAP_DAC_READ_SEARCH are missing");
	not_for_us(&r, "missing: run as that user or as root");
	r.mine = 0;
	r.theirs = 1000;
	not_for_us(&r, "missing: this container");
	r.mine = 1000;
	r.withheld = true;
	not_for_us(&r, "missing: this container");
	r.withheld = false;
	r.theirs = 0;
	r.caps = ptrace;
	not_for_us(&r, "and CAP_DAC_READ_SEARCH is missing");
	r.caps = search;
	not_for_us(&r, "and CAP_SYS_PTRACE is missing");
	r.caps = ptrace | search;
	not_for_us(&r, "although the capabilities are there");

	p->h.uid = 1000;
	uni_kvm_bpf_judge(&p->h, &w);
	assert_true(w.ok);
	assert_non_null(strstr(fact(&w, "processes")->text, "VMMs of uid 1000 only"));
	caps(p, "000000c000080004", 0);
	uni_kvm_bpf_judge(&p->h, &w);
	assert_string_equal(fact(&w, "processes")->text, "VMMs of every user");
}

static void what_vm_exits_need(void **state)
{
	struct place *p = *state;
	struct uni_host_way bpf = { .ok = true }, w;

	uni_kvm_exits_judge(p->root, &bpf, "", &w);
	assert_true(w.ok); /* a KVM in software */
	put(p, "/sys/module/kvm_amd/initstate", "live\n");
	put(p, "/sys/kernel/tracing/README", "");
	drop(p, "/sys/kernel/tracing/README"); /* the empty folder to mount it on */
	uni_kvm_exits_judge(p->root, &bpf, "", &w);
	assert_false(w.ok);
	assert_non_null(strstr(w.advice, "mount -t tracefs"));
	put(p, "/sys/kernel/tracing/events/sched/enable", "0\n");
	uni_kvm_exits_judge(p->root, &bpf, "", &w);
	assert_false(w.ok);
	assert_non_null(strstr(w.advice, "CONFIG_TRACEPOINTS"));
	put(p, "/sys/kernel/tracing/events/kvm/kvm_exit/id", "1234\n");
	uni_kvm_exits_judge(p->root, &bpf, "", &w);
	assert_true(w.ok);
	uni_kvm_exits_judge(p->root, &bpf, "too large", &w);
	assert_false(w.ok);
	assert_string_equal(w.advice, "too large");
	bpf.ok = false;
	uni_kvm_exits_judge(p->root, &bpf, "", &w);
	assert_false(w.ok);
	assert_false(fact(&w, "sampler")->ok);
	assert_true(fact(&w, "trace points")->ok);
}

static void hostile_texts(void **state)
{
	struct place *p = *state;
	struct uni_host_way w;

	put(p, "/proc/self/status", "CapEff:\tzzz\nSeccomp:");
	put(p, "/proc/self/uid_map", "");
	put(p, "/proc/sys/kernel/cap_last_cap", "");
	put(p, "/sys/kernel/security/lockdown", "\x1b[31m");
	p->h.release = "";
	uni_kvm_bpf_judge(&p->h, &w);
	assert_true(w.ok); /* the trials worked: that counts */
	assert_null(strchr(fact(&w, "lockdown")->text, '\x1b'));
}

static void this_host_gives_an_answer(void **state)
{
	struct uni_err err = { 0 };
	struct uni_host_way w;
	struct uni_err exits = { 0 };
	int rc = uni_kvm_bpf_check(&err);

	uni_kvm_bpf_way(&w, &exits);
	if (rc != 0) {
		assert_string_equal(err.msg, w.advice);
	} else {
		assert_non_null(fact(&w, "program"));
		assert_int_equal(fact(&w, "program")->ok, w.ok);
	}
}

int main(void)
{
#define WITH_PLACE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_PLACE(a_host_that_permits_it),
		WITH_PLACE(each_kernel_option),
		WITH_PLACE(each_capability),
		WITH_PLACE(what_forbids_it_all_the_same),
		WITH_PLACE(locked_memory_of_old_kernels),
		WITH_PLACE(all_causes_are_named),
		WITH_PLACE(the_pausing_method),
		WITH_PLACE(what_a_container_hides),
		WITH_PLACE(whose_process_it_is),
		WITH_PLACE(what_vm_exits_need),
		WITH_PLACE(hostile_texts),
		cmocka_unit_test(this_host_gives_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
