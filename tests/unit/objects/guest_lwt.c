/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbols of an OCaml program on Lwt, with a main loop as MirageOS has on Solo5. Its heap is
 * made by the test (models_lwt.c). */
__asm__(".text\n"
	".globl camlLwt__code_begin, camlLwt__callback_1, camlLwt__code_end\n"
	".globl camlApp__beat_1, camlApp__serve_2, camlApp__main_3, camlLwt_unix__fun_4\n"
	".type camlLwt__callback_1, @function\n"
	".type camlApp__beat_1, @function\n"
	".type camlApp__serve_2, @function\n"
	".type camlApp__main_3, @function\n"
	".type camlLwt_unix__fun_4, @function\n"
	"camlLwt__code_begin:\n"
	"camlLwt__callback_1: .skip 32, 0x90\n"
	"camlLwt__code_end: .skip 32, 0x90\n"
	"camlApp__beat_1: .skip 32, 0x90\n"
	"camlApp__serve_2: .skip 32, 0x90\n"
	"camlApp__main_3: .skip 32, 0x90\n"
	"camlLwt_unix__fun_4: .skip 32, 0x90\n"
	".data\n"
	".balign 8\n"
	".globl camlLwt, caml_globals, camlLwt__data_begin, camlLwt__data_end\n"
	".globl camlSolo5_os__Time__data_begin, camlSolo5_os__Time__data_end\n"
	".globl camlSolo5_os__Main.data_begin, camlSolo5_os__Main.data_end\n"
	"caml_globals: .quad 0, 0, 0\n"
	"camlLwt__data_begin:\n"
	"camlLwt: .quad 0, 0\n"
	"camlLwt__data_end: .quad 0\n"
	"camlSolo5_os__Time__data_begin: .quad 0, 0\n"
	"camlSolo5_os__Time__data_end: .quad 0\n"
	"camlSolo5_os__Main.data_begin: .quad 0\n" /* as since OCaml 5.1 */
	"camlSolo5_os__Main.data_end: .quad 0\n"
	".text\n");

void _start(void)
{
}
