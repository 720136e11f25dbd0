(* SPDX-License-Identifier: BSD-2-Clause *)
(* Who is woken in the midst of somebody else, fails with what it waits for, or is cancelled. ocaml_wakes FILE *)

open MProf
open Traced

let log = MProf_unix.start Sys.argv.(1)

(* The client runs, and sleeps again, before signal () returns to the server. *)
let inside () =
  let ready = Trace.named_condition "ready" and answer, give = Trace.named_wait "answer" in
  let client () = Lwt_condition.wait ready >>= Lwt.pause >>= Lwt.return in
  let server () =
    Lwt_condition.signal ready ();
    Lwt.wakeup give ();
    Lwt.return_unit
  in
  let client = thread "client" client in
  let user = thread "user" (fun () -> answer >>= Lwt.return) in
  Lwt.join [ client; user; thread "server" server ]

(* Each of them ends before the next one is woken. *)
let one_by_one () =
  let asked = List.init 50 (fun _ -> Trace.named_wait "request") in
  let sessions = List.map (fun (w, _) -> thread "session" (fun () -> w >>= Lwt.return)) asked in
  List.iter (fun (_, u) -> Lwt.wakeup_later u ()) asked;
  Lwt.join sessions

(* In a loop of nobody's, and of a thread that has just been woken. *)
let deep () =
  let rec loop n = if n = 0 then Lwt.return_unit else Lwt.return_unit >>= fun () -> loop (n - 1) in
  let go, start = Trace.named_wait "go" in
  let looping = thread "looping" (fun () -> go >>= fun () -> loop 1_000_000) in
  Lwt.wakeup start ();
  looping >>= fun () -> loop 1_000_000

let failing () =
  let reply, answer = Trace.named_task "dns reply" in
  let inner = thread "lookup" (fun () -> reply >|= ignore) in
  let outer = thread "fetch" (fun () -> inner >>= fun () -> Lwt.return_unit) in
  let breaker () = Lwt.pause () >|= fun () -> Lwt.wakeup_later_exn answer (Failure "no route") in
  let breaker = thread "breaker" breaker in
  Lwt.catch (fun () -> outer) (fun _ -> breaker)

(* Signalled too early; but it is given up, and that is no lost wake-up. *)
let cancelled () =
  let never = Trace.named_condition "never again" in
  Lwt_condition.signal never ();
  let patient = thread "patient" (fun () -> Lwt_condition.wait never >>= fun () -> Lwt.return_unit) in
  Lwt.cancel patient;
  Lwt.catch (fun () -> patient) (fun _ -> thread "after" Lwt.pause)

let () =
  Lwt_main.run (inside () >>= one_by_one >>= deep >>= failing >>= cancelled);
  Trace.Control.stop log
