/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults in the middle of a block of code. Their handlers go on elsewhere: in another frame, behind
 * the instruction, or at a place that is named for it. Two accesses fault once: the push of a call,
 * on a stack that is loaded right before it, and a turn of `rep stos`.
 *
 * Known answer: each function is called once a round. Each second division faults.
 */
#include "lab.h"
#include "cpu.h"

#define PAGE_VA 0xffffffffc0003000
#define TURNS	200
#define SKIP	3 /* bytes of the division, and */
#define FIX	4 /* of a nop behind it */

void faults_guard(uint64_t a, uint64_t divisor);
void faults_fixed(uint64_t a, uint64_t divisor);
void faults_skipped(uint64_t a, uint64_t divisor);
void faults_undefined(void);
void faults_on_stack(uint64_t top);
void faults_repeated(uint64_t at, uint64_t turns);
void faults_place(void);
void faults_divide(void);
void faults_page(void);
void faults_map(void);

const char lab_app_name[] = "faults";
volatile uint64_t faults_began, faults_way;

static uint64_t *page_entry;
static uint64_t page_value;

void faults_map(void)
{
	lab_pte_set(page_entry, page_value);
}

static void hide(void)
{
	lab_pte_set(page_entry, 0);
	lab_tlb_flush(PAGE_VA);
}

LAB_FUNC static void one_round(uint64_t divisor)
{
	faults_way = 0;
	faults_guard(1, divisor);
	faults_way = FIX;
	faults_fixed(1, divisor);
	faults_way = SKIP;
	faults_skipped(1, divisor);
	faults_way = 2;
	faults_undefined();
	hide();
	faults_on_stack(PAGE_VA + LAB_PAGE_SIZE);
	hide();
	faults_repeated(PAGE_VA, TURNS);
	faults_place();
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(10);

	lab_map(PAGE_VA, lab_page_alloc(1), PTE_WRITE | PTE_NX, 12);
	page_entry = lab_map_entry(PAGE_VA, 12);
	page_value = *page_entry;
	lab_set_gate(0, faults_divide, 1);
	lab_set_gate(6, faults_divide, 1);
	lab_set_gate(14, faults_page, 1);
	for (uint64_t i = 0; i < rounds; i++)
		one_round(i % 2);
	lab_printf("lab: %lu began\n", faults_began);
}
