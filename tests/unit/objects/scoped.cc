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

// A parameter by reference is a pointer in a register.
extern "C" __attribute__((noinline)) int refers(int &a, int &&b)
{
	return a + b;
}

extern "C" __attribute__((noinline)) void _start()
{
	store::Shop().sell();
}

namespace store {
// Classes and lambdas that a function has for itself.
__attribute__((noinline)) int count(int n)
{
	struct Local {
		INLINE int go(int n)
		{
			__asm__ volatile(".globl spot_local\nspot_local: nop");
			return n + 1;
		}
	};
	auto lambda = [](int n) __attribute__((always_inline)) {
		__asm__ volatile(".globl spot_lambda\nspot_lambda: nop");
		return n + 2;
	};

	return Local().go(n) + lambda(n);
}
} // namespace store

// One that no other file sees, and one in C.
static __attribute__((noinline)) void hide()
{
	struct Local {
		INLINE void go()
		{
			__asm__ volatile(".globl spot_hidden\nspot_hidden: nop");
		}
	};

	Local().go();
}

extern "C" __attribute__((noinline)) int count_all(int n)
{
	struct Local {
		INLINE int go(int n)
		{
			__asm__ volatile(".globl spot_c\nspot_c: nop");
			return n + 3;
		}
	};

	hide();
	return store::count(n) + Local().go(n);
}
