(* SPDX-License-Identifier: BSD-2-Clause *)
(* Threads that end with a promise that has no name. One goes round and round through code that knows nothing of MProf: its
   memory does not grow. *)
let through_plain_code f = Lwt.bind (Lwt.pause ()) f

open MProf.Traced

let condition = Lwt_condition.create ()
let mutex = Lwt_mutex.create ()

let live_words () =
  Gc.compact ();
  (Gc.stat ()).Gc.live_words

let turns () =
  let rec turn = function
    | 0 -> Lwt.return (live_words ())
    | n -> Lwt.pause () >>= fun () -> through_plain_code (fun () -> turn (n - 1))
  in
  turn 1000 >>= fun before ->
  turn 20000 >|= fun after ->
  if after - before > 200000 then failwith (Printf.sprintf "%d words more" (after - before))

let () =
  MProf.start ();
  Lwt_main.run (thread "turns" turns);
  assert (Lwt.state (Lwt_mutex.lock mutex) = Lwt.Return ());
  let all =
    [ thread "sleeps" (fun () -> Lwt_unix.sleep 1000.);
      thread "pauses" (fun () -> Lwt.pause () >>= fun () -> Lwt_unix.sleep 1000.);
      thread "waits" (fun () -> Lwt.pause () >>= fun () -> Lwt_condition.wait condition);
      thread "locks" (fun () -> Lwt_mutex.lock mutex) ]
  in
  print_endline "done";
  Lwt_main.run (Lwt.pick [ Lwt_unix.wait_read Lwt_unix.stdin; Lwt.join all ])
