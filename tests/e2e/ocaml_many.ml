(* SPDX-License-Identifier: BSD-2-Clause *)
(* Tens of thousands of promises, found again wherever the collector has moved them, some in vain; and who is
   told of what several wait for. ocaml_many FILE *)

open MProf
open Traced

let log = MProf_unix.start ~size:(1 lsl 25) Sys.argv.(1)
let nr = 30_000

let many () =
  let go = Trace.named_condition "go" in
  let give_up = List.init nr (fun _ -> Trace.named_task "forgotten") in
  let all = List.init nr (fun _ -> Trace.named_wait "value") in
  Gc.compact ();
  List.iter (fun (p, _) -> Lwt.cancel p) give_up;
  let user (p, _) = thread "user" (fun () -> p >>= fun () -> Lwt_condition.wait go) in
  let users = List.map user all in
  let half = List.filteri (fun i _ -> i mod 2 = 0) and rest = List.filteri (fun i _ -> i mod 2 = 1) in
  let wake (_, u) = Lwt.wakeup u () in
  List.iter wake (half all);
  Gc.compact ();
  List.iter wake (rest all);
  (* The first half one by one, the others together. *)
  List.iter (fun _ -> Lwt_condition.signal go ()) (half all);
  Lwt_condition.broadcast go ();
  Lwt.join users

(* Two wait, and the one who wakes both of them runs on. *)
let several () =
  let bell = Trace.named_condition "bell" and box = Trace.named_mvar_empty "box" in
  let two name f = List.init 2 (fun i -> thread (name ^ string_of_int i) f) in
  let sleepers = two "sleeper" (fun () -> Lwt_condition.wait bell >>= Lwt.return) in
  let takers = two "taker" (fun () -> Lwt_mvar.take box >>= Lwt.return) in
  let ringer () =
    Lwt.pause () >>= fun () ->
    Lwt_condition.signal bell ();
    Lwt_condition.signal bell ();
    Lwt_mvar.put box () >>= fun () -> Lwt_mvar.put box ()
  in
  Lwt.join ((thread "ringer" ringer :: sleepers) @ takers) >>= fun () ->
  (* Full already: who puts waits too, and wakes nobody who does. *)
  Lwt_mvar.put box () >>= fun () ->
  let putters = two "putter" (fun () -> Lwt_mvar.put box () >>= Lwt.return) in
  let emptier () = Lwt.pause () >>= fun () -> Lwt_mvar.take box >>= fun () -> Lwt_mvar.take box in
  Lwt.join (thread "emptier" emptier :: putters)

(* One who waits on while others give up again and again. *)
let impatient () =
  let never = Trace.named_condition "never" in
  let wait () = Lwt_condition.wait never >>= Lwt.return in
  let patient = thread "patient" wait in
  for _ = 1 to 1000 do
    Lwt.cancel (thread "impatient" wait)
  done;
  Lwt_condition.signal never ();
  patient

let () =
  Lwt_main.run (many () >>= several >>= impatient);
  assert (Trace.Control.lost log = 0);
  Trace.Control.stop log
