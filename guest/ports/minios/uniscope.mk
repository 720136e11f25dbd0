# SPDX-License-Identifier: BSD-2-Clause
# Included by Mini-OS' Makefile: make UNISCOPE=FOLDER links the sampler and its port in.
UNISCOPE_OBJS := $(patsubst %,$(OBJ_DIR)/uniscope_%.o,ring conditions promise sample stream stream_code stream_memory \
	machine hooks self)
UNISCOPE_INCLUDE := -I$(UNISCOPE)/include -I$(UNISCOPE)/guest -I$(UNISCOPE)/guest/x86_64
UNISCOPE_FLAGS := $(UNISCOPE_INCLUDE) -m64 -O2 -g -ffreestanding -fno-pic -fno-pie -mno-red-zone \
	-fno-stack-protector -mgeneral-regs-only -fno-omit-frame-pointer

OBJS += $(UNISCOPE_OBJS)
$(OBJ_DIR)/$(TARGET): $(UNISCOPE_OBJS)

$(OBJ_DIR)/uniscope_self.o: $(UNISCOPE)/guest/ports/minios/self.c $(EXTRA_DEPS)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(UNISCOPE_INCLUDE) -mgeneral-regs-only -fno-omit-frame-pointer -c $< -o $@

$(OBJ_DIR)/uniscope_%.o: $(UNISCOPE)/guest/%.c
	$(CC) $(UNISCOPE_FLAGS) -c $< -o $@

$(OBJ_DIR)/uniscope_%.o: $(UNISCOPE)/guest/x86_64/%.c
	$(CC) $(UNISCOPE_FLAGS) -c $< -o $@

$(OBJ_DIR)/uniscope_%.o: $(UNISCOPE)/guest/x86_64/%.S
	$(CC) $(UNISCOPE_FLAGS) -c $< -o $@
