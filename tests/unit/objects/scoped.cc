// SPDX-License-Identifier: BSD-2-Clause
// For the tests of debug data: inlined functions in a namespace without a name, to which compilers
// give no linkage name. Nobody runs this.
#define INLINE __attribute__((always_inline)) inline

namespace store {
namespace {
INLINE void hidden()
{
	__asm__ volatile(".globl spot_scoped\nspot_scoped: nop");
}

struct Box {
	INLINE void open()
	{
		hidden();
	}
};
} // namespace

struct Shop {
	INLINE void sell()
	{
		Box().open();
	}
};
} // namespace store

extern "C" __attribute__((noinline)) void _start()
{
	store::Shop().sell();
}
