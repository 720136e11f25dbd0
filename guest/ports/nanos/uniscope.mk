# SPDX-License-Identifier: BSD-2-Clause
# Included by platform/pc/Makefile of Nanos. make UNISCOPE=FOLDER links the sampler and its port in.
UNISCOPE_NAMES := ring conditions promise sample stream stream_code stream_memory machine hooks nmi self
UNISCOPE_OBJS := $(patsubst %,$(OBJDIR)/uniscope/%.o,$(UNISCOPE_NAMES))
UNISCOPE_INCLUDE := -I$(UNISCOPE)/include -I$(UNISCOPE)/guest -I$(UNISCOPE)/guest/x86_64
UNISCOPE_GS := -DUNI_TRACE_GS=64
UNISCOPE_FLAGS := $(UNISCOPE_INCLUDE) $(UNISCOPE_GS) -O2 -g -ffreestanding -fpie -mgeneral-regs-only \
	-fno-omit-frame-pointer -fno-stack-protector
UNISCOPE_CC = @ mkdir -p $(@D); $(CC) $(UNISCOPE_FLAGS)
UNISCOPE_KERNEL := $(OBJDIR)/bin/kernel.elf

$(UNISCOPE_KERNEL): $(UNISCOPE_OBJS)
$(UNISCOPE_OBJS): $(wildcard $(UNISCOPE)/include/uniscope/*.h $(UNISCOPE)/guest/*.h $(UNISCOPE)/guest/*/*.h $(UNISCOPE)/guest/*/*.inc) \
	$(UNISCOPE)/guest/ports/nanos/uniscope.mk

$(OBJDIR)/uniscope/self.o: $(UNISCOPE)/guest/ports/nanos/self.c $(OBJDIR)/closure_templates.h
	@ mkdir -p $(@D); $(CC) $(filter-out -pg,$(CFLAGS)) $(UNISCOPE_GS) -I$(UNISCOPE)/include \
		-isystem $(shell $(CC) -print-file-name=include) -ffreestanding -mgeneral-regs-only \
		-fno-stack-protector -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/ports/nanos/%.S
	$(UNISCOPE_CC) -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/%.c
	$(UNISCOPE_CC) -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/x86_64/%.c
	$(UNISCOPE_CC) -c $< -o $@

$(OBJDIR)/uniscope/%.o: $(UNISCOPE)/guest/x86_64/%.S
	$(UNISCOPE_CC) -c $< -o $@
