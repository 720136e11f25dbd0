(* SPDX-License-Identifier: BSD-2-Clause *)
(* Works in C below every kind of call that OCaml has, for ocaml_chains.py, which knows the call graph. *)
external c_alloc : int -> float = "c_alloc"
external c_direct : unit -> unit = "c_direct" [@@noalloc]
external c_unboxed : (float [@unboxed]) -> (float [@unboxed]) = "c_unboxed_boxed" "c_unboxed" [@@noalloc]
external c_many : int -> int -> int -> int -> int -> int -> int -> int = "c_many_bytes" "c_many"
external c_calls : (int -> int) -> int -> int = "c_calls"
external c_back : int -> int = "c_back"
external c_raises : int -> int = "c_raises"

let keep x = ignore (Sys.opaque_identity x)
let[@inline never] by_alloc n = keep (c_alloc n +. 1.)
let[@inline never] by_direct () = c_direct (); keep 1
let[@inline never] by_unboxed x = keep (c_unboxed x +. 1.)
let[@inline never] by_many n = keep (c_many n 2 3 4 5 6 7 + 1)
let[@inline never] called n = c_back n + 1
let[@inline never] by_callback n = keep (c_calls called n + 1)
let[@inline never] rec deeper n = if n = 0 then by_direct () else (deeper (n - 1); keep n)
let[@inline never] fails n = if n > 0 then raise Not_found else n
let[@inline never] by_exception n = keep (try fails n + 1 with Not_found -> c_back n + 1)
let[@inline never] by_failure n = keep (try c_raises n + 1 with Failure _ -> c_back n + 1)
let[@inline never] by_closure n = List.iter (fun m -> by_many m; keep m) [ n; n + 1 ]; keep n

let[@inline never] turn n =
  by_alloc n; by_direct (); by_unboxed 1.5; by_many n; by_callback n; deeper 40; by_exception n;
  by_failure n; by_closure n; keep n

let[@inline never] work () = while true do turn (Sys.opaque_identity 1) done
let () = work ()
