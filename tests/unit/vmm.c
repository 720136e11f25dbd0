/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/vmm/cmdline.h"
#include "backend/vmm/config.h"
#include "backend/vmm/fds.h"
#include "backend/vmm/maps.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/ram.h"
#include "backend/vmm/scan.h"
#include "backend/vmm/split.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Arguments separated by NUL, as the kernel shows them; the literal's own NUL ends the last. */
#define PARSE(exe, args, ret) uni_vmm_cmdline_parse((args), sizeof(args), (exe), (ret))

static void qemu_command_lines(void **state)
{
	struct uni_vmm_cmdline c;

	PARSE("/usr/bin/qemu-system-x86_64",
		"qemu-system-x86_64\0-M\0microvm,accel=kvm:tcg\0-m\0"
		"64\0-smp\0"
		"2\0-name\0guest=we\x1b[31mb,debug-threads=on\0-append\0-kernel\0-kernel\0/boot/a "
		"b.elf",
		&c);
	assert_string_equal(c.vmm, "qemu");
	assert_string_equal(c.accel, "kvm");
	assert_string_equal(c.machine, "microvm");
	assert_string_equal(c.name, "we\xef\xbf\xbd[31mb");
	assert_string_equal(c.image, "/boot/a b.elf");
	assert_int_equal(c.nr_vcpus, 2);
	assert_int_equal(c.mem_bytes, 64 * MIB);
	assert_false(c.confidential);

	PARSE("/opt/qemu-system-x86_64 (deleted)",
		"q\0--machine\0type=q35,max-ram-below-4g=1G\0-accel\0tcg,thread=multi\0-"
		"accel\0kvm\0"
		"-m\0size=1G,slots=2,maxmem=4G\0-smp\0sockets=2,cores=3,threads=2",
		&c);
	assert_string_equal(c.accel, "tcg");
	assert_string_equal(c.machine, "q35");
	assert_int_equal(c.max_below_4g, GIB);
	assert_int_equal(c.mem_bytes, GIB);
	assert_int_equal(c.nr_vcpus, 12);
	assert_string_equal(c.image, "");

	/* ',,' in a name is a comma; a value without its option is nobody's. */
	PARSE("", "/usr/libexec/qemu-kvm\0-name\0a,,b\0-enable-kvm\0-smp\0cpus=4,maxcpus=8\0-m",
		&c);
	assert_string_equal(c.name, "a,b");
	assert_string_equal(c.accel, "kvm");
	assert_int_equal(c.nr_vcpus, 4);
	assert_int_equal(c.mem_bytes, 0);
}

static void hidden_guests_are_seen(void **state)
{
	struct uni_vmm_cmdline c;

	PARSE("qemu-system-x86_64", "q\0-s\0-S\0-kernel\0k", &c);
	assert_string_equal(c.gdb_tcp, "127.0.0.1:1234");
	assert_string_equal(c.gdb_unix, "");
	PARSE("qemu-system-x86_64", "q\0-gdb\0tcp::12345\0-kernel\0k", &c);
	assert_string_equal(c.gdb_tcp, "127.0.0.1:12345");
	PARSE("qemu-system-x86_64", "q\0-object\0sev-guest,id=s\0-kernel\0k", &c);
	assert_true(c.confidential);
	PARSE("qemu-system-x86_64", "q\0-machine\0q35,confidential-guest-support=t", &c);
	assert_true(c.confidential);
	PARSE("qemu-system-x86_64", "q\0-machine\0q35,memory-encryption=t", &c);
	assert_true(c.confidential);
	PARSE("qemu-system-x86_64", "q\0-object\0{\"qom-type\":\"tdx-guest\",\"id\":\"t\"}", &c);
	assert_true(c.confidential);
	PARSE("cloud-hypervisor", "c\0--platform\0tdx=on\0--kernel\0k", &c);
	assert_true(c.confidential);
	/* Words for the guest, and names, are no options. */
	PARSE("qemu-system-x86_64", "q\0-append\0sev-guest\0-name\0tdx-guest", &c);
	assert_false(c.confidential);
	PARSE("qemu-system-x86_64", "q\0-readconfig\0/etc/x", &c);
	assert_true(c.opaque);
}

static void other_command_lines(void **state)
{
	static const char json[] =
		"{\"boot-source\":{\"kernel_image_path\":\"k.elf\",\"boot_args\":\"x\"},"
		"\"machine-config\":{\"vcpu_count\":2,\"mem_size_mib\":128}}";
	struct uni_vmm_cmdline c;

	PARSE("/usr/bin/firecracker-v1.7", "fc\0--id\0vm1\0--config-file=/etc/fc.json", &c);
	assert_string_equal(c.vmm, "firecracker");
	assert_string_equal(c.name, "vm1");
	assert_string_equal(c.config, "/etc/fc.json");
	assert_true(uni_vmm_config_parse(json, sizeof(json) - 1, &c));
	assert_string_equal(c.image, "k.elf");
	assert_int_equal(c.nr_vcpus, 2);
	assert_int_equal(c.mem_bytes, 128 * MIB);
	assert_false(uni_vmm_config_parse("[1]", 3, &c));
	assert_false(uni_vmm_config_parse("{", 1, &c));

	PARSE("cloud-hypervisor", "c\0--cpus\0boot=4,max=8\0--memory\0size=512M\0--kernel\0vm", &c);
	assert_int_equal(c.nr_vcpus, 4);
	assert_int_equal(c.mem_bytes, 512 * MIB);
	assert_string_equal(c.image, "vm");

	PARSE("crosvm",
		"crosvm\0run\0--mem\0"
		"256\0-c\0"
		"3\0vm.elf",
		&c);
	assert_int_equal(c.nr_vcpus, 3);
	assert_int_equal(c.mem_bytes, 256 * MIB);
	assert_string_equal(c.image, "vm.elf");

	PARSE("lkvm",
		"lkvm\0run\0-k\0vm.elf\0-m\0"
		"32\0--name\0g",
		&c);
	assert_string_equal(c.vmm, "kvmtool");
	assert_string_equal(c.image, "vm.elf");
	assert_string_equal(c.name, "g");

	PARSE("solo5-hvt", "solo5-hvt\0--mem=24\0--net:s0=tap0\0--\0u.hvt\0--verbose\0last", &c);
	assert_int_equal(c.mem_bytes, 24 * MIB);
	assert_string_equal(c.image, "u.hvt");

	PARSE("/bin/sleep", "qemu-system-x86_64\0-kernel\0k", &c); /* the name lies */
	assert_string_equal(c.vmm, "");
	uni_vmm_cmdline_parse("qemu-system-x86_64\0-kernel\0cut", 30, "qemu-system-x86_64", &c);
	assert_string_equal(c.image, ""); /* no NUL: cut off */
}

static void vcpu_links(void **state)
{
	uint32_t n;

	assert_true(uni_vmm_vcpu_of_link("anon_inode:kvm-vcpu:17", &n) && n == 17);
	assert_false(uni_vmm_vcpu_of_link("anon_inode:kvm-vcpu:", &n));
	assert_false(uni_vmm_vcpu_of_link("anon_inode:kvm-vcpu:1x", &n));
	assert_false(uni_vmm_vcpu_of_link("anon_inode:kvm-vcpu:4294967296", &n));
	assert_false(uni_vmm_vcpu_of_link("anon_inode:kvm-vm", &n));
}

static void maps_and_runs(void **state)
{
	static const char text[] =
		"1000-3000 ---p 00000000 00:00 0 \n"
		"3000-5000 r--p 00000000 00:00 0 \n"
		"5000-9000 rw-p 00000000 00:00 0 \n"
		"nonsense\n"
		"8000-a000 rw-p 00000000 00:00 0 \n" /* overlaps: passed over */
		"9000-b000 rw-s 00001000 00:05 77                 /memfd:ram (deleted)\n"
		"b000-c000 rw-s 00005000 00:05 77                 /memfd:ram (deleted)\n"
		"c000-d000 rw-s 00006000 00:05 77                 /memfd:ram (deleted)\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]";
	struct uni_vmm_maps m;
	uint64_t start, size;

	assert_int_equal(uni_vmm_maps_parse(text, sizeof(text) - 1, &m), 0);
	assert_int_equal(m.m.nr, 7);
	assert_null(uni_vmm_maps_find(&m, 0xfff));
	assert_int_equal(uni_vmm_maps_find(&m, 0x1000)->start, 0x1000);
	assert_string_equal(uni_vmm_maps_find(&m, 0xafff)->name, "/memfd:ram (deleted)");
	assert_int_equal(uni_vmm_maps_find(&m, 0xafff)->inode, 77);
	assert_null(uni_vmm_maps_find(&m, 0xd000));
	assert_false(uni_vmm_maps_find(&m, 0xafff)->executable);
	assert_true(uni_vmm_maps_find(&m, 0xffffffffff600000)->executable);
	/* Down to what is wanted and no further, whatever its protection; up while readable. */
	assert_true(uni_vmm_maps_run(&m, 0x6000, 0x6000, &start, &size));
	assert_true(start == 0x5000 && size == 0x4000);
	assert_true(uni_vmm_maps_run(&m, 0x6000, 0x1000, &start, &size));
	assert_true(start == 0x1000 && size == 0x8000);
	/* A file that does not go on is another run. */
	assert_true(uni_vmm_maps_run(&m, 0x9000, 0x9000, &start, &size));
	assert_true(start == 0x9000 && size == 0x2000);
	assert_true(uni_vmm_maps_run(&m, 0xb000, 0xb000, &start, &size));
	assert_true(start == 0xb000 && size == 0x2000);
	assert_false(uni_vmm_maps_run(&m, 0x1000, 0x1000, &start, &size));
	uni_vmm_maps_deinit(&m);
	assert_int_equal(uni_vmm_maps_parse("", 0, &m), 0);
	assert_int_equal(m.m.nr, 0);
}

static uint64_t below(const char *vmm, const char *machine, uint64_t mem, bool *goes_on)
{
	struct uni_vmm_cmdline c = { .mem_bytes = mem };
	uint64_t low;

	memcpy(c.vmm, vmm, strlen(vmm) + 1);
	memcpy(c.machine, machine, strlen(machine) + 1);
	*goes_on = uni_vmm_ram_split(&c, &low);
	return low;
}

static void ram_is_split_at_the_hole(void **state)
{
	bool on;

	assert_int_equal(below("qemu", "q35", 64 * MIB, &on), 64 * MIB);
	assert_int_equal(below("qemu", "pc-q35-7.2", 3 * GIB, &on), 2 * GIB);
	assert_true(on);
	assert_int_equal(below("qemu", "pc-i440fx-7.2", 3 * GIB, &on), 3 * GIB);
	assert_int_equal(below("qemu", "", 4 * GIB, &on), 3 * GIB);
	assert_int_equal(below("qemu", "microvm", 4 * GIB, &on), 3 * GIB);
	assert_int_equal(below("qemu", "virt", 8 * GIB, &on), 4 * GIB);
	assert_false(on);
	assert_int_equal(below("firecracker", "", 8 * GIB, &on), 0xd0000000);
	assert_false(on);
	(void)below("qemu", "pc", 0, &on);
	assert_false(on); /* the size is unknown */
}

/*
 * A made-up guest in this very process. Its image: two pages of code at GPA 2 MiB, GVA -2 GiB + 2
 * MiB. Page tables at GPA 1 MiB.
 */
#define PADDR	  (2 * MIB)
#define GVA	  0xffffffff80200000ull
#define CODE_SIZE 8000u
#define RAM_SIZE  (8 * MIB)
#define PAGE	  4096u

struct vm {
	uint8_t *ram, *code; /* code: the image file, at another offset in its page */
	void *file;
	struct uni_text_hint hint;
	struct uni_regs regs;
};

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void put_entry(struct vm *vm, uint64_t gpa, uint64_t entry)
{
	memcpy(vm->ram + gpa, &entry, sizeof(entry));
}

static void vm_init(struct vm *vm)
{
	const uint64_t top = MIB, l3 = MIB + PAGE, l2 = MIB + 2 * PAGE, bits = 3;

	memset(vm, 0, sizeof(*vm));
	/* File-backed, so that no mapping of this process can merge with it. */
	vm->ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(vm->ram, MAP_FAILED);
	vm->file = pages(4 * PAGE);
	vm->code = (uint8_t *)vm->file + 128;
	for (unsigned i = 0; i < CODE_SIZE; i++)
		vm->code[i] = (uint8_t)((i * 2654435761u) >> 13);
	memcpy(vm->ram + PADDR, vm->code, CODE_SIZE);
	vm->hint = (struct uni_text_hint){
		.gva = GVA, .paddr = PADDR, .bytes = vm->code, .size = CODE_SIZE, .exec = true
	};
	put_entry(vm, top + 8 * 511, l3 | bits);
	put_entry(vm, l3 + 8 * 510, l2 | bits);
	put_entry(vm, l2 + 8 * 1, PADDR | bits | 1 << 7); /* 2 MiB leaf */
	uni_regs_set_sys(&vm->regs, UNI_X86_CR0, 0x80000011);
	uni_regs_set_sys(&vm->regs, UNI_X86_CR3, top);
	uni_regs_set_sys(&vm->regs, UNI_X86_CR4, 0x20);
	uni_regs_set_sys(&vm->regs, UNI_X86_EFER, 0x500);
}

static void vm_deinit(struct vm *vm)
{
	(void)munmap(vm->ram, RAM_SIZE);
	(void)munmap(vm->file, 4 * PAGE);
}

static int find_ram(struct vm *vm, size_t nr_regs, struct uni_gmem **m,
	struct uni_vmm_ram_info *info, struct uni_err *err)
{
	const struct uni_vmm_ram_opts opts = {
		.text = &vm->hint, .nr_text = 1, .regs = &vm->regs, .nr_regs = nr_regs
	};

	return uni_vmm_ram_attach(getpid(), &opts, m, info, err);
}

/* The image as a loader keeps it: whole, and at the right offset in its page. It is too near the
 * start of its mapping for GPA 0 to be there. */
static uint8_t *loader_copy(const struct vm *vm)
{
	uint8_t *p = pages(4 * PAGE);

	memcpy(p + PAGE, vm->code, CODE_SIZE);
	return p;
}

static void ram_is_found_and_proved(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	struct vm vm;
	uint8_t *copy, buf[64];

	vm_init(&vm);
	copy = loader_copy(&vm);
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), 0);
	assert_int_equal(info.hva0, (uintptr_t)vm.ram);
	assert_int_equal(info.size_bytes, RAM_SIZE);
	assert_int_equal(info.proof, UNI_RAM_PROOF_TEXT | UNI_RAM_PROOF_WALK);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(PADDR), buf, sizeof(buf)), 0);
	assert_memory_equal(buf, vm.code, sizeof(buf));
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(RAM_SIZE - 1), buf, 2), -UNI_ERANGE);
	uni_gmem_destroy(m);

	/* Not paging yet: nothing to walk, the text has to do and the larger mapping wins. */
	uni_regs_set_sys(&vm.regs, UNI_X86_CR0, 0x11);
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), 0);
	assert_int_equal(info.hva0, (uintptr_t)vm.ram);
	assert_int_equal(info.proof, UNI_RAM_PROOF_TEXT);
	assert_true(info.nr_hits >= 2);
	uni_gmem_destroy(m);
	(void)munmap(copy, 4 * PAGE);
	vm_deinit(&vm);
}

static bool count_asked(void *ctx)
{
	(*(unsigned *)ctx)++;
	return true;
}

/* Its stack has grown over its page tables: they lead through each other without an end. If the
 * guest has ended meanwhile, no second of CPU time is spent on each copy of the code. */
static void search_ends_with_the_guest(void **state)
{
	struct uni_vmm_ram_opts opts = { .nr_text = 1, .nr_regs = 1, .anywhere = true };
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	unsigned nr_asked = 0;
	struct vm vm;
	uint8_t *copy;

	vm_init(&vm);
	copy = loader_copy(&vm);
	for (uint64_t i = 0; i < PAGE / 8; i++)
		put_entry(&vm, MIB + 8 * i, MIB | 3);
	opts.text = &vm.hint;
	opts.regs = &vm.regs;
	opts.over = count_asked;
	opts.over_ctx = &nr_asked;
	assert_int_equal(uni_vmm_ram_attach(getpid(), &opts, &m, &info, &err), -UNI_EMISMATCH);
	/* Once for each place at which it was about to walk. */
	assert_in_range(nr_asked, 1, 16);
	(void)munmap(copy, 4 * PAGE);
	vm_deinit(&vm);
}

static void ram_behind_other_mappings(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	uint8_t *big = pages(64 * MIB);
	struct vm vm;

	/* Not the biggest mapping, so the scan itself has to find it. */
	vm_init(&vm);
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), 0);
	assert_int_equal(info.hva0, (uintptr_t)vm.ram);
	assert_int_equal(info.proof, UNI_RAM_PROOF_TEXT | UNI_RAM_PROOF_WALK);
	uni_gmem_destroy(m);
	vm_deinit(&vm);
	(void)munmap(big, 64 * MIB);
}

static void wrong_images_are_refused(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	struct vm vm;

	/* One byte at the very end differs, and no registers say that it is the RAM for all that.
	 */
	vm_init(&vm);
	vm.ram[PADDR + CODE_SIZE - 1] ^= 1;
	assert_int_equal(find_ram(&vm, 0, &m, &info, &err), -UNI_EMISMATCH);
	assert_non_null(strstr(err.msg, "nearly"));

	/* More than one byte in a hundred does: then registers do not help either. */
	for (unsigned i = 0; i <= CODE_SIZE / 100; i++)
		vm.ram[PADDR + CODE_SIZE - 1 - i] = (uint8_t)~vm.code[CODE_SIZE - 1 - i];
	memset(&err, 0, sizeof(err));
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), -UNI_EMISMATCH);
	assert_non_null(strstr(err.msg, "began like it"));
	memcpy(vm.ram + PADDR, vm.code, CODE_SIZE);

	/* The code is there, the vCPU's tables lead elsewhere. */
	put_entry(&vm, MIB + 2 * PAGE + 8, (4 * MIB) | 3 | 1 << 7);
	memset(&err, 0, sizeof(err));
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), -UNI_EMISMATCH);
	assert_non_null(strstr(err.msg, "page tables"));

	/* Nothing to look for. */
	vm.hint.exec = false;
	memset(&err, 0, sizeof(err));
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), -UNI_EINVAL);
	vm_deinit(&vm);
	assert_null(m);
}

/* A guest that changed its own code, and the loader's copy that nobody changed. */
static void patched_code_is_proved_by_the_walk(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	struct vm vm;
	uint8_t *big, *copy;

	vm_init(&vm);
	for (unsigned i = 0; i < 40; i++)
		vm.ram[PADDR + CODE_SIZE - 1 - 2 * i] ^= 0xff;
	/* RAM is the biggest mapping; then another is, and the whole process is searched. */
	for (int turn = 0; turn < 2; turn++) {
		big = turn != 0 ? pages(64 * MIB) : NULL;
		copy = loader_copy(&vm);
		assert_int_equal(find_ram(&vm, 1, &m, &info, &err), 0);
		assert_int_equal(info.hva0, (uintptr_t)vm.ram);
		assert_int_equal(info.proof, UNI_RAM_PROOF_TEXT | UNI_RAM_PROOF_WALK);
		assert_int_equal(info.nr_differ, 40);
		assert_non_null(strstr(info.note, "code verified but for 40 changed bytes"));
		uni_gmem_destroy(m);
		/* Without registers only what is exact counts. */
		assert_int_equal(find_ram(&vm, 0, &m, &info, &err), 0);
		assert_ptr_not_equal((uint8_t *)(uintptr_t)info.hva0, vm.ram);
		assert_int_equal(info.nr_differ, 0);
		uni_gmem_destroy(m);
		(void)munmap(copy, 4 * PAGE);
		if (big != NULL)
			(void)munmap(big, 64 * MIB);
	}
	vm_deinit(&vm);
}

/* The tables lead to a place that holds two fifths of the code. */
static void half_the_code_is_refused(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	struct vm vm;

	vm_init(&vm);
	for (unsigned i = CODE_SIZE * 39 / 100; i < CODE_SIZE; i++)
		vm.ram[PADDR + i] = (uint8_t)~vm.code[i];
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), -UNI_EMISMATCH);
	assert_null(m);
	vm_deinit(&vm);
}

/* 600 bytes of 80000 would do, but not all of them in one page. */
static void one_other_page_is_refused(void **state)
{
	struct uni_text_hint hint = { .paddr = 64, .size = 80000, .exec = true };
	uint8_t *ram = pages(1 << 17), *code = pages(1 << 17);
	uint64_t differ;

	for (unsigned i = 0; i < hint.size; i++)
		code[i] = ram[64 + i] = (uint8_t)((i * 2654435761u) >> 13);
	hint.bytes = code;
	for (unsigned i = 0; i < 600; i++)
		ram[64 + i * 100] ^= 1;
	assert_int_equal(uni_scan_verify(getpid(), (uintptr_t)ram, &hint, 1, &differ), 0);
	assert_int_equal(differ, 600);
	memcpy(ram + 64, code, hint.size);
	for (unsigned i = 0; i < 600; i++)
		ram[16 * PAGE + i] ^= 1;
	assert_int_equal(
		uni_scan_verify(getpid(), (uintptr_t)ram, &hint, 1, &differ), -UNI_EMISMATCH);
	(void)munmap(ram, 1 << 17);
	(void)munmap(code, 1 << 17);
}

static int fake_gpa2hva(void *ctx, uint64_t gpa, uint64_t *hva_ret)
{
	const struct vm *vm = ctx;

	if (gpa == 4 * GIB) /* the upper half of the block */
		*hva_ret = (uintptr_t)vm->ram + RAM_SIZE / 2;
	else
		*hva_ret = (uintptr_t)vm->ram + gpa;
	return gpa == 4 * GIB || gpa < RAM_SIZE / 2 ? 0 : -UNI_EFAULT;
}

static void the_vmm_is_asked(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_err err = { 0 };
	struct uni_gmem *m = NULL;
	struct vm vm;
	struct uni_vmm_ram_opts opts = { .gpa2hva = fake_gpa2hva, .gpa2hva_ctx = &vm };
	uint8_t byte;

	vm_init(&vm);
	assert_int_equal(uni_vmm_ram_attach(getpid(), &opts, &m, &info, &err), 0);
	assert_int_equal(info.proof, UNI_RAM_PROOF_VMM);
	assert_int_equal(uni_gmem_nr_regions(m), 2);
	assert_int_equal(uni_gmem_region(m, 0)->size, RAM_SIZE / 2);
	assert_int_equal(uni_gmem_region(m, 1)->start, 4 * GIB);
	vm.ram[RAM_SIZE - 1] = 0x5a;
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(4 * GIB + RAM_SIZE / 2 - 1), &byte, 1), 0);
	assert_int_equal(byte, 0x5a);
	uni_gmem_destroy(m);
	/* It is right about the RAM, and the image is another one. */
	opts.text = &vm.hint;
	opts.nr_text = 1;
	vm.ram[PADDR] ^= 1;
	assert_int_equal(uni_vmm_ram_attach(getpid(), &opts, &m, &info, &err), 0);
	assert_int_equal(info.proof, UNI_RAM_PROOF_VMM | UNI_RAM_PROOF_TEXT);
	assert_int_equal(info.nr_differ, 1);
	uni_gmem_destroy(m);
	memset(vm.ram + PADDR, 0, PAGE);
	assert_int_equal(uni_vmm_ram_attach(getpid(), &opts, &m, &info, &err), -UNI_EMISMATCH);
	vm_deinit(&vm);
}

/* Looking must not make the kernel back guest memory that the guest never used. */
static void absent_pages_stay_absent(void **state)
{
	struct uni_vmm_ram_info info;
	struct uni_gmem *m = NULL;
	struct uni_err err = { 0 };
	unsigned char in[RAM_SIZE / PAGE];
	unsigned before = 0, after = 0;
	struct vm vm;

	vm_init(&vm);
	uni_regs_set_sys(&vm.regs, UNI_X86_CR0, 0x11);
	assert_int_equal(mincore(vm.ram, RAM_SIZE, in), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		before += in[i] & 1;
	assert_int_equal(find_ram(&vm, 1, &m, &info, &err), 0);
	assert_int_equal(mincore(vm.ram, RAM_SIZE, in), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		after += in[i] & 1;
	assert_int_equal(after, before);
	uni_gmem_destroy(m);
	vm_deinit(&vm);
}

static void processes(void **state)
{
	struct uni_target_info info;
	struct uni_target_info *list = NULL;
	size_t nr = 0;

	assert_int_equal(uni_vmm_describe(getpid(), &info), -UNI_ENOENT);
	assert_int_equal(info.pid, getpid());
	assert_int_equal(uni_vmm_describe(INT32_MAX, &info), -UNI_EGONE);
	assert_int_equal(uni_vmm_list(&list, &nr, NULL), 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_not_equal(list[i].pid, getpid());
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qemu_command_lines),
		cmocka_unit_test(hidden_guests_are_seen),
		cmocka_unit_test(other_command_lines),
		cmocka_unit_test(vcpu_links),
		cmocka_unit_test(maps_and_runs),
		cmocka_unit_test(ram_is_split_at_the_hole),
		cmocka_unit_test(ram_is_found_and_proved),
		cmocka_unit_test(search_ends_with_the_guest),
		cmocka_unit_test(ram_behind_other_mappings),
		cmocka_unit_test(wrong_images_are_refused),
		cmocka_unit_test(patched_code_is_proved_by_the_walk),
		cmocka_unit_test(half_the_code_is_refused),
		cmocka_unit_test(one_other_page_is_refused),
		cmocka_unit_test(the_vmm_is_asked),
		cmocka_unit_test(absent_pages_stay_absent),
		cmocka_unit_test(processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
