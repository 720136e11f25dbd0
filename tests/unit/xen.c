/* SPDX-License-Identifier: BSD-2-Clause */
/* The xen: target against a hypervisor made up for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../support/vcpus.h"
#include "../support/xen.h"
#include "base/clock.h"
#include "backend/guard.h"
#include "backend/xen/store.h"
#include "backend/xen/xen.h"

#define FRAME(n)    ((HV_FIRST + (n)) * (uint64_t)HV_PAGE)
#define PRESENT	    7ull
#define LARGE	    (1ull << 7)
#define CODE_VA	    0xffffffff80200000ull
#define STACK_VA    0x00007fff00400000ull
#define CR0_PAGING  0x80000011ull
#define CR4_PAE	    0x20ull
#define PATIENCE_NS (10 * UNI_NSEC_PER_SEC)

static char dir[32];

static int set_up(void **state)
{
	hv_create();
	(void)snprintf(dir, sizeof(dir), "/tmp/xen-XXXXXX");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	bool clean = hv->buffers == 0 && hv->mapped == 0;
	int r = rmdir(dir); /* nothing may be left in it */

	hv_destroy();
	return clean && r == 0 ? 0 : -1;
}

/* Four levels of tables at frames 0 to 3, a stack page at frame 4. */
static void make_guest(bool hvm)
{
	hv->hvm = hvm;
	hv_put(FRAME(0) + 8 * (STACK_VA >> 39 & 511), FRAME(1) | PRESENT);
	hv_put(FRAME(1) + 8 * (STACK_VA >> 30 & 511), FRAME(2) | PRESENT);
	hv_put(FRAME(2) + 8 * (STACK_VA >> 21 & 511), FRAME(3) | PRESENT);
	hv_put(FRAME(3) + 8 * (STACK_VA >> 12 & 511), FRAME(4) | PRESENT);
	for (unsigned v = 0; v < HV_VCPUS; v++) {
		hv_ctx_put(v, 512, 1u << 5);			      /* online */
		hv_ctx_put(v, HV_CTX_REG + 4 * 8, STACK_VA + 16 + v); /* rbp */
		hv_ctx_put(v, HV_CTX_REG + 16 * 8, CODE_VA + v);      /* rip */
		hv_ctx_put(v, HV_CTX_REG + 19 * 8, STACK_VA + 8);     /* rsp */
		hv_ctx_put(v, HV_CTX_CR + 0 * 8, hvm ? CR0_PAGING : 0x8005003bull & ~CR0_PAGING);
		hv_ctx_put(v, HV_CTX_CR + 3 * 8, FRAME(0));
		hv_ctx_put(v, HV_CTX_CR + 4 * 8, hvm ? CR4_PAE : 0);
	}
}

static int attach(const char *text, struct uni_target **ret, struct uni_err *err)
{
	struct uni_spec spec;

	assert_int_equal(uni_spec_parse(text, &spec, err), 0);
	return uni_xen_attach_with(&hv_module, dir, &spec, ret, err);
}

static struct uni_target *attached(const char *text)
{
	struct uni_err err = { 0 };
	struct uni_target *t = NULL;

	assert_int_equal(attach(text, &t, &err), 0);
	return t;
}

static bool come_true(bool (*fn)(void))
{
	uint64_t until = uni_now_ns() + PATIENCE_NS;

	while (!fn() && uni_now_ns() < until)
		(void)usleep(1000);
	return fn();
}

static bool runs(void)
{
	return hv->pauses == 0;
}

static void finds_version(void **state)
{
	static const uint32_t versions[] = { 0x06, 0x0b, 0x15, 0x18, 0x20 };

	for (size_t i = 0; i < 5; i++) {
		struct uni_err err = { 0 };
		struct uni_xen_call *x = NULL;

		hv->version = versions[i];
		assert_int_equal(uni_xen_call_open(&hv_module, &x, &err), 0);
		assert_int_equal(uni_xen_call_version(x), versions[i]);
		uni_xen_call_close(x);
	}
	assert_int_equal(uni_xen_version_of_release(4, 6), 0x0b);
	assert_int_equal(uni_xen_version_of_release(4, 11), 0x10);
	assert_int_equal(uni_xen_version_of_release(4, 17), 0x15);
	assert_int_equal(uni_xen_version_of_release(4, 21), 0x17);
	assert_int_equal(uni_xen_version_of_release(4, 22), 0x18);
	assert_int_equal(uni_xen_version_of_release(4, 23), 0);
	assert_int_equal(uni_xen_version_of_release(4, 5), 0);
	assert_int_equal(uni_xen_version_of_release(5, 17), 0);
}

static void says_why_not(void **state)
{
	struct uni_err err = { 0 }, err2 = { 0 }, err3 = { 0 };
	struct uni_xen_call *x = NULL;

	hv->version = 0x40;
	assert_int_equal(uni_xen_call_open(&hv_module, &x, &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, "0x6 to 0x20"));
	hv->refuse = EPERM;
	assert_int_equal(uni_xen_call_open(&hv_module, &x, &err2), -UNI_EPERM);
	assert_non_null(strstr(err2.msg, "dom0"));
	hv->refuse = ENOSYS;
	assert_int_equal(uni_xen_call_open(&hv_module, &x, &err3), -UNI_ENOTSUP);
}

static void reads_stack(bool hvm)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_pause p;
	struct uni_as *as;
	struct uni_pt_root root;
	struct uni_target *t;
	uint64_t word;
	unsigned maps;

	make_guest(hvm);
	hv->never_started = 1u << 1;
	hv_put(FRAME(4) + 8, 0x1234);
	hv_put(FRAME(5) + 8, 0x5678);
	t = attached("xen:dom=7");
	assert_int_equal(t->ops->nr_vcpus(t), HV_VCPUS);
	assert_int_equal(uni_as_create(t->ops->gmem(t), &uni_as_budget_once, &as, NULL), 0);
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
	assert_int_equal(hv->pauses, 1);
	assert_int_equal(regs[0].state, UNI_VCPU_RUNNING);
	assert_int_equal(regs[1].state, UNI_VCPU_OFFLINE);
	assert_false(regs[1].pc_valid);
	assert_int_equal(regs[2].pc, CODE_VA + 2);
	assert_int_equal(regs[2].r[UNI_X86_RBP], STACK_VA + 18);
	assert_int_equal(t->arch->paging(&regs[0], &root), 0);
	assert_string_equal(root.geometry->name, "x86_64 4-level");
	uni_as_begin(as, &root);
	assert_int_equal(uni_as_read_u64(as, uni_gva_of(regs[0].sp), &word), 0);
	assert_int_equal(word, 0x1234);
	assert_int_equal(uni_pause_end(&p), 0);
	assert_int_equal(hv->pauses, 0);
	/* The same again: everything is mapped. But the guest has moved its stack elsewhere. */
	maps = hv->nr_maps;
	hv_put(FRAME(3) + 8 * (STACK_VA >> 12 & 511), FRAME(5) | PRESENT);
	uni_as_begin(as, &root);
	assert_int_equal(uni_as_read_u64(as, uni_gva_of(regs[0].sp), &word), 0);
	assert_int_equal(word, 0x5678);
	assert_int_equal(hv->nr_maps, maps + 1); /* frame 5 */
	uni_as_begin(as, &root);
	assert_int_equal(uni_as_read_u64(as, uni_gva_of(regs[0].sp), &word), 0);
	assert_int_equal(hv->nr_maps, maps + 1);
	/* A frame that is not the domain's. */
	hv_put(FRAME(3) + 8 * (STACK_VA >> 12 & 511), FRAME(HV_FRAMES) | PRESENT);
	uni_as_begin(as, &root);
	assert_int_equal(uni_as_read_u64(as, uni_gva_of(regs[0].sp), &word), -UNI_EFAULT);
	uni_as_destroy(as);
	uni_target_detach(t);
}

static void reads_pv(void **state)
{
	reads_stack(false);
}

static void reads_pvh(void **state)
{
	reads_stack(true);
}

/* Leaves of 2 MiB and 1 GiB, as PVH guests have them. */
static void reads_large_pages(void **state)
{
	const uint64_t big = FRAME(0) & ~0x1fffffull, huge = 0;
	struct uni_regs regs[HV_VCPUS];
	struct uni_pt_root root;
	struct uni_target *t;
	struct uni_as *as;
	uint64_t word, va;

	make_guest(true);
	hv_put(FRAME(7) + 0x18, 0x77);
	hv_put(FRAME(2) + 8 * (STACK_VA >> 21 & 511), big | PRESENT | LARGE);
	hv_put(FRAME(1) + 8 * ((STACK_VA >> 30 & 511) + 1), huge | PRESENT | LARGE);
	t = attached("xen:dom=web,pause=no");
	assert_int_equal(uni_as_create(t->ops->gmem(t), &uni_as_budget_once, &as, NULL), 0);
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
	assert_int_equal(t->arch->paging(&regs[0], &root), 0);
	uni_as_begin(as, &root);
	va = (STACK_VA & ~0x1fffffull) + FRAME(7) - big + 0x18;
	assert_true(uni_as_read_u64(as, uni_gva_of(va), &word) == 0 && word == 0x77);
	va = (STACK_VA & ~0x3fffffffull) + (1ull << 30) + FRAME(7) + 0x18;
	assert_true(uni_as_read_u64(as, uni_gva_of(va), &word) == 0 && word == 0x77);
	uni_as_destroy(as);
	uni_target_detach(t);
}

static void tells_the_rate(void **state)
{
	struct uni_target *t;

	make_guest(true);
	t = attached("xen:dom=7,pause=no");
	hv->tsc_khz = 2600000;
	assert_int_equal(t->ops->counter_hz(t), 2600000000);
	/* It reads the machine's counter, and has no rate of its own. */
	hv->tsc_mode = UNI_XEN_TSC_NATIVE;
	hv->machine_khz = 3100000;
	assert_int_equal(t->ops->counter_hz(t), 0); /* sysctl of an unknown version */
	hv->sysctl_version = 0x15;
	assert_int_equal(t->ops->counter_hz(t), 3100000000);
	uni_target_detach(t);
}

static void knows_who_waits(void **state)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_target *t;

	make_guest(true);
	hv->blocked = 1u << 1;
	t = attached("xen:dom=7,pause=no");
	assert_int_equal(t->ops->snap(t, VCPUS(7), regs, 0), 0);
	assert_int_equal(regs[0].state, UNI_VCPU_RUNNING);
	assert_int_equal(regs[1].state, UNI_VCPU_HALTED);
	/* It waits again, at the same place; another one has come to wait at a new one. */
	hv->blocked = 1u << 1 | 1u << 2;
	hv_ctx_put(2, HV_CTX_REG + 16 * 8, CODE_VA + 100);
	for (int i = 0; i < 2; i++)
		assert_int_equal(t->ops->snap(t, VCPUS(7), regs, 0), 0);
	assert_int_equal(regs[1].state, UNI_VCPU_HALTED);
	assert_int_equal(regs[2].state, UNI_VCPU_HALTED);
	/* And on. */
	hv_ctx_put(1, HV_CTX_REG + 16 * 8, CODE_VA + 200);
	assert_int_equal(t->ops->snap(t, VCPUS(7), regs, 0), 0);
	assert_int_equal(regs[1].state, UNI_VCPU_RUNNING);
	uni_target_detach(t);
}

/* If the code can be read, only a vCPU behind an instruction that waits is asked about. */
static void asks_where_it_may_wait(void **state)
{
	/* nop, nop, hlt; syscall; vmcall; vmmcall; nop */
	static const uint8_t code[] = { 0x90, 0x90, 0xf4, 0x0f, 0x05, 0x0f, 0x01, 0xc1, 0x0f, 0x01,
		0xd9, 0x90 };
	static const struct {
		uint8_t pc;
		bool asked;
	} at[] = { { 2, false }, { 3, true }, { 5, true }, { 8, true }, { 11, true },
		{ 12, false } };
	struct uni_regs regs[HV_VCPUS];
	struct uni_target *t;
	unsigned asked;

	make_guest(true);
	memcpy(hv->ram + 4 * HV_PAGE + 0x100, code, sizeof(code));
	hv->blocked = 1;
	t = attached("xen:dom=7,pause=no");
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		hv_ctx_put(0, HV_CTX_REG + 16 * 8, STACK_VA + 0x100 + at[i].pc);
		assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
		asked = hv->nr_asked;
		for (unsigned k = 1; k <= 2; k++) {
			assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
			assert_int_equal(hv->nr_asked, asked + (at[i].asked ? k : 0));
		}
		assert_int_equal(regs[0].state, at[i].asked ? UNI_VCPU_HALTED : UNI_VCPU_RUNNING);
	}
	uni_target_detach(t);
}

static void never_pauses(void **state)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_pause p;
	struct uni_target *t;

	make_guest(true);
	t = attached("xen:dom=7,pause=no");
	assert_false(t->ops->caps(t) & UNI_CAP_HOLD);
	assert_true(t->ops->caps(t) & UNI_CAP_NO_PAUSE);
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
	assert_int_equal(regs[1].pc, CODE_VA + 1);
	assert_int_equal(uni_pause_end(&p), 0);
	uni_target_detach(t);
	assert_int_equal(hv->nr_pauses, 0);
	assert_int_equal(hv->nr_unpauses, 0);
}

static void leaves_operators_pause(void **state)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_target_info info;
	struct uni_err err = { 0 };
	struct uni_pause p;
	struct uni_target *t;

	make_guest(true);
	hv->pauses = 1;
	t = attached("xen:dom=7");
	t->ops->info(t, &info);
	assert_string_equal(info.rest, "paused");
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
	assert_int_equal(regs[0].pc, CODE_VA);
	assert_int_equal(uni_pause_end(&p), 0);
	assert_int_equal(t->ops->may_sample(t, &err), -UNI_EBUSY);
	assert_non_null(strstr(err.msg, "xl unpause 7"));
	uni_target_detach(t);
	assert_int_equal(hv->pauses, 1);
	assert_int_equal(hv->nr_pauses, 0);
	hv->pauses = 0;
	/* In the middle of a run: no samples until it runs again. */
	t = attached("xen:dom=7");
	hv->pauses = 1;
	(void)usleep(110000);
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), -UNI_EAGAIN);
	assert_int_equal(hv->pauses, 1);
	hv->pauses = 0;
	(void)usleep(110000);
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
	assert_int_equal(uni_pause_end(&p), 0);
	t->ops->info(t, &info);
	assert_string_equal(info.rest, "");
	uni_target_detach(t);
	assert_int_equal(hv->pauses, 0);
}

static void ends_with_domain(bool *how, uint8_t reason, const char *text)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_target_info info;
	struct uni_pause p;
	struct uni_target *t;

	make_guest(true);
	t = attached("xen:dom=7");
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
	assert_int_equal(uni_pause_end(&p), 0);
	assert_true(t->ops->alive(t));
	assert_true(hv->mapped > 0);
	*how = true;
	hv->reason = reason;
	(void)usleep(110000);
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), -UNI_EGONE);
	assert_false(t->ops->alive(t));
	assert_int_equal(hv->mapped, 0); /* or it would be a zombie */
	t->ops->info(t, &info);
	assert_non_null(strstr(info.ended, "domain 7 (web)"));
	assert_non_null(strstr(info.ended, text));
	uni_target_detach(t);
	*how = false;
}

static void ends(void **state)
{
	ends_with_domain(&hv->dying, 0, "was destroyed");
	ends_with_domain(&hv->absent, 0, "was destroyed");
	ends_with_domain(&hv->shutdown, UNI_XEN_POWEROFF, "powered off");
	ends_with_domain(&hv->shutdown, UNI_XEN_CRASH, "crashed");
}

static void reads_preserved(void **state)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_target_info info;
	struct uni_pause p;
	struct uni_target *t;

	make_guest(true);
	hv->shutdown = true;
	hv->reason = UNI_XEN_CRASH;
	t = attached("xen:dom=7");
	assert_true(t->ops->caps(t) & UNI_CAP_DEAD);
	assert_true(t->ops->caps(t) & UNI_CAP_STILL);
	assert_int_equal(t->ops->may_sample(t, NULL), 0);
	assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
	assert_int_equal(uni_pause_end(&p), 0);
	assert_int_equal(hv->nr_pauses, 0);
	t->ops->info(t, &info);
	assert_non_null(strstr(info.note, "crashed"));
	assert_string_equal(info.rest, "crashed");
	uni_target_detach(t);
}

static void write_state(const struct uni_xen_state *s, char path[64])
{
	int fd;

	(void)snprintf(path, 64, "%s/xen-%u-x", dir, s->domid);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, s, sizeof(*s)), sizeof(*s));
	(void)close(fd);
}

static void heals(void **state)
{
	struct uni_xen_state s = { .domid = HV_DOMID, .since_ns = 12345 };
	struct uni_err err = { 0 };
	struct uni_xen_call *x = NULL;
	uint32_t domid = 0;
	char path[64];
	int fd;

	memcpy(s.magic, UNI_XEN_STATE_MAGIC, sizeof(s.magic));
	memcpy(s.uuid, hv->uuid, sizeof(s.uuid));
	assert_int_equal(uni_xen_call_open(&hv_module, &x, &err), 0);
	hv->pauses = 1;
	/* Somebody still has it. */
	write_state(&s, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(uni_xen_heal(x, dir, NULL), 0);
	assert_int_equal(hv->pauses, 1);
	(void)close(fd);
	/* Nobody has. */
	assert_int_equal(uni_xen_heal(x, dir, &domid), 1);
	assert_int_equal(domid, HV_DOMID);
	assert_int_equal(hv->pauses, 0);
	assert_int_not_equal(access(path, F_OK), 0);
	/* It ran on; it is another domain; it was not in a hold; it is no such file. */
	write_state(&s, path);
	assert_int_equal(uni_xen_heal(x, dir, NULL), 0);
	hv->pauses = 1;
	s.uuid[3] ^= 1;
	write_state(&s, path);
	assert_int_equal(uni_xen_heal(x, dir, NULL), 0);
	s.uuid[3] ^= 1;
	s.since_ns = 0;
	write_state(&s, path);
	assert_int_equal(uni_xen_heal(x, dir, NULL), 0);
	s.since_ns = 1;
	s.magic[0] ^= 1;
	write_state(&s, path);
	assert_int_equal(uni_xen_heal(x, dir, NULL), 0);
	assert_int_equal(hv->pauses, 1);
	uni_xen_call_close(x);
}

/* A child that stops in the middle of a hold. */
static pid_t hold_and(int signo)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct uni_regs regs[HV_VCPUS];
		struct uni_pause p;
		struct uni_target *t = attached("xen:dom=7");

		if (uni_pause_begin(&p, t, VCPUS(7), regs) == 0)
			(void)raise(signo);
		(void)uni_pause_end(&p);
		uni_target_detach(t);
		_exit(hv->nr_pauses == 1 ? 0 : 1);
	}
	return pid;
}

static bool state_is_gone(void)
{
	return rmdir(dir) == 0 && mkdir(dir, 0700) == 0;
}

static void survives_kill(void **state)
{
	unsigned buffers = hv->buffers;
	pid_t pid;
	int status;

	make_guest(true);
	pid = hold_and(SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(hv->nr_pauses, 1);
	assert_true(come_true(runs));
	assert_int_equal(hv->nr_unpauses, 1);
	assert_true(come_true(state_is_gone));
	hv->buffers = buffers; /* the dead one's are its own */
	hv->mapped = 0;
}

static void survives_stop(void **state)
{
	pid_t pid;
	int status;

	make_guest(true);
	pid = hold_and(SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_true(come_true(runs));
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(hv->nr_unpauses, 1); /* the keeper's */
}

static void shares_domain(void **state)
{
	struct uni_err err = { 0 };
	struct uni_target_info info;
	struct uni_target *t, *other, *third = NULL;

	make_guest(true);
	t = attached("xen:dom=7");
	other = attached("xen:dom=7");
	assert_true(t->ops->caps(t) & UNI_CAP_HOLD);
	assert_false(other->ops->caps(other) & UNI_CAP_HOLD);
	other->ops->info(other, &info);
	assert_non_null(strstr(info.why, "another uniscope"));
	assert_int_equal(attach("xen:dom=7,pause=yes", &third, &err), -UNI_EBUSY);
	assert_non_null(strstr(err.msg, "--no-pause"));
	uni_target_detach(other);
	uni_target_detach(t);
}

static void finds_domain(void **state)
{
	static const char json[] = "{\"b_info\": {\"kernel\": \"/boot/\\u001bweb.elf\"}}\0";
	static const char *const bad[] = { "xen:dom=0", "xen:dom=40000", "xen:dom=db", "xen:dom=8",
		"xen:dom=3", "xen:pause=no", "xen:dom=7,pause=maybe", "xen:dom=7,x=1" };
	struct uni_target_info info;
	struct uni_target *t;
	char kernel[64];

	make_guest(true);
	(void)snprintf(hv->kernel, sizeof(hv->kernel), "/srv/web.elf");
	t = attached("xen:dom=web");
	t->ops->info(t, &info);
	assert_int_equal(info.domid, HV_DOMID);
	assert_string_equal(info.name, "web");
	assert_string_equal(info.image, "/srv/web.elf");
	assert_string_equal(info.accel, "pvh");
	assert_int_equal(info.nr_vcpus, HV_VCPUS);
	uni_target_detach(t);
	for (size_t i = 0; i < 8; i++) {
		struct uni_err err = { 0 };

		assert_true(attach(bad[i], &t, &err) < 0);
		assert_true(err.msg[0] != '\0');
	}
	uni_xen_store_kernel_of(json, sizeof(json), kernel, sizeof(kernel));
	assert_string_equal(kernel + strlen(kernel) - 7, "web.elf");
	assert_null(strchr(kernel, '\033'));
	uni_xen_store_kernel_of("[1", 2, kernel, sizeof(kernel));
	assert_string_equal(kernel, "");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(finds_version),
		TEST(says_why_not),
		TEST(reads_pv),
		TEST(reads_pvh),
		TEST(reads_large_pages),
		TEST(tells_the_rate),
		TEST(knows_who_waits),
		TEST(asks_where_it_may_wait),
		TEST(never_pauses),
		TEST(leaves_operators_pause),
		TEST(ends),
		TEST(reads_preserved),
		TEST(heals),
		TEST(survives_kill),
		TEST(survives_stop),
		TEST(shares_domain),
		TEST(finds_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
