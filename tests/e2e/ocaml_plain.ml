(* SPDX-License-Identifier: BSD-2-Clause *)
(* A program on Lwt that knows nothing of uniscope. Each line at which it goes on after a wait has a name in a
   comment. Solo5_os__Time holds sleepers, as a main loop of MirageOS does. *)
open Lwt.Infix

let reply, _never = Lwt.wait ()
let box : int Lwt_mvar.t = Lwt_mvar.create_empty ()
let sleep () =
  let slept, wakener = Lwt.task () in
  Solo5_os__Time.sleepers := (1L, false, wakener) :: !Solo5_os__Time.sleepers;
  slept

let rec take () = Lwt_mvar.take box >>= fun _ -> take () (* take *)
let request () = take () >>= fun () -> Lwt.return 1 (* request *)
let serve () =
  let answered = request () >>= fun n -> Lwt.return (n + 1) in (* serve *)
  Lwt.catch (fun () -> answered >|= ignore) (* kept *)
    (fun failure -> raise failure) (* handler *)

let seen : unit Lwt_condition.t = Lwt_condition.create ()
let watch () = Lwt_condition.wait seen >>= fun () -> Lwt.return_unit (* watch *)
let ask () = reply >>= fun () -> Lwt.return_unit (* ask *)
let doze () = sleep () >>= fun () -> Lwt.return_unit (* doze *)
let stream, _push = Lwt_stream.create ()
let read () = Lwt_stream.next stream >>= fun () -> Lwt.return_unit (* read *)
let listen () = Lwt_unix.wait_read Lwt_unix.stdin >>= fun () -> exit 0 (* listen *)

let () =
  Lwt.async watch;
  Lwt.async (fun () -> sleep () >>= fun () -> Lwt.return_unit); (* nap *)
  let all = Lwt.join [ serve (); ask (); doze (); read (); listen () ] in
  print_endline "done";
  Lwt_main.run all
