/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of QEMU's interface for TCG plugins that we use. We declare it ourselves, because no
 * distribution ships its header. Version 1 is that of QEMU 6 to 8.2, version 4 that of 10.0.
 * Functions that only one version has are weak: their addresses tell which QEMU has loaded us.
 */
#ifndef UNI_PLUGIN_QEMU_H
#define UNI_PLUGIN_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;

typedef struct qemu_info_t {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
} qemu_info_t;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

/*
 * With version 1 of QEMU 7.2, a request for reads alone gives nothing, and one for writes alone
 * gives both. So we ask for both.
 */
enum { QEMU_CB_NO_REGS = 0, QEMU_INLINE_ADD_U64 = 0, QEMU_MEM_RW = 3 };

typedef uint32_t qemu_plugin_meminfo_t;
typedef void (*qemu_vcpu_udata_fn)(unsigned vcpu, void *udata);
typedef void (*qemu_mem_fn)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata);

void qemu_plugin_register_vcpu_tb_trans_cb(
	qemu_plugin_id_t id, void (*fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(
	struct qemu_plugin_tb *tb, qemu_vcpu_udata_fn fn, int flags, void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(
	struct qemu_plugin_insn *insn, qemu_vcpu_udata_fn fn, int flags, void *udata);
void qemu_plugin_register_vcpu_mem_cb(
	struct qemu_plugin_insn *insn, qemu_mem_fn fn, int flags, int rw, void *udata);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
void qemu_plugin_register_atexit_cb(
	qemu_plugin_id_t id, void (*fn)(qemu_plugin_id_t id, void *udata), void *udata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_outs(const char *string);

/* Version 1 gives the instruction's bytes, version 3 and later copy them: see insn_bytes(). */
extern char qemu_plugin_insn_data[];

/* Version 1 only. */
void qemu_plugin_register_vcpu_insn_exec_inline(
	struct qemu_plugin_insn *insn, int op, void *ptr, uint64_t imm) __attribute__((weak));
void qemu_plugin_register_vcpu_tb_exec_inline(
	struct qemu_plugin_tb *tb, int op, void *ptr, uint64_t imm) __attribute__((weak));

/* Since version 2, and since version 4. */
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size)
	__attribute__((weak));
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned vcpu)
	__attribute__((weak));
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int op,
	qemu_plugin_u64 entry, uint64_t imm) __attribute__((weak));
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
	qemu_plugin_u64 entry, uint64_t imm) __attribute__((weak));
bool qemu_plugin_read_memory_vaddr(uint64_t addr, void *data, size_t len) __attribute__((weak));

/* QEMU looks these up in the plugin. */
extern __attribute__((visibility("default"))) int qemu_plugin_version;
__attribute__((visibility("default"))) int qemu_plugin_install(
	qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

#endif
