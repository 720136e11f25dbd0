/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/check.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "mem/gmem.h"
#include "obj/sites.h"
#include "sampling/loaded.h"

#define PAGE	UNI_CODE_PAGE
#define AT_ONCE 16u /* pages for which a table of the guest is read once */

/* An image is refused if a tenth of its pages differ. A page differs if an eighth of its bytes do,
 * not counting bytes with a known reason. In an accepted image each byte counts. */
#define DIFFERENT(bytes, size) ((bytes) > (size) / 8)
#define ENOUGH(same, readable) ((same)*10 >= (readable)*9)

/* Assembler of boot code patches itself; more than this share is another build. */
#define ASSEMBLER_MOST(compared) ((compared) / 1000 + 16)

struct tally {
	const struct uni_image *img;
	struct uni_as *as;
	const struct uni_changes *changes;
	const struct uni_change *site; /* of our tracer, to be left out; sorted */
	size_t nr_sites;
	uint64_t bias;
	unsigned looked, readable, same;
	bool gone, no_memory;
	uint64_t first_bad; /* address of the first page that differs */
	struct uni_difference *d;
	UNI_VEC(struct uni_span) assembler;
};

/* [*svma_ret, + the result) is what page number `page` of the address space shares with the code.
 */
static size_t page_of(const struct uni_span *code, uint64_t bias, uint64_t page, uint64_t *svma_ret)
{
	uint64_t head = PAGE - (code->start + bias) % PAGE; /* bytes of the first page */
	uint64_t off = page == 0 ? 0 : head + (page - 1) * PAGE;

	*svma_ret = code->start + off;
	return (size_t)uni_min(page == 0 ? head : PAGE, code->size - off);
}

static uint64_t nr_pages(const struct uni_span *code, uint64_t bias)
{
	uint64_t head = PAGE - (code->start + bias) % PAGE;

	return code->size <= head ? 1 : 1 + (code->size - head + PAGE - 1) / PAGE;
}

static bool begins_last(const struct uni_span *v, size_t nr, uint64_t start)
{
	return v != NULL && nr != 0 && v[nr - 1].start == start;
}

static bool add_span(struct tally *t, bool typed, struct uni_span span)
{
	if (typed)
		return begins_last(t->d->code.v, t->d->code.nr, span.start) ||
		       uni_vec_push(&t->d->code, span);
	return begins_last(t->assembler.v, t->assembler.nr, span.start) ||
	       uni_vec_push(&t->assembler, span);
}

static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* The forms of changes are known for this architecture alone. */
static bool is_x86(const struct tally *t)
{
	const struct uni_arch *arch = uni_image_arch(t->img);

	return arch != NULL && arch->elf_machine == EM_X86_64;
}

/* A call or jump to a function of the image that no tracer has, by its name, is no tracer's. */
static bool leads_to_tracer(const struct uni_image *img, uint64_t svma)
{
	static const char *const words[] = { "trace", "fentry", "mcount", "_profile_", "xray" };
	const struct uni_symbol *sym = uni_image_lookup(img, svma);

	if (sym == NULL || sym->type != STT_FUNC || sym->addr != svma)
		return true;
	for (size_t i = 0; i < uni_array_len(words); i++) {
		if (strstr(uni_image_sym_name(img, sym), words[i]) != NULL)
			return true;
	}
	return false;
}

/* Has a tracer written the instruction that begins at `at` of the page? It is a call, a jump or a
 * nop then. One that begins in the page before has its last bytes here, which are not judged. */
static bool is_traced(const struct uni_image *img, const struct uni_code_page *p, size_t at)
{
	int32_t rel;

	if (at < p->len && (p->now[at] == 0xe8 || p->now[at] == 0xe9)) {
		if (at + 1 + sizeof(rel) > p->len)
			return true;
		memcpy(&rel, p->now + at + 1, sizeof(rel));
		return leads_to_tracer(img, p->svma + at + 5 + (uint64_t)(int64_t)rel);
	}
	return at >= p->len || p->now[at] == 0xc3 ||
	       memcmp(p->now + at, nop5, uni_min(sizeof(nop5), p->len - at)) == 0;
}

/* Linux' own changes in a file without symbols, which does not say where the lists are. Each has
 * one form before and one after it. */
static bool is_jump_or_nop(const uint8_t *a, const uint8_t *b)
{
	static const uint8_t nop2[] = { 0x66, 0x90 };
	static const uint8_t jump0[] = { 0xe9, 0, 0, 0, 0 }; /* to what is behind it */

	return (memcmp(a, jump0, sizeof(jump0)) == 0 && b[0] == 0xe9) ||
	       (memcmp(a, nop2, sizeof(nop2)) == 0 && b[0] == 0xeb) ||
	       (memcmp(a, nop5, sizeof(nop5)) == 0 && b[0] == 0xe9);
}

/* The trampoline of a static call ends in `ud1 %esp,%ecx`. */
static bool is_trampoline(const uint8_t bytes[8])
{
	return (bytes[0] == 0xe9 || bytes[0] == 0xc3) && memcmp(bytes + 5, "\x0f\xb9\xcc", 3) == 0;
}

static enum uni_change_kind judge_patch(
	const struct uni_image *img, uint64_t svma, const uint8_t *file, const uint8_t *now)
{
	static const uint8_t tail[] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc };
	static const uint8_t zero[] = { 0x2e, 0x2e, 0x2e, 0x31, 0xc0 };
	bool known = now[0] == 0xe8 || now[0] == 0xe9 || memcmp(now, nop5, 5) == 0 ||
		     memcmp(now, tail, 5) == 0 || memcmp(now, zero, 5) == 0;
	uint8_t to[8] = { 0 };
	int32_t rel;

	if (is_jump_or_nop(file, now) || is_jump_or_nop(now, file) ||
		(is_trampoline(file) && known))
		return UNI_CHANGE_KEY;
	if (file[0] != 0xe8 && file[0] != 0xe9)
		return UNI_CHANGE_NONE;
	memcpy(&rel, file + 1, sizeof(rel));
	if (!uni_image_bytes(img, svma + 5 + (uint64_t)(int64_t)rel, to, sizeof(to)))
		return UNI_CHANGE_NONE;
	if (is_trampoline(to) && known)
		return UNI_CHANGE_KEY;
	/* ftrace: its hook does nothing but return */
	return memcmp(now, nop5, 5) == 0 && (to[0] == 0xc3 || to[0] == 0xe9) ? UNI_CHANGE_TRACER
									     : UNI_CHANGE_NONE;
}

/* An instruction may lie in two pages. */
static enum uni_change_kind linux_change(
	const struct tally *t, const struct uni_code_page *p, size_t i)
{
	enum uni_change_kind kind = UNI_CHANGE_NONE;
	const uint64_t from = p->svma + i - 4;
	uint8_t now[12], file[12];

	if (i >= 4 && i + 8 <= p->len) {
		memcpy(now, p->now + i - 4, sizeof(now));
		memcpy(file, p->file + i - 4, sizeof(file));
	} else if (!uni_image_bytes(t->img, from, file, sizeof(file)) ||
		   uni_as_read(t->as, uni_gva_of(from + t->bias), now, sizeof(now)) != 0) {
		return UNI_CHANGE_NONE;
	}
	for (unsigned at = 0; kind == UNI_CHANGE_NONE && at <= 4; at++)
		kind = judge_patch(t->img, from + at, file + at, now + at);
	return kind;
}

/* The kind of the listed place that has byte i. Bytes that no tracer writes have no reason. */
static enum uni_change_kind find_listed(const struct tally *t, const struct uni_change *v,
	size_t nr, const struct uni_code_page *p, size_t i)
{
	const struct uni_change *c = uni_changes_find(v, nr, p->svma + i);

	if (c == NULL || (c->kind == UNI_CHANGE_TRACER && is_x86(t) &&
				 !is_traced(t->img, p, c->addr - p->svma)))
		return UNI_CHANGE_NONE;
	return c->kind;
}

static enum uni_change_kind reason_of(struct tally *t, const struct uni_code_page *p, size_t i)
{
	uint64_t svma = p->svma + i;
	enum uni_change_kind kind = find_listed(t, t->changes->v, t->changes->nr, p, i);
	const struct uni_symbol *sym;
	bool typed;

	if (kind != UNI_CHANGE_NONE)
		return kind;
	if (find_listed(t, t->site, t->nr_sites, p, i) != UNI_CHANGE_NONE)
		return UNI_CHANGE_TRACER;
	if (is_x86(t) && uni_image_nr_symbols(t->img) == 0)
		kind = linux_change(t, p, i);
	if (kind != UNI_CHANGE_NONE)
		return kind;
	if (uni_image_is_xens(t->img, svma))
		return UNI_CHANGE_HYPERVISOR;
	if (t->bias != 0 && uni_code_is_moved(t->img, p, i, t->bias))
		return UNI_CHANGE_MOVED;
	if (is_x86(t) && uni_code_is_table(t->img, p, i))
		return UNI_CHANGE_TABLE;
	sym = uni_image_lookup(t->img, svma);
	typed = sym != NULL && sym->type != STT_NOTYPE;
	if (sym != NULL && !add_span(t, typed, (struct uni_span){ sym->addr, sym->size }))
		t->no_memory = true;
	return typed ? UNI_CHANGE_NONE : UNI_CHANGE_ASSEMBLER;
}

static void compare_page(struct tally *t, const struct uni_code_page *p)
{
	size_t differ = 0;

	t->readable++;
	t->d->compared += p->len;
	for (size_t i = 0; i < p->len; i++) {
		enum uni_change_kind kind;

		if (p->now[i] == p->file[i])
			continue;
		kind = reason_of(t, p, i);
		t->d->changed[kind]++;
		differ += kind == UNI_CHANGE_NONE || kind == UNI_CHANGE_ASSEMBLER;
	}
	if (!DIFFERENT(differ, p->len))
		t->same++;
	else if (t->readable - t->same == 1)
		t->first_bad = p->svma + t->bias;
}

static void read_page(struct uni_as *as, const struct uni_pt_root *root, struct tally *t,
	const struct uni_span *code, uint64_t page)
{
	struct uni_code_page p;
	int rc;

	p.len = page_of(code, t->bias, page, &p.svma);
	if (!uni_image_bytes(t->img, p.svma, p.file, p.len))
		return;
	if (t->looked++ % AT_ONCE == 0)
		uni_as_begin(as, root);
	rc = uni_as_read(as, uni_gva_of(p.svma + t->bias), p.now, p.len);
	t->gone = t->gone || rc == -UNI_EGONE;
	if (rc == 0)
		compare_page(t, &p);
}

static uint64_t all_pages(const struct uni_image *img, uint64_t bias)
{
	const struct uni_changes *p = uni_image_changes(img);
	uint64_t total = 0;

	for (size_t i = 0; i < p->nr_code; i++)
		total += nr_pages(&p->code[i], bias);
	return total;
}

/* The first and last page of all code, and others spread evenly between. */
static void compare_all(
	struct uni_as *as, const struct uni_pt_root *root, unsigned most, struct tally *t)
{
	uint64_t total = all_pages(t->img, t->bias), pick = uni_min(total, (uint64_t)most);
	uint64_t done = 0, before = 0;

	for (size_t i = 0; i < t->changes->nr_code; i++) {
		const struct uni_span *code = &t->changes->code[i];
		uint64_t n = nr_pages(code, t->bias);

		while (done < pick && !t->gone) {
			uint64_t page = pick == 1 ? 0 : done * (total - 1) / (pick - 1);

			if (page - before >= n)
				break;
			read_page(as, root, t, code, page - before);
			done++;
		}
		before += n;
	}
}

static int tally_verdict(const struct tally *t, struct uni_err *err)
{
	const struct uni_image *img = t->img;

	if (t->gone)
		return uni_err_set(err, UNI_EGONE,
			"the guest ended while its code was compared with %s", uni_image_path(img));
	if (t->no_memory)
		return uni_err_nomem(err);
	if (t->readable == 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: the guest has nothing mapped where this image's code would be (entry "
			"0x%" PRIx64 "). Is it the image that the guest booted, and has it "
			"booted yet?",
			uni_image_path(img), uni_image_entry(img) + t->bias);
	if (!ENOUGH(t->same, t->readable) && t->d->id != UNI_ID_SAME)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: not the image that the guest runs: %u of %u pages of code differ, the "
			"first at 0x%" PRIx64 ". Give the file that was booted, of the same build "
			"(--image ELF)",
			uni_image_path(img), t->readable - t->same, t->readable, t->first_bad);
	return 0;
}

enum uni_fit uni_check_fit(struct uni_as *as, const struct uni_pt_root *root,
	const struct uni_image *img, uint64_t bias)
{
	struct uni_difference d = { 0 };
	struct tally t = {
		.img = img, .as = as, .changes = uni_image_changes(img), .bias = bias, .d = &d
	};

	if (all_pages(img, bias) == 0)
		return UNI_FIT_OTHER;
	compare_all(as, root, UNI_CHECK_FEW, &t);
	uni_difference_deinit(&d);
	uni_vec_free(&t.assembler);
	if (t.readable == 0)
		return UNI_FIT_EMPTY;
	return ENOUGH(t.same, t.readable) ? UNI_FIT_SAME : UNI_FIT_OTHER;
}

/* The note with the build-id, if the guest has one at that place. */
static enum uni_check_id compare_id(struct uni_as *as, const struct uni_pt_root *root,
	const struct uni_image *img, uint64_t bias)
{
	uint8_t now[16 + UNI_BUILD_ID_MAX], file[sizeof(now)];
	const uint8_t *id;
	size_t len = 16 + uni_image_build_id(img, &id);
	uint64_t svma;

	if (!uni_image_find_build_id(img, &svma) || !uni_image_bytes(img, svma, file, len))
		return UNI_ID_UNKNOWN;
	uni_as_begin(as, root);
	if (uni_as_read(as, uni_gva_of(svma + bias), now, len) != 0 || memcmp(now, file, 16) != 0)
		return UNI_ID_UNKNOWN;
	return memcmp(now, file, len) == 0 ? UNI_ID_SAME : UNI_ID_OTHER;
}

static struct uni_change *list_sites(const struct uni_sites *s)
{
	struct uni_change *v = calloc(s->nr_sites + 1, sizeof(*v));

	for (size_t i = 0; v != NULL && i < s->nr_sites; i++)
		v[i] = (struct uni_change){ s->site[i].addr, UNI_SITE_BYTES, UNI_CHANGE_TRACER };
	if (v != NULL)
		uni_changes_sort(v, s->nr_sites);
	return v;
}

/* Once more without the places of our tracer, which cost time to find. */
static void compare_again(
	struct uni_as *as, const struct uni_pt_root *root, unsigned most, struct tally *t)
{
	_cleanup_free_ struct uni_change *site = NULL;
	struct uni_difference *d = t->d;
	struct uni_err ignored = { 0 };
	struct uni_sites *sites = NULL;

	if (uni_sites_read(t->img, &sites, &ignored) != 0)
		return;
	site = list_sites(sites);
	d->code.nr = t->assembler.nr = 0;
	d->compared = 0;
	memset(d->changed, 0, sizeof(d->changed));
	t->readable = t->same = 0;
	t->site = site;
	t->nr_sites = site != NULL ? sites->nr_sites : 0;
	compare_all(as, root, most, t);
	t->site = NULL;
	uni_sites_destroy(sites);
}

static bool has_types(const struct uni_image *img)
{
	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		if (uni_image_symbol(img, i)->type != STT_NOTYPE)
			return true;
	}
	return false;
}

static int compare_spans(const void *a, const void *b)
{
	const struct uni_span *p = a, *q = b;

	return p->start < q->start ? -1 : p->start > q->start;
}

/* Spans are made sorted and without overlaps: one for each function, or for several. */
static void join_spans(struct uni_difference *d)
{
	size_t kept = 0;

	if (d->code.nr != 0)
		qsort(d->code.v, d->code.nr, sizeof(*d->code.v), compare_spans);
	for (size_t i = 0; i < d->code.nr; i++) {
		struct uni_span *last = kept != 0 ? &d->code.v[kept - 1] : NULL;
		struct uni_span s = d->code.v[i];

		if (last != NULL && uni_range_has(last->start, last->size, s.start))
			last->size = uni_max(last->size, s.size + (s.start - last->start));
		else
			d->code.v[kept++] = s;
	}
	d->code.nr = kept;
}

/* A few differing bytes of code without types have a reason. Many do not, nor does any if nothing
 * has types. */
static void judge_assembler(struct tally *t)
{
	struct uni_difference *d = t->d;
	uint64_t n = d->changed[UNI_CHANGE_ASSEMBLER];

	if (n > ASSEMBLER_MOST(d->compared) || !has_types(t->img)) {
		d->changed[UNI_CHANGE_NONE] += n;
		d->changed[UNI_CHANGE_ASSEMBLER] = 0;
		for (size_t i = 0; i < t->assembler.nr; i++)
			t->no_memory |= !uni_vec_push(&d->code, t->assembler.v[i]);
	}
	join_spans(d);
}

int uni_check_image(struct uni_as *as, const struct uni_arch *arch, const struct uni_regs *regs,
	const struct uni_image *img, uint64_t bias, unsigned most, struct uni_difference *d,
	struct uni_err *err)
{
	bool is_virtual = uni_gmem_space(uni_as_gmem(as)) == UNI_GMEM_VIRTUAL;
	struct tally t = {
		.img = img, .as = as, .changes = uni_image_changes(img), .bias = bias, .d = d
	};
	struct uni_pt_root own = { 0 }, *root = is_virtual ? NULL : &own;

	if (all_pages(img, bias) == 0)
		return uni_err_set(
			err, UNI_EMISMATCH, "%s: it has no code to compare", uni_image_path(img));
	if (!is_virtual && arch->paging(regs, &own) != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: cannot be compared: the guest's paging registers contradict "
			"themselves; has it booted yet?",
			uni_image_path(img));
	d->id = compare_id(as, root, img, bias);
	compare_all(as, root, most, &t);
	if (!t.gone && d->changed[UNI_CHANGE_NONE] + d->changed[UNI_CHANGE_ASSEMBLER] != 0)
		compare_again(as, root, most, &t);
	judge_assembler(&t);
	uni_vec_free(&t.assembler);
	return tally_verdict(&t, err);
}

void uni_difference_deinit(struct uni_difference *d)
{
	uni_vec_free(&d->code);
	*d = (struct uni_difference){ 0 };
}

bool uni_difference_is_stale(const struct uni_difference *d)
{
	return d->id == UNI_ID_OTHER || d->changed[UNI_CHANGE_NONE] != 0;
}

static const char *first_name(const struct uni_difference *d, const struct uni_image *img)
{
	const struct uni_symbol *s =
		d->code.nr != 0 ? uni_image_lookup(img, d->code.v[0].start) : NULL;

	return s != NULL ? uni_image_sym_name(img, s) : NULL;
}

void uni_difference_text(const struct uni_difference *d, const struct uni_image *img, bool accepted,
	char *ret, size_t cap)
{
	const char *path = uni_image_path(img), *slash = strrchr(path, '/');
	const char *first = first_name(d, img);
	const char *id = d->id == UNI_ID_OTHER	? "its build-id is another one, and "
			 : d->id == UNI_ID_SAME ? "its build-id is the same, but "
						: "";
	char functions[128] = "";

	ret[0] = '\0';
	if (!uni_difference_is_stale(d))
		return;
	if (first != NULL)
		(void)snprintf(functions, sizeof(functions), " in %s%.64s%s",
			d->code.nr > 1 ? "functions from " : "", first,
			d->code.nr > 1 ? " on" : "");
	(void)snprintf(ret, cap,
		"%.96s is not exactly what the guest runs: %s%" PRIu64 " of %" PRIu64
		" bytes of code differ%s; %s: give the file that was booted (-e)%s",
		slash != NULL ? slash + 1 : path, id, d->changed[UNI_CHANGE_NONE], d->compared,
		functions,
		accepted ? "names may be wrong (--accept-image)" : "what differs has no name",
		accepted ? "" : ", or insist by --accept-image");
}

void uni_difference_how(const struct uni_difference *d, char *ret, size_t cap)
{
	size_t n;

	(void)snprintf(ret, cap, "%s%" PRIu64 " KiB of code compared",
		d->id == UNI_ID_UNKNOWN ? "" : "build-id and ", (d->compared + 1023) / 1024);
	for (unsigned i = 0; i < UNI_CHANGE_NR; i++) {
		n = strlen(ret);
		if (d->changed[i] != 0 && n < cap)
			(void)snprintf(ret + n, cap - n, "; %" PRIu64 " byte%s: %s", d->changed[i],
				uni_plural(d->changed[i]),
				uni_change_text((enum uni_change_kind)i));
	}
}
