(* SPDX-License-Identifier: BSD-2-Clause *)
(* ocaml_promises N [FILE]: N promises, each awaited by a thread that then waits for one condition, all of them woken.
   Prints the CPU time of it, seconds. *)

open MProf
open Traced

let nr = int_of_string Sys.argv.(1)
let start path = MProf_unix.start ~size:(1 lsl 22) path
let log = if Array.length Sys.argv > 2 then Some (start Sys.argv.(2)) else None

let () =
  let begun = Sys.time () in
  let go = Trace.named_condition "go" in
  let all = List.init nr (fun _ -> Trace.named_wait "value") in
  let wait (p, _) = thread "user" (fun () -> p >>= fun () -> Lwt_condition.wait go) in
  let users = List.map wait all in
  List.iter (fun (_, u) -> Lwt.wakeup u ()) all;
  List.iter (fun _ -> Lwt_condition.signal go ()) all;
  Lwt_main.run (Lwt.join users);
  Option.iter Trace.Control.stop log;
  Printf.printf "%.6f\n" (Sys.time () -. begun)
