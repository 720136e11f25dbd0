/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "obj/demangle.h"

static void expect(const char *name, const char *want)
{
	char text[UNI_TEXT_MAX] = "untouched";
	bool ok = uni_demangle(name, text, sizeof(text));

	assert_int_equal(ok, want != NULL);
	assert_string_equal(text, want != NULL ? want : "untouched");
}

static void cxx(void **state)
{
	expect("_ZN3foo3barEi", "foo::bar");
	expect("_Z1fIiEvT_", "f<int>");
	expect("_ZNK6server6Engine5serveEv", "server::Engine::serve");
	expect("_ZNSt6vectorIiSaIiEE9push_backEOi",
		"std::vector<int, std::allocator<int> >::push_back");
	expect("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
	expect("_ZN12_GLOBAL__N_13barEv", "(anonymous namespace)::bar");
	expect("_ZN1AC4Ev", "A::A");
	expect("_Z3foov.constprop.0", "foo");
}

static void rust(void **state)
{
	expect("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
		"core::fmt::Formatter::write_str");
	expect("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE.llvm.123456",
		"core::fmt::Formatter::write_str");
	expect("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect("_RNvMNtCs5j4LeXoNkV_6inline5shapeNtB2_6Square4area.llvm.1234",
		"<inline::shape::Square>::area");
	expect("_RNvCs1_7mycrateu8gdel_5qa", "mycrate::g\xc3\xb6"
					     "del");
}

static void ocaml(void **state)
{
	expect("camlStdlib__List__map_123", "Stdlib.List.map");
	expect("camlStdlib__List.map_1", "Stdlib.List.map");
	expect("camlStdlib.List.map_1", "Stdlib.List.map");
	expect("camlDune__exe__Main.entry", "Main.entry");
	expect("camlDune__exe__Main__Sub__f_7", "Main.Sub.f");
	expect("camlDune__exe.entry", "Dune.exe.entry"); /* the module of modules itself */
	expect("camlMain__entry", "Main.entry");
	/* Functions without a name are told apart by their number only. */
	expect("camlMain__fun_456", "Main.fun_456");
	expect("camlMain.fun_456", "Main.fun_456");
	assert_true(uni_demangle_is_anonymous("camlMain__fun_456"));
	assert_true(uni_demangle_is_anonymous("camlMain.fun_456"));
	assert_false(uni_demangle_is_anonymous("camlMain.fun"));
	assert_false(uni_demangle_is_anonymous("camlMain.fun_x"));
	assert_false(uni_demangle_is_anonymous("camlMain.no_fun_12"));
	assert_false(uni_demangle_is_anonymous("Main.fun_456"));
	expect("camlStdlib__$5e_12", "Stdlib.^");
	expect("camlA__x_y_2", "A.x_y");
	expect("camlA__$0a_1", "A.$0a"); /* no control characters */
	expect("caml_main", NULL);
	expect("camlNothing", NULL);
	expect("camlia__x", NULL);
}

static void plain_names_stay(void **state)
{
	char small[4] = "abc", too_small[8] = "";

	expect("main", NULL);
	expect("_start", NULL);
	expect("_Zed", NULL);
	expect("_R", NULL);
	expect("_Z", NULL);
	expect("_", NULL);
	expect("", NULL);
	assert_false(uni_demangle("_ZN3foo3barEi", small, sizeof(small)));
	assert_string_equal(small, "abc");
	assert_false(uni_demangle("_ZN3foo3barEi", too_small, sizeof(too_small)));
	assert_string_equal(too_small, "");
}

/* Each argument is a pair of the one before: 40 of them stand for 2^40 letters. */
static void endless_names_end(void **state)
{
	char name[2048] = "_Z1gIJSt4pairIiiE";

	for (unsigned i = 1; i < 40; i++) {
		char ref[8] = "", part[64];

		if (i < 36)
			(void)snprintf(
				ref, sizeof(ref), "%c", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
		else
			(void)snprintf(ref, sizeof(ref), "1%c", '0' + (int)(i - 36));
		(void)snprintf(part, sizeof(part), "S0_IS%s_S%s_E", ref, ref);
		(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s", part);
	}
	(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "EEvv");
	expect(name, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cxx),
		cmocka_unit_test(rust),
		cmocka_unit_test(ocaml),
		cmocka_unit_test(plain_names_stay),
		cmocka_unit_test(endless_names_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
