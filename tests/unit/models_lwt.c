/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a program on Lwt that is not compiled for uniscope: from its heap. usage:
 * test-models-lwt FOLDER-OF-IMAGES */
#include "models.h"

#define HEAP_WORDS 8192u
#define NUMBER(n)  ((uint64_t)(n) << 1 | 1)
#define NOTHING	   NUMBER(0)

enum { CLOSURE = 247, INFIX = 249, CUSTOM = 255 };

static struct bench b;
static uint64_t heap, used; /* its address, and words of it */

static void open_heap(void)
{
	struct uni_gmem_region region;
	int rc = -1;

	assert_true(load(&b, "lwt-gcc", &rc));
	assert_int_equal(rc, 0);
	assert_string_equal(uni_model_name(b.img), "lwt");
	assert_false(uni_model_wants_debug(b.img));
	load_ram(&b);
	heap = b.start + b.size;
	used = 0;
	b.size += HEAP_WORDS * 8;
	b.ram = realloc(b.ram, (size_t)b.size);
	assert_non_null(b.ram);
	memset(b.ram + (heap - b.start), 0, HEAP_WORDS * 8);
	region = (struct uni_gmem_region){ .start = b.start, .size = b.size };
	assert_int_equal(
		uni_gmem_create(&ram_ops, &b, UNI_GMEM_VIRTUAL, &region, 1, &b.m, &b.err), 0);
	assert_int_equal(uni_as_create(b.m, &uni_as_budget_once, &b.as, &b.err), 0);
	b.list = uni_thread_list_create(64);
	assert_non_null(b.list);
	b.regs[0].pc_valid = true;
}

static void poke(uint64_t address, uint64_t v)
{
	assert_true(address >= b.start && address + 8 <= b.start + b.size);
	memcpy(b.ram + (address - b.start), &v, sizeof(v));
}

static uint64_t block(unsigned tag, size_t nr, const uint64_t *word)
{
	uint64_t at = heap + 8 * (used + 1);

	assert_true(used + nr + 1 <= HEAP_WORDS);
	poke(at - 8, (uint64_t)nr << 10 | tag);
	for (size_t i = 0; i < nr; i++)
		poke(at + 8 * i, word[i]);
	used += nr + 1;
	return at;
}

#define BLOCK(tag, ...)                                                    \
	block(tag, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
		(const uint64_t[]){ __VA_ARGS__ })

/* With one argument: code, arity and where the environment begins, the environment. */
#define INFO(arity, environment) ((uint64_t)(arity) << 56 | (uint64_t)(environment) << 1 | 1)

static uint64_t function(const char *name)
{
	return BLOCK(CLOSURE, address(&b, name), INFO(1, 2));
}

static uint64_t pending(uint64_t regular, uint64_t on_cancel, uint64_t how)
{
	return BLOCK(0, BLOCK(2, BLOCK(0, regular, on_cancel, how, NUMBER(0))));
}

/* Lwt.bind registers this: it calls the function, and resolves the promise. */
static uint64_t bind(const char *name, uint64_t result)
{
	return BLOCK(1, BLOCK(CLOSURE, address(&b, "camlLwt__callback_1"), INFO(1, 2),
				function(name), NOTHING, result));
}

static const struct uni_guest_thread *thread_of(const char *name)
{
	for (uint32_t i = 0; i < b.list->nr; i++) {
		if (strcmp(b.list->v[i].name, name) == 0)
			return &b.list->v[i];
	}
	return NULL;
}

static uint32_t look(void)
{
	walk(&b, 1);
	return b.list->nr;
}

static uint64_t waiter(const char *name)
{
	return pending(bind(name, pending(NOTHING, NOTHING, NOTHING)), NOTHING, NUMBER(1));
}

/* Each holder of the main loop, and how deep in it the promise is. */
static void held_by_main_loop(void **state)
{
	const struct uni_guest_thread *t;
	uint64_t name;

	open_heap();
	assert_false(uni_model_has_stacks(b.model));
	assert_true(uni_model_has_chains(b.model));
	assert_int_equal(look(), 0);
	/* { size; array of { time; cancelled; promise }; dummy } */
	name = BLOCK(0, BLOCK(CUSTOM, 0x1234, 5), NUMBER(0), waiter("camlApp__beat_1"));
	put64(&b, "camlSolo5_os__Time__data_begin", 8,
		BLOCK(0, NUMBER(1), BLOCK(0, name, name), name));
	/* A map from a handle to a condition, which has a list of nodes. */
	name = BLOCK(0, waiter("camlApp__serve_2"), NUMBER(1));
	poke(name + 8, name);
	put64(&b, "camlSolo5_os__Main.data_begin", 0,
		BLOCK(0, BLOCK(0, NOTHING, NUMBER(3), BLOCK(0, name), NOTHING, NUMBER(1))));
	put64(&b, "camlLwt__data_begin", 8, waiter("camlApp__main_3"));
	assert_int_equal(look(), 3);
	assert_int_equal(b.list->cut, UNI_THREADS_WHOLE);
	t = thread_of("App.beat");
	assert_non_null(t);
	assert_int_equal(t->state, UNI_THREAD_SLEEPING);
	assert_int_equal(t->nr_then, 1);
	assert_true(t->then[0] == address(&b, "camlApp__beat_1"));
	t = thread_of("App.serve");
	assert_non_null(t);
	assert_int_equal(t->state, UNI_THREAD_BLOCKED);
	assert_string_equal(t->wait_name, "a device");
	t = thread_of("App.main");
	assert_non_null(t);
	assert_int_equal(t->state, UNI_THREAD_READY);
	close_bench(&b);
}

/* The program's modules hold them; each may have several blocks. */
static void held_by_modules(void **state)
{
	uint64_t module, other;

	open_heap();
	module = BLOCK(0, NUMBER(3), BLOCK(0, waiter("camlApp__serve_2")));
	other = BLOCK(0, waiter("camlApp__main_3"));
	put64(&b, "caml_globals", 0, BLOCK(0, module, 0));
	put64(&b, "caml_globals", 8, BLOCK(0, module, other, 0, waiter("camlApp__beat_1"), 0));
	assert_int_equal(look(), 2);
	assert_int_equal(b.list->cut, UNI_THREADS_WHOLE);
	assert_non_null(thread_of("App.serve"));
	assert_non_null(thread_of("App.main"));
	assert_string_equal(thread_of("App.main")->wait_name, "a promise");
	put64(&b, "caml_globals", 0, UINT64_MAX - 7);
	assert_int_equal(look(), 2);
	put64(&b, "caml_globals", 0, 0);
	assert_int_equal(look(), 0);
	close_bench(&b);
}

/* Lwt.pick's callback takes itself off other promises, and then calls the one that it is around. */
static void callback_around_another(void **state)
{
	uint64_t code, inner;

	open_heap();
	code = address(&b, "camlLwt__callback_1");
	inner = BLOCK(CLOSURE, code, INFO(1, 2), waiter("camlApp__serve_2"));
	inner = BLOCK(CLOSURE, code, INFO(1, 2), BLOCK(0, NOTHING), inner, NUMBER(4));
	put64(&b, "camlSolo5_os__Time__data_begin", 0,
		pending(BLOCK(1, inner), NOTHING, NUMBER(1)));
	assert_int_equal(look(), 1);
	assert_non_null(thread_of("App.serve"));
	assert_int_equal(thread_of("App.serve")->state, UNI_THREAD_SLEEPING);
	close_bench(&b);
}

/* Lwt.protected, and with it the reader of a stream: a promise that looks as if something outside
 * resolved it, but it waits for another one. */
static void reader_is_one_thread(void **state)
{
	const struct uni_guest_thread *t;
	uint64_t guarded, signal, both;

	open_heap();
	guarded = pending(
		bind("camlApp__serve_2", pending(NOTHING, NOTHING, NUMBER(1))), NOTHING, NUMBER(1));
	signal = pending(
		BLOCK(1, BLOCK(CLOSURE, address(&b, "camlLwt__callback_1"), INFO(1, 2), guarded)),
		NOTHING, NUMBER(1));
	put64(&b, "camlSolo5_os__Time__data_begin", 0, guarded);
	put64(&b, "camlSolo5_os__Time__data_begin", 8, signal);
	assert_int_equal(look(), 1);
	t = b.list->v;
	assert_string_equal(t->name, "App.serve");
	assert_int_equal(t->nr_then, 1);
	/* Between them is one that waits for others, as of a stream that a function fills. */
	both = pending(
		BLOCK(1, BLOCK(CLOSURE, address(&b, "camlLwt__callback_1"), INFO(1, 2), guarded)),
		NOTHING, BLOCK(0, NOTHING));
	put64(&b, "camlSolo5_os__Time__data_begin", 8,
		pending(bind("camlApp__beat_1", both), NOTHING, NUMBER(1)));
	assert_int_equal(look(), 1);
	assert_int_equal(t->nr_then, 2);
	assert_string_equal(t->name, "App.serve");
	/* Nothing else resolves it. */
	put64(&b, "camlSolo5_os__Time__data_begin", 8, NOTHING);
	assert_int_equal(look(), 1);
	assert_int_equal(t->nr_then, 1);
	close_bench(&b);
}

/* A sleeper wakes a function, which another one waits for, with a third one. That one waits for
 * nothing that the main loop has. */
static void led_to_by_others(void **state)
{
	const struct uni_guest_thread *t;
	uint64_t whole, both, one, other, proxy, object;

	open_heap();
	whole = pending(NOTHING, NOTHING, NUMBER(1));
	both = BLOCK(0, NUMBER(0));
	one = pending(bind("camlApp__main_3", whole), NOTHING, BLOCK(0, both));
	poke(both, one); /* it can be cancelled by that: any promise */
	/* With a proxy on the way, and a callback that can be removed. */
	proxy = BLOCK(0, BLOCK(3, one));
	other = BLOCK(
		2, BLOCK(0, BLOCK(0, BLOCK(CLOSURE, address(&b, "camlLwt__callback_1"), INFO(1, 2),
					     function("camlApp__serve_2"), proxy))));
	put64(&b, "camlSolo5_os__Time__data_begin", 0, pending(other, NOTHING, NUMBER(0)));
	assert_int_equal(look(), 1);
	t = b.list->v;
	assert_string_equal(t->name, "App.main");
	assert_int_equal(t->nr_then, 2);
	assert_true(t->then[0] == address(&b, "camlApp__serve_2") &&
		    t->then[1] == address(&b, "camlApp__main_3"));
	/* Backwards: what is to be cancelled with it. Three wait for it, and a function is
	 * called on a cancel. */
	object = t->object;
	other = pending(
		BLOCK(0, bind("camlApp__beat_1", whole),
			BLOCK(0, bind("camlApp__beat_1", whole), bind("camlApp__serve_2", whole))),
		BLOCK(0, BLOCK(1, NOTHING, function("camlLwt_unix__fun_4")), NOTHING), NUMBER(1));
	poke(both, other);
	assert_int_equal(look(), 4);
	assert_non_null(thread_of("App.serve"));
	assert_true(b.list->v[0].object == object);
	t = &b.list->v[1];
	assert_string_equal(t[0].name, "App.beat");
	assert_string_equal(t[1].name, "App.beat");
	assert_true(t[0].object != t[1].object);
	assert_string_equal(t[0].wait_name, "Lwt_unix.fun_4");
	assert_int_equal(t[0].state, UNI_THREAD_BLOCKED);
	/* A queue, or nothing that is known. */
	other = pending(bind("camlApp__beat_1", whole), BLOCK(2, NOTHING), NUMBER(1));
	poke(both, other);
	assert_int_equal(look(), 2);
	assert_string_equal(b.list->v[1].wait_name, "a queue");
	poke(both, pending(bind("camlApp__beat_1", whole), NOTHING, NUMBER(0)));
	assert_int_equal(look(), 2);
	assert_string_equal(b.list->v[1].wait_name, "a promise");
	close_bench(&b);
}

/* Two closures in one block, with several arguments: the code is the third word. */
static void closures_of_all_kinds(void **state)
{
	uint64_t shared, callback;

	open_heap();
	shared = BLOCK(CLOSURE, address(&b, "camlApp__beat_1"), INFO(1, 6), 4ull << 10 | INFIX,
		address(&b, "camlApp__beat_1"), INFO(2, 3), address(&b, "camlApp__serve_2"),
		NOTHING);
	poke(shared + 8 * 2, 3ull << 10 | INFIX);
	callback = BLOCK(1, BLOCK(CLOSURE, address(&b, "camlLwt__callback_1"), INFO(1, 2),
				    shared + 8 * 3, NOTHING));
	put64(&b, "camlSolo5_os__Time__data_begin", 0, pending(callback, NOTHING, NUMBER(0)));
	assert_int_equal(look(), 1);
	assert_string_equal(b.list->v[0].name, "App.serve");
	/* No function of the program: that of Lwt. */
	callback =
		BLOCK(1, BLOCK(CLOSURE, address(&b, "camlLwt__callback_1"), INFO(1, 2), NOTHING));
	put64(&b, "camlSolo5_os__Time__data_begin", 0, pending(callback, NOTHING, NUMBER(0)));
	assert_int_equal(look(), 1);
	assert_string_equal(b.list->v[0].name, "Lwt.callback");
	close_bench(&b);
}

/* The vCPU is in OCaml, and then in C on a stack of its own (OCaml 5). */
static void found_on_stacks(void **state)
{
	uint64_t stack, below, structure;

	open_heap();
	below = BLOCK(CUSTOM, 0, 0, waiter("camlApp__main_3"), 0);
	stack = BLOCK(CUSTOM, 0, 0x10, 0, 0);
	b.regs[0].sp = below;
	b.regs[0].sp_valid = true;
	assert_int_equal(look(), 1);
	assert_string_equal(b.list->v[0].name, "App.main");
	structure = BLOCK(CUSTOM, below, 0, 0);
	poke(stack + 8, structure);
	poke(stack + 16, below);
	/* Only what is on the stacks: the last block of the heap is the stack that C runs on. */
	b.regs[0].sp = stack;
	assert_int_equal(look(), 1);
	poke(stack + 16, below + 8);
	assert_int_equal(look(), 0);
	close_bench(&b);
}

/* The collector has copied the promise, its state, and the callback: those that refer to them do
 * not know yet. */
static void moved_blocks(void **state)
{
	uint64_t list, old, promise, p;

	open_heap();
	list = bind("camlApp__serve_2", pending(NOTHING, NOTHING, NUMBER(1)));
	promise = pending(list, NOTHING, NUMBER(1));
	old = BLOCK(0, promise);
	poke(old - 8, 0);
	p = BLOCK(0, NUMBER(0));
	memcpy(&p, b.ram + (list - b.start), 8); /* the closure */
	poke(list, BLOCK(0, p));
	memcpy(&p, b.ram + (list - b.start), 8);
	poke(p - 8, 0);
	put64(&b, "camlSolo5_os__Time__data_begin", 0, old);
	put64(&b, "camlSolo5_os__Time__data_begin", 8, promise);
	assert_int_equal(look(), 1);
	assert_string_equal(b.list->v[0].name, "App.serve");
	assert_int_equal(b.list->v[0].state, UNI_THREAD_SLEEPING);
	/* One whose callback is half copied. */
	poke(p, NUMBER(0));
	assert_int_equal(look(), 0);
	close_bench(&b);
}

static void hostile_heaps(void **state)
{
	uint64_t loop, p;

	open_heap();
	/* A promise that is resolved by its own callback, and a list that is its own part. */
	p = pending(NOTHING, NOTHING, NUMBER(0));
	loop = BLOCK(0, bind("camlApp__beat_1", p), NOTHING);
	poke(loop + 8, loop);
	poke(heap, 0);
	put64(&b, "camlSolo5_os__Time__data_begin", 0, pending(loop, loop, NUMBER(0)));
	assert_true(look() <= 64);
	assert_true(b.list->nr != 0);
	/* The same without an end, and with no closure in it. */
	poke(loop, loop);
	put64(&b, "camlSolo5_os__Time__data_begin", 0, pending(loop, NOTHING, NUMBER(0)));
	assert_int_equal(look(), 0);
	poke(loop, BLOCK(1, p));
	assert_int_equal(look(), 0);
	/* A proxy of itself. */
	p = BLOCK(0, NUMBER(0));
	poke(p, BLOCK(3, p));
	put64(&b, "camlSolo5_os__Time__data_begin", 0,
		pending(bind("camlApp__beat_1", p), NOTHING, NUMBER(0)));
	assert_int_equal(look(), 1);
	/* Sizes that reach beyond memory, an infix closure without a block, no memory at all. */
	p = BLOCK(0, NUMBER(0));
	for (unsigned i = 0; i < 4; i++) {
		poke(p - 8, (const uint64_t[]){ UINT64_MAX, 1ull << 33, 9999ull << 10 | INFIX,
				    200ull << 10 | CLOSURE }[i]);
		put64(&b, "camlSolo5_os__Time__data_begin", 0, p);
		assert_int_equal(look(), 0);
	}
	put64(&b, "camlSolo5_os__Time__data_begin", 0, UINT64_MAX - 7);
	put64(&b, "camlSolo5_os__Time__data_begin", 8, 1ull << 40);
	assert_int_equal(look(), 0);
	close_bench(&b);
}

/* More blocks than are looked at: it says so. */
static void more_than_is_looked_at(void **state)
{
	uint64_t all[16], word[130];

	open_heap();
	for (unsigned i = 0; i < 16; i++) {
		for (unsigned k = 0; k < 130; k++)
			word[k] = BLOCK(0, NUMBER(k));
		all[i] = block(0, 130, word);
	}
	put64(&b, "camlLwt__data_begin", 0, block(0, 15, all));
	assert_int_equal(look(), 0);
	assert_int_equal(b.list->cut, UNI_THREADS_WHOLE);
	put64(&b, "camlLwt__data_begin", 0, block(0, 16, all));
	assert_int_equal(look(), 0);
	assert_int_equal(b.list->cut, UNI_THREADS_MORE);
	close_bench(&b);
}

/* A reader that is slow, or whose memory is missing: a list that lacks threads is not called
 * whole. */
static void reading_that_ended_early(void **state)
{
	uint64_t module;

	open_heap();
	module = BLOCK(0, NUMBER(3), BLOCK(0, waiter("camlApp__serve_2")));
	(void)BLOCK(CUSTOM, 0, 0);
	used = 4096; /* on another page */
	put64(&b, "caml_globals", 0, BLOCK(0, module, 0));
	put64(&b, "camlSolo5_os__Time__data_begin", 8, waiter("camlApp__beat_1"));
	put64(&b, "camlLwt__data_begin", 8, waiter("camlApp__main_3"));
	expect_no_short_list(&b, 3);
	expect_unread_list(&b);
	close_bench(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_by_main_loop),
		cmocka_unit_test(held_by_modules),
		cmocka_unit_test(callback_around_another),
		cmocka_unit_test(reader_is_one_thread),
		cmocka_unit_test(led_to_by_others),
		cmocka_unit_test(closures_of_all_kinds),
		cmocka_unit_test(found_on_stacks),
		cmocka_unit_test(moved_blocks),
		cmocka_unit_test(hostile_heaps),
		cmocka_unit_test(more_than_is_looked_at),
		cmocka_unit_test(reading_that_ended_early),
	};

	if (argc != 2)
		return 2;
	images = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
