# SPDX-License-Identifier: BSD-2-Clause
# Included by Mini-OS' Makefile: make UNISCOPE=FOLDER links the sampler and its port in. With UNISCOPE_TRACE=1, too, the functions
# but those of arch/ can be traced, from the first call on if the image is prepared so. After a change of these two: make clean.
UNISCOPE_OBJS := $(patsubst %,$(OBJ_DIR)/uniscope_%.o,ring conditions promise sample stream stream_code stream_memory \
	machine hooks self $(if $(UNISCOPE_TRACE),boot))
UNISCOPE_INCLUDE := -I$(UNISCOPE)/include -I$(UNISCOPE)/guest -I$(UNISCOPE)/guest/x86_64
UNISCOPE_FLAGS := $(UNISCOPE_INCLUDE) -m64 -O2 -g -ffreestanding -fno-pic -fno-pie -mno-red-zone \
	-fno-stack-protector -mgeneral-regs-only -fno-omit-frame-pointer

ifneq ($(UNISCOPE_TRACE),)
$(OBJS) $(APP_OBJS): private CFLAGS += -fpatchable-function-entry=5 -mfunction-return=thunk-extern -fno-ipa-ra \
	-fno-optimize-sibling-calls -falign-functions=16
$(OBJ_DIR)/$(TARGET): private LDFLAGS_FINAL += --emit-relocs
endif

OBJS += $(UNISCOPE_OBJS)
$(OBJ_DIR)/$(TARGET): $(UNISCOPE_OBJS)
$(UNISCOPE_OBJS): $(wildcard $(UNISCOPE)/include/uniscope/*.h $(UNISCOPE)/guest/*.h $(UNISCOPE)/guest/*/*.h $(UNISCOPE)/guest/*/*.inc) \
	$(UNISCOPE)/guest/ports/minios/uniscope.mk

$(OBJ_DIR)/uniscope_self.o: $(UNISCOPE)/guest/ports/minios/self.c $(EXTRA_DEPS)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(UNISCOPE_INCLUDE) -mgeneral-regs-only -fno-omit-frame-pointer -c $< -o $@

$(OBJ_DIR)/uniscope_%.o: $(UNISCOPE)/guest/%.c
	$(CC) $(UNISCOPE_FLAGS) -c $< -o $@

$(OBJ_DIR)/uniscope_%.o: $(UNISCOPE)/guest/x86_64/%.c
	$(CC) $(UNISCOPE_FLAGS) -c $< -o $@

$(OBJ_DIR)/uniscope_%.o: $(UNISCOPE)/guest/x86_64/%.S
	$(CC) $(UNISCOPE_FLAGS) -c $< -o $@
