(* SPDX-License-Identifier: BSD-2-Clause *)

type buffer = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
type log

external log_open : buffer -> log = "uni_mprof_open"
external log_lost : log -> int = "uni_mprof_lost" [@@noalloc]
external log_reserve : log -> int -> int = "uni_mprof_reserve" [@@noalloc]

external log_commit : log -> int -> int -> int -> int -> int -> string -> bool
  = "uni_mprof_commit_bytecode" "uni_mprof_commit"
  [@@noalloc]

external has_ring : unit -> bool = "uni_mprof_has_ring" [@@noalloc]
external ring_on : bool -> unit = "uni_mprof_ring_on" [@@noalloc]
external ring_event : int -> int -> int -> int -> string -> unit = "uni_mprof_ring" [@@noalloc]

type sink = Off | Buffer of { log : log; buffer : buffer; stamp : buffer -> int -> unit } | Ring

let sink = ref Off
let on () = !sink != Off
let nobody = -1

(* mirage-profile's numbers of events and types; notify is its "signal without switch" *)
let creates = 0
and read = 1
and fulfills = 2
and fails = 3
and label_id = 5
and increase_id = 6
and switch_id = 7
and gc_id = 8
and try_read = 10
and counter_id = 11
and notify = 13

(* Only in the tracer's rings; mirage-profile's have labels and switches for them. *)
let ring_should_resolve = 16
and ring_hiatus = 17
and ring_resume = 18

let type_wait = 0
and type_task = 1
and type_condition = 8
and type_async = 14
and type_mvar = 18

let payload_size id text =
  let text_size = String.length text + 1 in
  if id = switch_id || id = gc_id then 8
  else if id = label_id then 8 + text_size
  else if id = fails || id = increase_id || id = counter_id then 16 + text_size
  else if id = creates then 17
  else 16

let rec event ?(thread = nobody) ?(other = nobody) ?(number = 0) ?(text = "") id =
  match !sink with
  | Off -> ()
  | Ring -> ring_event id thread other number text
  | Buffer { log; buffer; stamp } ->
      let at = log_reserve log (payload_size id text) in
      if at >= 0 then (
        stamp buffer at;
        if not (log_commit log at id thread other number text) then
          event ~thread ~other ~number ~text id)

(* Promises, conditions and mvars that have a number. They may be collected: then it means nothing any
   more. Values move, so that they cannot be hashed; there are as many as the program has named. *)
let known : (Obj.t Weak.t * int) list ref = ref []
let known_limit = ref 64

let forget_dead () =
  if List.compare_length_with !known !known_limit >= 0 then (
    known := List.filter (fun (w, _) -> Weak.check w 0) !known;
    known_limit := max 64 (2 * List.length !known))

let remember x id =
  let w = Weak.create 1 in
  Weak.set w 0 (Some (Obj.repr x));
  forget_dead ();
  known := (w, id) :: !known

let number_of x =
  let is (w, _) = match Weak.get w 0 with Some o -> o == Obj.repr x | None -> false in
  match List.find_opt is !known with Some (_, id) -> Some id | None -> None

let last_id = ref 0

let fresh () =
  incr last_id;
  !last_id

(* Who runs as far as is known; and to whom a continuation belongs, which Lwt carries along. *)
let running = ref nobody
let owner : int Lwt.key = Lwt.new_key ()
let current () = match Lwt.get owner with Some id -> id | None -> nobody

let switch_to id =
  if !running <> id then (
    running := id;
    event switch_id ~thread:id)

let name id text = event label_id ~thread:id ~text

let created ty text =
  let id = fresh () in
  event creates ~thread:(current ()) ~other:id ~number:ty;
  name id text;
  id

let note_value id = event fulfills ~thread:!running ~other:id
let note_failure id ex = event fails ~thread:!running ~other:id ~text:(Printexc.to_string ex)

(* The same promise, whose end is told before anything that waits for it goes on: Lwt runs what was
   added to a promise last first. *)
let telling_end id p =
  Lwt.try_bind
    (fun () -> p)
    (fun v ->
      note_value id;
      Lwt.return v)
    (fun ex ->
      note_failure id ex;
      Lwt.fail ex)

module Trace = struct
  let label text = if on () then name (current ()) text

  let named make ty text =
    let ((p, u) as both) = make () in
    if not (on ()) then both
    else
      let id = created ty text in
      let p = telling_end id p in
      remember p id;
      (p, u)

  let named_wait text = named Lwt.wait type_wait text
  let named_task text = named Lwt.task type_task text

  let told ty text x =
    if on () then remember x (created ty text);
    x

  let named_condition text = told type_condition text (Lwt_condition.create ())
  let named_mvar text v = told type_mvar text (Lwt_mvar.create v)
  let named_mvar_empty text = told type_mvar text (Lwt_mvar.create_empty ())

  let should_resolve p =
    if on () then
      let id =
        match number_of p with
        | Some id -> id
        | None ->
            let id = fresh () in
            event creates ~thread:(current ()) ~other:id ~number:type_wait;
            remember p id;
            Lwt.on_any p (fun _ -> note_value id) (note_failure id);
            id
      in
      if !sink == Ring then event ring_should_resolve ~thread:id else name id "__should_resolve"

  let note_increase text n = event increase_id ~thread:(current ()) ~number:n ~text
  let note_counter_value text n = event counter_id ~thread:(current ()) ~number:n ~text

  type hiatus_reason = Wait_for_work | Suspend | Hibernate

  let note_hiatus why =
    (match (!sink, why) with
    | Ring, Wait_for_work -> event ring_hiatus ~number:0
    | Ring, Suspend -> event ring_hiatus ~number:1
    | Ring, Hibernate -> event ring_hiatus ~number:2
    | _, Wait_for_work -> ()
    | _, Suspend -> name nobody "__suspend"
    | _, Hibernate -> name nobody "__hibernate");
    switch_to nobody

  let note_resume () = if !sink == Ring then event ring_resume else name nobody "__resume"
  let note_gc seconds = event gc_id ~number:(int_of_float (seconds *. 1e9))
  let () = Callback.register "MProf.Trace.note_gc" note_gc

  type log_buffer = buffer
  type timestamper = log_buffer -> int -> unit

  module Control = struct
    type t = sink

    let make buffer stamp = Buffer { log = log_open buffer; buffer; stamp }

    let begin_at place =
      known := [];
      running := nobody;
      sink := place

    let start log = begin_at log

    let stop log =
      if !sink != log then failwith "Log is not currently tracing!";
      sink := Off

    let lost = function Buffer { log; _ } -> log_lost log | Off | Ring -> 0
    let has_ring = has_ring

    let start_ring () =
      if not (has_ring ()) then failwith "MProf: this program is not linked with uniscope's tracer";
      ring_on true;
      begin_at Ring

    let stop_ring () =
      if !sink != Ring then failwith "Log is not currently tracing!";
      ring_on false;
      sink := Off
  end
end

module Counter = struct
  type t = { name : string; mutable value : int }

  let create ?(init = 0) ~name () = { name; value = init }
  let make ~name = create ~name ()

  let set_value c v =
    c.value <- v;
    Trace.note_counter_value c.name v

  let increase c n = set_value c (c.value + n)
  let value c = c.value
end

module Traced = struct
  let thread text f =
    if not (on ()) then f ()
    else
      let id = fresh () and before = !running in
      let f () = try f () with ex -> Lwt.fail ex in
      event creates ~thread:(current ()) ~other:id ~number:type_async;
      name id text;
      switch_to id;
      let p = telling_end id (Lwt.with_value owner (Some id) f) in
      remember p id;
      switch_to before;
      p

  (* What goes on when p has its value is of the thread that runs now. *)
  let goes_on me what f v =
    switch_to me;
    Option.iter (fun other -> event read ~thread:me ~other) what;
    f v

  let before_wait p =
    let me = current () and what = number_of p in
    (match (what, Lwt.state p) with
    | Some other, Lwt.Sleep -> event try_read ~thread:me ~other
    | _ -> ());
    (me, what)

  let bind p f =
    if not (on ()) then Lwt.bind p f
    else
      let me, what = before_wait p in
      Lwt.bind p (goes_on me what f)

  let map f p =
    if not (on ()) then Lwt.map f p
    else
      let me, what = before_wait p in
      Lwt.map (goes_on me what f) p

  let ( >>= ) p f = bind p f
  let ( >|= ) p f = map f p

  (* Who hangs on what, in the order in which they came. *)
  let hanging : (int * int) list ref = ref []

  let hang me what p =
    event try_read ~thread:me ~other:what;
    hanging := !hanging @ [ (me, what) ];
    Lwt.on_termination p (fun () ->
        let rec drop = function
          | [] -> []
          | x :: rest -> if x = (me, what) then rest else x :: drop rest
        in
        hanging := drop !hanging);
    Lwt.map (goes_on me (Some what) (fun v -> v)) p

  let wake_one what =
    match List.find_opt (fun (_, on) -> on = what) !hanging with
    | Some (who, _) -> event notify ~thread:who ~other:what
    | None -> event notify ~thread:nobody ~other:what

  let when_known x f = if on () then Option.iter f (number_of x)

  let waiting x make =
    match if on () then number_of x else None with
    | None -> make ()
    | Some what -> (
        let p = make () in
        match Lwt.state p with Lwt.Sleep -> hang (current ()) what p | _ -> p)

  module Lwt_condition = struct
    include Lwt_condition

    let wait ?mutex c = waiting c (fun () -> Lwt_condition.wait ?mutex c)

    let signal c v =
      when_known c wake_one;
      Lwt_condition.signal c v

    let broadcast c v =
      when_known c (fun what ->
          match List.filter (fun (_, on) -> on = what) !hanging with
          | [] -> event notify ~thread:nobody ~other:what
          | all -> List.iter (fun (who, _) -> event notify ~thread:who ~other:what) all);
      Lwt_condition.broadcast c v
  end

  module Lwt_mvar = struct
    include Lwt_mvar

    let put m v =
      when_known m wake_one;
      waiting m (fun () -> Lwt_mvar.put m v)

    let take m =
      when_known m wake_one;
      waiting m (fun () -> Lwt_mvar.take m)
  end
end
