/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest that its VMM has paused. No thread runs a vCPU, and KVM gives registers only to a thread
 * that runs one. Nothing must be stopped to read the guest, and all its memory is there. To
 * translate addresses, we search the page tables that map the image to its place.
 */
#include "backend/kvm/rest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/text.h"

#define LOOKS	  20
#define LOOK_NS	  (5 * UNI_NSEC_PER_MSEC)
#define LOOKS_MAX 200
#define PAGE	  4096u
#define CHUNK	  (64u * PAGE)
#define SEARCH_NS (8 * UNI_NSEC_PER_SEC)

/* The values that a 64-bit guest with 4 levels of page tables has in these. */
#define CR0  0x80010011u
#define CR4  0x20u
#define EFER 0xd00u

#define PRESENT	 0x1u
#define ACCESSED 0x20u

bool uni_kvm_looks_paused(int pid, bool *running_ret)
{
	char path[64];
	const struct dirent *e;
	bool in_run = false;
	uint64_t tid;
	DIR *dir;

	*running_ret = false;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (dir == NULL)
		return false;
	while (!in_run && (e = readdir(dir)) != NULL) {
		enum uni_kvm_doing doing;
		int fd, sfd;

		if (!uni_parse_u64(e->d_name, &tid) || tid > INT32_MAX ||
			uni_kvm_is_worker(pid, (int)tid))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, (int)tid);
		sfd = open(path, O_RDONLY | O_CLOEXEC);
		doing = sfd >= 0			    ? uni_kvm_doing(sfd, &fd)
			: errno == EACCES || errno == EPERM ? UNI_DOING_DENIED
							    : UNI_DOING_GONE;
		in_run = in_run || doing == UNI_DOING_IN_RUN || doing == UNI_DOING_DENIED;
		*running_ret = *running_ret || doing == UNI_DOING_RUNNING;
		if (sfd >= 0)
			(void)close(sfd);
	}
	(void)closedir(dir);
	return !in_run && !*running_ret;
}

bool uni_kvm_is_paused(int pid)
{
	const struct timespec nap = uni_ns_timespec(LOOK_NS);
	unsigned calm = 0;

	for (unsigned i = 0; calm < LOOKS && i < LOOKS_MAX; i++) {
		bool running;

		if (uni_kvm_looks_paused(pid, &running))
			calm++;
		else if (running) /* it may be another thread of the VMM */
			calm = 0;
		else
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return calm == LOOKS;
}

static void set_root(struct uni_regs *regs, uint64_t root)
{
	uni_regs_set_sys(regs, UNI_X86_CR0, CR0);
	uni_regs_set_sys(regs, UNI_X86_CR3, root);
	uni_regs_set_sys(regs, UNI_X86_CR4, CR4);
	uni_regs_set_sys(regs, UNI_X86_EFER, EFER);
	regs->state = UNI_VCPU_HALTED;
}

struct search {
	const struct uni_kvm *k;
	const struct uni_text_hint *text;
	size_t nr_text;
	struct uni_as *as;
	unsigned index; /* index of the image in a top table */
	uint64_t best;
	unsigned most;
};

/* Do these tables map the image from its first byte to its last? */
static bool maps_image(const struct search *s, uint64_t root)
{
	struct uni_regs regs = { 0 };
	struct uni_pt_root pt;
	bool any = false;

	set_root(&regs, root);
	if (s->k->base.arch->paging(&regs, &pt) != 0)
		return false;
	uni_as_begin(s->as, &pt);
	for (size_t i = 0; i < s->nr_text; i++) {
		const struct uni_text_hint *h = &s->text[i];
		const uint64_t at[] = { 0, h->size - 1 };

		if (!h->exec || h->size == 0)
			continue;
		for (size_t k = 0; k < uni_array_len(at); k++) {
			uni_gpa gpa;

			if (uni_as_translate(s->as, uni_gva_of(h->gva + at[k]), &gpa, NULL) != 0 ||
				gpa.v != h->paddr + at[k])
				return false;
		}
		any = true;
	}
	return any;
}

/*
 * Most entries of tables that a CPU used are marked as accessed; boot tables have few such entries.
 */
static void look_at_page(struct search *s, const uint8_t *page, uint64_t gpa)
{
	struct uni_cursor c = uni_cursor_make(page, PAGE);
	unsigned used = 0;
	uint64_t entry = 0;

	for (unsigned i = 0; i < PAGE / 8; i++) {
		uint64_t v = uni_cursor_u64(&c);

		entry = i == s->index ? v : entry;
		used += (v & (PRESENT | ACCESSED)) == (PRESENT | ACCESSED);
	}
	if ((entry & PRESENT) == 0 || used <= s->most || !maps_image(s, gpa))
		return;
	s->best = gpa;
	s->most = used;
}

static void search_all(struct search *s, uint8_t *buf)
{
	uint64_t until = uni_thread_ns() + SEARCH_NS;

	for (size_t i = 0; i < uni_gmem_nr_regions(s->k->gmem); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(s->k->gmem, i);
		uint64_t left = r->size, at = r->start;

		while (left >= PAGE && uni_thread_ns() < until) {
			size_t n = (size_t)uni_min(left - left % PAGE, (uint64_t)CHUNK);

			if (uni_gmem_read(s->k->gmem, uni_gpa_of(at), buf, n) == 0) {
				for (size_t k = 0; k < n; k += PAGE)
					look_at_page(s, buf + k, at + k);
			}
			at += n;
			left -= n;
		}
	}
}

/*
 * The code is at the image's stated address, unless it was moved: then this search does not find
 * it.
 */
static const struct uni_text_hint *first_code(const struct uni_attach_opts *opts)
{
	for (size_t i = 0; i < opts->nr_text; i++) {
		if (opts->text[i].exec && opts->text[i].size != 0)
			return &opts->text[i];
	}
	return NULL;
}

int uni_kvm_rest(struct uni_kvm *k, const struct uni_attach_opts *opts, struct uni_err *err)
{
	_cleanup_free_ uint8_t *buf = malloc(CHUNK);
	const struct uni_text_hint *code = first_code(opts);
	struct search s = { .k = k, .text = opts->text, .nr_text = opts->nr_text };
	int rc;

	if (code == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest is paused: without its image (-e) its page tables cannot be "
			"found");
	if (buf == NULL)
		return uni_err_nomem(err);
	s.index = (unsigned)(code->gva >> 39 & 511);
	rc = uni_as_create(k->gmem, &uni_as_budget_once, &s.as, err);
	if (rc != 0)
		return rc;
	search_all(&s, buf);
	uni_as_destroy(s.as);
	if (s.most == 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest is paused, and its memory has no page tables "
			"that map its image where it was linked. Let it run "
			"(cont), or use its gdb stub (gdb:unix=PATH), which "
			"gives registers");
	set_root(&k->rest, s.best);
	return 0;
}

int uni_kvm_rest_snap(const struct uni_kvm *k, const struct uni_vcpuset *set, struct uni_regs *ret)
{
	bool running;

	if (!uni_kvm_looks_paused(k->pid, &running))
		return -UNI_EAGAIN;
	for (uint32_t i = 0; i < k->nr; i++) {
		if (uni_vcpuset_has(set, i))
			ret[i] = k->rest;
	}
	return 0;
}
