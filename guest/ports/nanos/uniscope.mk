# SPDX-License-Identifier: BSD-2-Clause
# Included by platform/pc/Makefile of Nanos. make UNISCOPE=FOLDER links the sampler and its port in. With UNISCOPE_TRACE=1, too, the
# kernel's functions can be traced, but for those of UNISCOPE_LEFT: some run in user mode, or never return. UNISCOPE_PROGRAM prepares
# the kernel. After a change of these: make clean.
UNISCOPE_NAMES := ring conditions promise sample stream stream_code stream_memory machine hooks nmi self
UNISCOPE_OBJS := $(patsubst %,$(OBJDIR)/uniscope/%.o,$(UNISCOPE_NAMES))
UNISCOPE_INCLUDE := -I$(UNISCOPE)/include -I$(UNISCOPE)/guest -I$(UNISCOPE)/guest/x86_64
UNISCOPE_GS := -DUNI_TRACE_GS=64
UNISCOPE_FLAGS := $(UNISCOPE_INCLUDE) $(UNISCOPE_GS) -O2 -g -ffreestanding -fpie -mgeneral-regs-only \
	-fno-omit-frame-pointer -fno-stack-protector
UNISCOPE_CC = @ mkdir -p $(@D); $(CC) $(UNISCOPE_FLAGS)
UNISCOPE_KERNEL := $(OBJDIR)/bin/kernel.elf

$(UNISCOPE_KERNEL): $(UNISCOPE_OBJS)

ifneq ($(UNISCOPE_TRACE),)
UNISCOPE_PROGRAM ?= uniscope
UNISCOPE_LEFT := %/x86_64/unix_machine.o %/x86_64/kernel_machine.o %/x86_64/pvm.o
# Klibs have the same CFLAGS, and stay as they are.
$(filter-out $(UNISCOPE_LEFT),$(OBJS-kernel.elf)): private CFLAGS += -fpatchable-function-entry=5 \
	-mfunction-return=thunk-extern -fno-ipa-ra -fno-optimize-sibling-calls -falign-functions=16
# The table of entries keeps code that --gc-sections would drop, and that refers to symbols that nobody has.
LDFLAGS-kernel.elf += --emit-relocs --unresolved-symbols=ignore-in-object-files
$(UNISCOPE_KERNEL): private cmd_ld += && $(UNISCOPE_PROGRAM) trace prepare $@
endif

$(UNISCOPE_OBJS): $(wildcard $(UNISCOPE)/include/uniscope/*.h $(UNISCOPE)/guest/*.h $(UNISCOPE)/guest/*/*.h $(UNISCOPE)/guest/*/*.inc) \
	$(UNISCOPE)/guest/ports/nanos/uniscope.mk

$(OBJDIR)/uniscope/self.o: $(UNISCOPE)/guest/ports/nanos/self.c $(OBJDIR)/closure_templates.h
	@ mkdir -p $(@D); $(CC) $(filter-out -pg,$(CFLAGS)) $(UNISCOPE_GS) -I$(UNISCOPE)/include \
		$(if $(UNISCOPE_TRACE),-DUNISCOPE_TRACE) -isystem $(shell $(CC) -print-file-name=include) -ffreestanding -mgeneral-regs-only \
		-fno-stack-protector -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/ports/nanos/%.S
	$(UNISCOPE_CC) -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/%.c
	$(UNISCOPE_CC) -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/x86_64/%.c
	$(UNISCOPE_CC) -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/x86_64/%.S
	$(UNISCOPE_CC) -c $< -o $@
