/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MirageOS, and other OCaml programs on Lwt, that are not compiled for uniscope. A thread of Lwt is
 * no stack: it is a promise that is pending, and the closures that go on when it is resolved. This
 * walks the heap. It begins at what the main loop holds (sleepers, who waits for a device, paused
 * promises), at the stacks, and at the program's modules. It knows a pending promise by its shape
 * (Lwt 5 and 6):
 *
 *   promise (tag 0): its state. state (tag 2, Pending): its callbacks. callbacks (tag 0):
 *   the regular ones, those of a cancel, how to cancel it, a number
 *
 * How to cancel tells a promise that something outside resolves from one that waits for others. A
 * callback is a closure of Lwt: it has the program's function in its environment, and the promise
 * that it resolves afterwards. So one leads to the next, as frames of a stack do.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "guest/ocaml.h"
#include "obj/demangle.h"

#define PLACES_MAX  8192u /* blocks that one walk looks at */
#define ROOT_MAX    2048u /* from one module's data */
#define ROOTS_MAX   16u
#define FIELDS_MAX  1024u  /* of one module's block */
#define WORDS_MAX   32768u /* of all lists and blocks of the program's modules */
#define STACK_WORDS 2048u  /* of each stack */
#define CHAIN_MAX   64u	   /* callbacks, one after the other */
#define INNER_MAX   4u	   /* callbacks, one around the other */
#define STEPS_MAX   16384u /* in all lists of callbacks: one may be its own part */
#define LISTS_MAX   128u   /* parts of a list of callbacks that are not yet looked at */

enum { LWT, GLOBALS };

enum holder { NOBODY, SLEEPERS, DEVICES, PAUSED };

enum { REGULAR, ON_CANCEL, HOW_TO_CANCEL, CLEANUPS, NR_CALLBACKS };

/* Modules of the main loops whose data holds promises: of mirage-solo5, mirage-unix, mirage-xen,
 * and mirage-sleep, by today's names and the older ones. */
static const struct {
	const char *module;
	enum holder holder;
} holders[] = {
	{ "Solo5_os__Time", SLEEPERS },
	{ "Xen_os__Time", SLEEPERS },
	{ "OS__Time", SLEEPERS },
	{ "Mirage_sleep", SLEEPERS },
	{ "Solo5_os__Main", DEVICES },
	{ "Xen_os__Activations", DEVICES },
	{ "OS__Main", DEVICES },
	{ "OS__Activations", DEVICES },
	{ "Lwt", PAUSED },
};

struct place {
	uint64_t at;
	uint8_t holder;
	bool pending; /* it is a pending promise */
	bool moved;   /* another place has it */
	bool led_to;  /* a callback of another promise resolves it */
};

struct own {
	const struct uni_image *img;
	struct uni_ocaml ocaml;
	uint64_t lwt_start, lwt_end;	 /* its code */
	uint64_t sleep_start, sleep_end; /* that of Mirage_sleep */
	struct {
		uint64_t start, end;
		enum holder holder;
	} root[ROOTS_MAX];
	size_t nr_roots;
	/* For one walk. */
	struct uni_guest_thread now; /* read_waiter() takes it */
	bool more;		     /* there are blocks that it does not look at */
	uint32_t steps;		     /* through lists of callbacks */
	uint32_t nr;
	struct place place[PLACES_MAX];
	uint16_t slot[2 * PLACES_MAX]; /* index + 1, by hash */
	struct uni_ocaml_block block;
	uint64_t words[STACK_WORDS];
};

static bool find_module(struct uni_model *m, const struct own *own, const char *module,
	const char *what, uint64_t *ret)
{
	char name[128];
	uint64_t size;

	(void)snprintf(name, sizeof(name), "caml%s__%s", module, what);
	if (uni_image_find(own->img, name, ret, &size) != 0) {
		/* Since OCaml 5.1. */
		(void)snprintf(name, sizeof(name), "caml%s.%s", module, what);
		if (uni_image_find(own->img, name, ret, &size) != 0)
			return false;
	}
	*ret += m->bias;
	return true;
}

static void find_roots(struct uni_model *m, const struct uni_image *img)
{
	struct own *own = m->own;

	own->img = img;
	uni_ocaml_of_image(img, m->bias, &own->ocaml);
	if (!find_module(m, own, "Lwt", "code_begin", &own->lwt_start) ||
		!find_module(m, own, "Lwt", "code_end", &own->lwt_end))
		own->lwt_start = own->lwt_end = 0;
	if (!find_module(m, own, "Mirage_sleep", "code_begin", &own->sleep_start) ||
		!find_module(m, own, "Mirage_sleep", "code_end", &own->sleep_end))
		own->sleep_start = own->sleep_end = 0;
	for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++) {
		uint64_t start, end;

		if (!find_module(m, own, holders[i].module, "data_begin", &start) ||
			!find_module(m, own, holders[i].module, "data_end", &end) || end < start)
			continue;
		own->root[own->nr_roots].start = start;
		own->root[own->nr_roots].end = end;
		own->root[own->nr_roots++].holder = holders[i].holder;
	}
}

/* Its slot, or the free one for it. There are twice as many slots as places. */
static uint32_t slot_of(const struct own *own, uint64_t at)
{
	uint32_t i = (uint32_t)(uni_hash_pair(at, 0) % (2 * PLACES_MAX));

	while (own->slot[i] != 0 && own->place[own->slot[i] - 1].at != at)
		i = (i + 1) % (2 * PLACES_MAX);
	return i;
}

/* Notes a block to look at, once. */
static void add_place(struct own *own, uint64_t at, enum holder holder)
{
	uint32_t i;

	if (!uni_ocaml_may_be_block(&own->ocaml, at))
		return;
	i = slot_of(own, at);
	if (own->slot[i] != 0)
		return;
	if (own->nr == PLACES_MAX) {
		own->more = true;
		return;
	}
	own->place[own->nr] = (struct place){ .at = at, .holder = (uint8_t)holder };
	own->slot[i] = (uint16_t)++own->nr;
}

/* A resolved promise is none, nor is a proxy of another one. */
static bool read_pending(struct uni_look *look, uint64_t v, uint64_t callbacks[NR_CALLBACKS])
{
	uint64_t state, of;

	return uni_ocaml_is(look, v, 0, 1, &state) && uni_ocaml_is(look, state, 2, 1, &of) &&
	       uni_ocaml_is(look, of, 0, NR_CALLBACKS, callbacks) &&
	       uni_ocaml_is_number(callbacks[CLEANUPS]) &&
	       (!uni_ocaml_is_number(callbacks[HOW_TO_CANCEL]) || callbacks[HOW_TO_CANCEL] == 1 ||
		       callbacks[HOW_TO_CANCEL] == 3);
}

/* The promise that v stands for now: its proxies lead to it. 0: it is not pending. */
static uint64_t find_pending(struct uni_look *look, uint64_t v, uint64_t callbacks[NR_CALLBACKS])
{
	for (unsigned i = 0; i < CHAIN_MAX; i++) {
		uint64_t state;

		if (read_pending(look, v, callbacks))
			return v;
		if (!uni_ocaml_is(look, v, 0, 1, &state) || !uni_ocaml_is(look, state, 3, 1, &v))
			return 0;
	}
	return 0;
}

/* Notes all blocks to which the one at place i refers. */
static void expand_place(struct uni_look *look, uint32_t i)
{
	struct own *own = look->m->own;
	struct uni_ocaml_block *b = &own->block;
	enum holder holder = own->place[i].pending ? NOBODY : own->place[i].holder;

	if (own->place[i].moved || !uni_ocaml_read(look, own->place[i].at, b) ||
		b->tag >= UNI_OCAML_OPAQUE || b->tag == UNI_OCAML_CONTINUATION)
		return;
	for (uint32_t k = b->first; k < b->nr; k++)
		add_place(own, b->word[k], holder);
}

static void mark_pending(struct uni_look *look, uint32_t i)
{
	struct own *own = look->m->own;
	uint64_t callbacks[NR_CALLBACKS], at = uni_ocaml_moved(look, own->place[i].at);

	own->place[i].moved = at != own->place[i].at;
	if (own->place[i].moved)
		add_place(own, at, own->place[i].holder);
	else
		own->place[i].pending = read_pending(look, own->place[i].at, callbacks);
}

/* Notes all that a module's data holds, up to the promises in it. */
static void walk_root(struct uni_look *look, size_t root)
{
	struct own *own = look->m->own;
	uint64_t at = own->root[root].start, end = own->root[root].end;
	uint32_t first = own->nr;

	for (uint64_t word; at + 8 <= end && own->nr - first < ROOT_MAX; at += 8) {
		if (!uni_look_u64(look, at, &word)) {
			(void)uni_look_cut(look, UNI_THREADS_FAULT);
			break;
		}
		add_place(own, word, own->root[root].holder);
	}
	for (uint32_t i = first; i < own->nr; i++) {
		mark_pending(look, i);
		if (own->nr - first >= ROOT_MAX)
			own->more = true;
		else if (!own->place[i].pending)
			expand_place(look, i);
	}
}

/* A block in the image, as a module is: its fields. */
static void add_fields(struct uni_look *look, uint64_t at, uint32_t *left)
{
	struct own *own = look->m->own;
	uint64_t header, word, nr;

	if (!uni_look_u64(look, at - 8, &header) || (uint8_t)header >= UNI_OCAML_OPAQUE)
		return;
	nr = uni_min(header >> 10, (uint64_t)FIELDS_MAX);
	for (; nr != 0 && *left > 1 && uni_look_u64(look, at, &word); at += 8, nr--, (*left)--)
		add_place(own, word, NOBODY);
}

static bool read_global(struct uni_look *look, uint64_t at, uint64_t *ret)
{
	return uni_look_u64(look, at, ret) || uni_look_cut(look, UNI_THREADS_FAULT);
}

/* All that the program's modules hold. caml_globals has a list of blocks for each, and 0 ends all
 * lists. */
static void walk_globals(struct uni_look *look)
{
	struct own *own = look->m->own;
	uint64_t globals = look->m->sym[GLOBALS], list, at;
	uint32_t left = WORDS_MAX; /* each list and block counts as a word */

	for (; left > 1 && read_global(look, globals, &list) && list != 0; globals += 8) {
		left--;
		for (; left > 1 && read_global(look, list, &at) && at != 0; list += 8) {
			left--;
			add_fields(look, at, &left);
		}
	}
	if (left <= 1)
		own->more = true;
}

/* The words of a stack that are closures or pending promises. */
static void scan_stack(struct uni_look *look, uint64_t sp, uint64_t *other)
{
	struct own *own = look->m->own;
	size_t nr = uni_as_read_some(look->as, uni_gva_of(sp), own->words, sizeof(own->words)) / 8;
	uint64_t callbacks[NR_CALLBACKS], top;

	for (size_t i = 0; i < nr; i++) {
		uint64_t v = own->words[i];

		if (!uni_ocaml_may_be_block(&own->ocaml, v))
			continue;
		/* C of OCaml 5 runs on another stack. At its end is the link to the one below:
		 * the address of that one's structure, and its stack pointer. The structure
		 * begins with the stack pointer, too. */
		if (other != NULL && i + 1 < nr && own->words[i + 1] > 4096 &&
			uni_look_u64(look, v, &top) && top == own->words[i + 1] && top != sp) {
			*other = top;
			return;
		}
		if (uni_ocaml_code(look, &own->ocaml, v) != 0 ||
			find_pending(look, v, callbacks) != 0)
			add_place(own, v, NOBODY);
	}
}

static void walk_stacks(struct uni_look *look)
{
	for (uint32_t v = 0; v < look->nr_vcpus; v++) {
		uint64_t other = 0;

		if (!look->regs[v].sp_valid)
			continue;
		scan_stack(look, look->regs[v].sp & ~7ull, &other);
		if (other != 0)
			scan_stack(look, other & ~7ull, NULL);
	}
}

/* The program's functions that a callback of Lwt has in its environment, and the promise that it
 * resolves; 0: none. inner: another callback of Lwt that it has there. */
static uint64_t read_environment(
	struct uni_look *look, uint64_t closure, struct uni_guest_thread *t, uint64_t *inner_ret)
{
	struct own *own = look->m->own;
	struct uni_ocaml_block *b = &own->block;
	uint64_t callbacks[NR_CALLBACKS], result = 0;

	*inner_ret = 0;
	if (!uni_ocaml_read(look, closure, b))
		return 0;
	for (uint32_t k = b->first; k < b->nr; k++) {
		uint64_t v = b->word[k], code;

		if (uni_ocaml_is_number(v))
			continue;
		code = uni_ocaml_code(look, &own->ocaml, v);
		if (code >= own->lwt_start && code < own->lwt_end)
			*inner_ret = v;
		else if (code != 0 && t->nr_then < UNI_THREAD_THEN_MAX)
			t->then[t->nr_then++] = code;
		else if (code == 0 && result == 0)
			result = find_pending(look, v, callbacks);
	}
	return result;
}

/* Lwt.pick, Lwt.protected and others put a callback of theirs around the one that they mean. */
static uint64_t read_callback(struct uni_look *look, uint64_t closure, struct uni_guest_thread *t)
{
	uint32_t before = t->nr_then;
	uint64_t result = 0;

	for (unsigned i = 0; i < INNER_MAX && closure != 0 && result == 0 && t->nr_then == before;
		i++) {
		uint64_t inner;

		result = read_environment(look, closure, t, &inner);
		closure = inner;
	}
	return result;
}

/* The parts of a list of callbacks: concatenations, and callbacks of two kinds. */
struct parts {
	uint32_t nr;
	uint64_t v[LISTS_MAX];
};

/* The next closure of it; 0: no more. */
static uint64_t next_callback(struct uni_look *look, struct parts *p)
{
	struct own *own = look->m->own;

	while (p->nr != 0 && own->steps++ < STEPS_MAX) {
		uint64_t v = p->v[--p->nr], w[2];

		if (uni_ocaml_is(look, v, 0, 2, w)) {
			if (p->nr + 2 <= LISTS_MAX) {
				p->v[p->nr++] = w[1];
				p->v[p->nr++] = w[0];
			}
		} else if (uni_ocaml_is(look, v, 1, 1, w) ||
			   (uni_ocaml_is(look, v, 2, 1, w) && uni_ocaml_is(look, w[0], 0, 1, w) &&
				   uni_ocaml_is(look, w[0], 0, 1, w))) {
			return w[0];
		}
	}
	return 0;
}

/* From one callback to the promise that it resolves, and on to that one's first callback. */
static void follow_callbacks(struct uni_look *look, uint64_t closure, struct uni_guest_thread *t)
{
	for (unsigned i = 0; i < CHAIN_MAX && closure != 0; i++) {
		uint64_t result = read_callback(look, closure, t), callbacks[NR_CALLBACKS];
		struct parts p = { .nr = 1 };

		if (result == 0 || !read_pending(look, result, callbacks))
			return;
		p.v[0] = callbacks[REGULAR];
		closure = next_callback(look, &p);
	}
}

static void name_of_code(const struct uni_look *look, uint64_t code, char *ret, size_t cap)
{
	const struct own *own = look->m->own;
	const struct uni_symbol *s =
		code != 0 ? uni_image_lookup(own->img, code - look->m->bias) : NULL;
	const char *name = s != NULL ? uni_image_sym_name(own->img, s) : "";

	if (!uni_demangle(name, ret, cap))
		(void)snprintf(ret, cap, "%s", name);
}

/* A promise that can be cancelled tells who made it. It is in a queue (of Lwt_mvar, Lwt_condition
 * and others), or a function has to be called. */
static void read_reason(struct uni_look *look, uint64_t on_cancel, struct uni_guest_thread *t)
{
	struct own *own = look->m->own;
	const char *what = "a promise";
	uint64_t w[2], code = 0;

	for (unsigned i = 0; i < CHAIN_MAX && uni_ocaml_is(look, on_cancel, 0, 2, w); i++)
		on_cancel = w[0];
	if (uni_ocaml_is(look, on_cancel, 1, 2, w))
		code = uni_ocaml_code(look, &own->ocaml, w[1]);
	else if (uni_ocaml_is(look, on_cancel, 2, 1, w))
		what = "a queue";
	if (code >= own->sleep_start && code < own->sleep_end)
		t->state = UNI_THREAD_SLEEPING;
	else if (code != 0)
		name_of_code(look, code, t->wait_name, sizeof(t->wait_name));
	else
		(void)snprintf(t->wait_name, sizeof(t->wait_name), "%s", what);
}

static void set_state(
	struct uni_look *look, enum holder holder, uint64_t on_cancel, struct uni_guest_thread *t)
{
	t->state = holder == SLEEPERS ? UNI_THREAD_SLEEPING
		   : holder == PAUSED ? UNI_THREAD_READY
				      : UNI_THREAD_BLOCKED;
	if (holder == DEVICES)
		(void)snprintf(t->wait_name, sizeof(t->wait_name), "a device");
	else if (holder == NOBODY)
		read_reason(look, on_cancel, t);
}

static bool is_in_list(const struct uni_thread_list *list, uint64_t object)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		if (list->v[i].object == object)
			return true;
	}
	return false;
}

/* Promises come and go, and the collector moves them. So a thread is the same as before if it will
 * go on in the same functions. Those that are alike are told apart by their order. */
static bool add_waiter(struct uni_look *look, struct uni_guest_thread *t)
{
	struct own *own = look->m->own;

	/* Its outermost function. */
	name_of_code(look, t->then[t->nr_then - 1], t->name, sizeof(t->name));
	t->object = uni_hash_bytes(t->then, t->nr_then * sizeof(t->then[0]), 0) >> 16;
	while (is_in_list(look->list, t->object))
		t->object++;
	own->now = *t;
	return uni_look_add(look, t->object);
}

/* Each callback of a promise that does not wait for another one is a thread. */
static bool add_waiters(struct uni_look *look, const struct place *place)
{
	const struct own *own = look->m->own;
	uint64_t callbacks[NR_CALLBACKS], closure;
	struct parts p = { .nr = 1 };

	if (place->led_to || !read_pending(look, place->at, callbacks) ||
		!uni_ocaml_is_number(callbacks[HOW_TO_CANCEL]))
		return true;
	p.v[0] = callbacks[REGULAR];
	while ((closure = next_callback(look, &p)) != 0) {
		struct uni_guest_thread t = { .vcpu = -1 };

		follow_callbacks(look, closure, &t);
		/* No function of the program: that of Lwt. */
		if (t.nr_then == 0)
			t.then[t.nr_then++] = uni_ocaml_code(look, &own->ocaml, closure);
		if (t.then[0] == 0) /* it is just being moved */
			continue;
		set_state(look, place->holder, callbacks[ON_CANCEL], &t);
		if (!add_waiter(look, &t))
			return false;
	}
	return true;
}

/* Lwt.protected, and with it a stream's reader, has a promise that can be cancelled like one that
 * something outside resolves. But a callback of another one resolves it: its waiters are found from
 * there. */
static void mark_led_to(struct uni_look *look, const struct place *from)
{
	struct own *own = look->m->own;
	uint64_t callbacks[NR_CALLBACKS], closure;
	struct parts p = { .nr = 1 };

	if (!read_pending(look, from->at, callbacks))
		return;
	p.v[0] = callbacks[REGULAR];
	while ((closure = next_callback(look, &p)) != 0) {
		struct uni_guest_thread t = { .vcpu = -1 };
		uint64_t result = uni_ocaml_moved(look, read_callback(look, closure, &t));
		uint32_t slot = slot_of(own, result);

		if (own->slot[slot] != 0 && result != from->at)
			own->place[own->slot[slot] - 1].led_to = true;
	}
}

static void each_waiter(struct uni_look *look)
{
	struct own *own = look->m->own;
	uint32_t held;

	own->nr = 0;
	own->steps = 0;
	own->more = false;
	memset(own->slot, 0, sizeof(own->slot));
	for (size_t i = 0; i < own->nr_roots; i++)
		walk_root(look, i);
	held = own->nr;
	walk_stacks(look);
	walk_globals(look);
	for (uint32_t i = 0; i < own->nr; i++) {
		if (i >= held)
			mark_pending(look, i);
		if (i >= held || own->place[i].pending)
			expand_place(look, i);
	}
	for (uint32_t i = 0; i < own->nr; i++) {
		if (own->place[i].pending)
			mark_led_to(look, &own->place[i]);
	}
	own->more |= own->steps >= STEPS_MAX;
	own->steps = 0;
	for (uint32_t i = 0; i < own->nr; i++) {
		if (own->place[i].pending && !add_waiters(look, &own->place[i]))
			return;
	}
	if (own->more || own->steps >= STEPS_MAX)
		(void)uni_look_cut(look, UNI_THREADS_MORE);
}

static bool read_waiter(struct uni_look *look, struct uni_guest_thread *t)
{
	const struct own *own = look->m->own;

	*t = own->now;
	uni_look_blank(look, t);
	return true;
}

static uint64_t no_current_waiter(struct uni_look *look, uint32_t vcpu)
{
	(void)look;
	(void)vcpu;
	return 0;
}

static const struct uni_model_struct structs[] = { { 0 } };

const struct uni_guest_ops uni_guest_lwt = {
	.name = "lwt",
	.title = "Lwt",
	.no_stacks = true,
	.goes_on = true,
	.syms = { [LWT] = "camlLwt", [GLOBALS] = "caml_globals" },
	.structs = structs,
	.own_size = sizeof(struct own),
	.prepare = find_roots,
	.each = each_waiter,
	.read = read_waiter,
	.current = no_current_waiter,
};
