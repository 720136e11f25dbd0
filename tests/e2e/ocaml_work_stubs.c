/* SPDX-License-Identifier: BSD-2-Clause */
/* The C part of ocaml_work.ml: each function burns some microseconds. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

#define TURNS 3000

static void __attribute__((noinline)) burn(void)
{
	for (unsigned i = 0; i < TURNS; i++)
		__asm__ volatile("");
	__asm__ volatile(""); /* no tail call */
}

CAMLprim value c_alloc(value n)
{
	CAMLparam1(n);

	burn();
	CAMLreturn(caml_copy_double((double)Long_val(n)));
}

CAMLprim value c_direct(value unit)
{
	burn();
	return unit;
}

double c_unboxed(double x)
{
	burn();
	return x + 1;
}

CAMLprim value c_unboxed_boxed(value x)
{
	return caml_copy_double(c_unboxed(Double_val(x)));
}

CAMLprim value c_many(value a, value b, value c, value d, value e, value f, value g)
{
	burn();
	return a + b + c + d + e + f + g - 6;
}

CAMLprim value c_many_bytes(value *arg, int n)
{
	(void)n;
	return c_many(arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6]);
}

CAMLprim value c_calls(value fn, value n)
{
	CAMLparam2(fn, n);
	CAMLlocal1(ret);

	ret = caml_callback(fn, n);
	burn();
	CAMLreturn(ret);
}

CAMLprim value c_back(value n)
{
	burn();
	return n;
}

CAMLprim value c_raises(value n)
{
	burn();
	caml_failwith("as it was asked to");
	return n;
}
