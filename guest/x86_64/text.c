/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies the text behind arguments into the ring, when the call is made.
 *
 * An argument may be any number, and a fault in a hook would end the guest. So each page is looked
 * up before it is read, by the guest's function or else in this CPU's page tables (SDM volume 3,
 * 4.5). Only a page that is present, that lies in the RAM that the guest named, and
 * that no protection keeps from the kernel, is read. Nothing else is: no device, and no memory that
 * a page fault would have to bring in. */
#include "uniscope/trace.h"

#include "conditions.h"
#include "cpu.h"
#include "machine.h"
#include "ring.h"
#include "saved.h"

#define PAGE	 4096u
#define PRESENT	 1u
#define USER	 4u
#define LARGE	 0x80u
#define ADDRESS	 0x000ffffffffff000u
#define KEY(pte) ((pte) >> 59 & 15)
#define LA57	 (1u << 12) /* CR4 */
#define SMAP	 (1u << 21)
#define PKE	 (1u << 22)
#define PKS	 (1u << 24)
#define DEVICES	 0xa0000u /* of a PC: from here to LOW_END, below all other RAM */
#define LOW_END	 0x100000u
#define REGS	 6 /* general registers for arguments */

void uni_trace_entry_text(void);
void uni_trace_slow_text(const struct saved *s);

static struct uni_trace_text_rules *rules;
static struct uni_trace_memory memory;

static uint64_t control_register(unsigned nr)
{
	uint64_t v;

	if (nr == 3)
		__asm__ volatile("mov %%cr3, %0" : "=r"(v));
	else
		__asm__ volatile("mov %%cr4, %0" : "=r"(v));
	return v;
}

/* Only the kernel may read the control registers. */
static int is_kernel(void)
{
	uint16_t cs;

	__asm__("mov %%cs, %0" : "=r"(cs));
	return !(cs & 3);
}

static uint64_t table_entry(uint64_t table, uint64_t index)
{
	if (table >= memory.size || memory.size - table < PAGE)
		return 0;
	return *(const volatile uint64_t *)(memory.linear + table + index * 8);
}

/* May the kernel read a page with these flags? `user`: every level lets user mode in. */
static int is_open(uint64_t cr4, uint64_t pte, int user)
{
	if (user)
		return !(cr4 & SMAP) && !((cr4 & PKE) && KEY(pte));
	return !((cr4 & PKS) && KEY(pte));
}

static int is_mapped(uint64_t at)
{
	uint64_t cr4 = control_register(4), table = control_register(3), pte, page;
	unsigned level = cr4 & LA57 ? 5 : 4, shift = 64 - (12 + 9 * level);
	int user = 1;

	if ((uint64_t)((int64_t)(at << shift) >> shift) != at)
		return 0;
	for (;; level--) {
		pte = table_entry(table & ADDRESS, at >> (3 + 9 * level) & 511);
		if (!(pte & PRESENT))
			return 0;
		user = user && (pte & USER);
		if (level == 1 || (level <= 3 && (pte & LARGE)))
			break;
		table = pte;
	}
	page = ((uint64_t)1 << (3 + 9 * level)) - 1;
	page = (pte & ADDRESS & ~page) | (at & page);
	return page < memory.size && (page < DEVICES || page >= LOW_END) && is_open(cr4, pte, user);
}

/* The number of bytes at `at`, up to `size`, that can be read. Stops at the end of the page. */
static uint64_t readable_bytes(uint64_t at, uint64_t size)
{
	uint64_t room = PAGE - at % PAGE;

	if (size > room)
		size = room;
	if (memory.readable)
		return memory.readable(at, size) ? size : 0;
	return is_kernel() && is_mapped(at) ? size : 0;
}

/* How many bytes to copy: of a text up to its NUL, or all `want` ones. *cut_ret: there is no NUL
 * among them. */
static uint64_t measure(uint64_t at, uint64_t want, int whole, int *cut_ret, int *bad_ret)
{
	uint64_t n = 0, more;

	*cut_ret = *bad_ret = 0;
	while (n < want) {
		more = readable_bytes(at + n, want - n);
		if (!more) {
			*bad_ret = 1;
			return n;
		}
		for (more += n; n < more; n++) {
			if (!whole && !*(const volatile char *)(at + n))
				return n;
		}
	}
	*cut_ret = 1;
	return n;
}

/* The words of the piece that argument i needs: what it is, and its bytes. */
static void add_piece(struct uni_trace_piece *p, const uint64_t *arg, unsigned i, unsigned most,
	int is_buffer, uint64_t *head)
{
	uint64_t n, want = most;
	int cut, bad;

	if (is_buffer && i + 1 < REGS && arg[i + 1] < most)
		want = arg[i + 1];
	/* One byte more shows whether a text ends there. */
	n = measure(arg[i], is_buffer ? want : want + 1, is_buffer, &cut, &bad);
	if (is_buffer)
		cut = i + 1 < REGS && arg[i + 1] > want;
	if (n > want)
		n = want;
	*head = i | (uint64_t)(cut ? UNI_TRACE_TEXT_CUT : 0) << 8 |
		(uint64_t)(bad ? UNI_TRACE_TEXT_BAD : 0) << 8 | n << 16;
	p[0] = (struct uni_trace_piece){ head, 8 };
	p[1] = (struct uni_trace_piece){ (const void *)arg[i], (uint32_t)n };
}

/* A copy, as the host may change the rule meanwhile. No such rule: no arguments. */
static struct uni_trace_text_rule rule_of(uint32_t function)
{
	const volatile struct uni_trace_text_rule *all = (const void *)(rules + 1);
	struct uni_trace_text_rule none = { 0 };
	uint32_t low = 0, high = *(const volatile uint32_t *)&rules->nr;

	if (high > rules->room)
		high = rules->room;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (all[middle].function == function)
			return all[middle];
		if (all[middle].function < function)
			low = middle + 1;
		else
			high = middle;
	}
	return none;
}

/* As an entry with arguments; texts come behind the registers. */
void uni_trace_slow_text(const struct saved *s)
{
	const uint64_t arg[REGS] = { s->rdi, s->rsi, s->rdx, s->rcx, s->r8, s->r9 };
	const uint32_t mode = *(volatile uint32_t *)&uni_trace_head.control.mode;
	int returns = !UNI_TRACE_ENTRIES_ONLY(mode);
	const uint64_t function = returns ? (uint32_t)(s->r11 - 5) : saved_call(s);
	const struct uni_trace_text_rule r = rule_of((uint32_t)function);
	unsigned class = returns ? UNI_TRACE_CLASS_ENTRY_ARGS : UNI_TRACE_CLASS_CALL_ARGS;
	struct uni_trace_piece piece[2 * REGS + 3];
	uint64_t head[REGS], read[UNI_TRACE_READ_WORDS];
	unsigned nr = 1, most = r.bytes < UNI_TRACE_TEXT_MAX ? r.bytes : UNI_TRACE_TEXT_MAX;

	if (uni_trace_leaves_out(arg, (uint32_t)function, saved_place(s), returns))
		return;
	piece[0] = (struct uni_trace_piece){ arg, sizeof(arg) };
	for (unsigned i = 0; i < REGS; i++) {
		if (!((r.arguments | r.buffers) & 1u << i) || !arg[i])
			continue;
		add_piece(&piece[nr], arg, i, most, r.buffers >> i & 1, &head[i]);
		nr += 2;
	}
	piece[nr++] = (struct uni_trace_piece){ read,
		8 * uni_trace_read_at_call((uint32_t)function, saved_place(s), returns, read) };
	piece[nr++] = (struct uni_trace_piece){ &function, sizeof(function) };
	uni_trace_write_pieces(uni_trace_this_cpu(), class, piece, nr);
}

int uni_trace_copy_text(void *mem, uint64_t size, const struct uni_trace_memory *from)
{
	struct uni_trace_hooks *hooks = (struct uni_trace_hooks *)uni_trace_head.hooks;
	uint64_t room = size / sizeof(struct uni_trace_text_rule);

	if (!hooks || (uint64_t)mem % 8 || room < 2)
		return -1;
	rules = mem;
	*rules = (struct uni_trace_text_rules){
		.room = room > UNI_TRACE_TEXT_RULES ? UNI_TRACE_TEXT_RULES : (uint32_t)room - 1
	};
	memory = *from;
	hooks->entry_text = (uint64_t)uni_trace_entry_text;
	uni_trace_head.text_rules = (uint64_t)rules;
	uni_machine_release();
	uni_trace_head.features |= UNI_TRACE_COPIES_TEXT;
	return 0;
}
