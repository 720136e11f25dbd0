(* SPDX-License-Identifier: BSD-2-Clause *)

type buffer = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
type log

external log_open : buffer -> log = "uni_mprof_open"
external log_lost : log -> int = "uni_mprof_lost" [@@noalloc]
external log_reserve : log -> int -> int = "uni_mprof_reserve" [@@noalloc]

external log_commit : log -> int -> int -> int -> int -> int -> string -> bool
  = "uni_mprof_commit_bytecode" "uni_mprof_commit"
  [@@noalloc]

external place : Obj.t -> int = "uni_mprof_place" [@@noalloc]

type stone

external stone : unit -> stone = "uni_mprof_stone"
external has_moved : stone -> bool = "uni_mprof_has_moved" [@@noalloc]
external has_ring : unit -> bool = "uni_mprof_has_ring" [@@noalloc]
external ring_memory : int -> bool = "uni_mprof_ring_memory" [@@noalloc]
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

module Table = Hashtbl.Make (struct
  type t = int

  let equal = Int.equal
  let hash i = i land max_int
end)

(* Promises, conditions and mvars that have a number. They may be collected: then it means nothing any
   more. They are looked up by where they lie, which changes once, when they leave the minor heap, and
   when the major heap is compacted; the stone lies in the minor heap until either of them happens. *)
type entry = { what : Obj.t Weak.t; id : int; mutable at : int }

type numbers = {
  all : entry Table.t;
  mutable young : entry list; (* perhaps in the minor heap *)
  mutable stone : stone;
  mutable compactions : int;
  mutable limit : int;
}

let numbers () =
  { all = Table.create 64; young = []; stone = stone (); compactions = 0; limit = 64 }

let known = numbers ()

(* Of the promises that are known, the other end. *)
let resolvers = numbers ()

let reset t =
  Table.reset t.all;
  t.young <- []

let put t e =
  (match Table.find_opt t.all e.at with Some x when x == e -> Table.remove t.all e.at | _ -> ());
  match Weak.get e.what 0 with
  | None -> ()
  | Some o ->
      e.at <- place o;
      Table.replace t.all e.at e

let settle t =
  while has_moved t.stone do
    t.stone <- stone ();
    let young = t.young and { Gc.compactions; _ } = Gc.quick_stat () in
    t.young <- [];
    if compactions = t.compactions then List.iter (put t) young
    else
      let all = Table.fold (fun _ e rest -> e :: rest) t.all young in
      t.compactions <- compactions;
      Table.reset t.all;
      List.iter (put t) all
  done

let forget_dead t =
  if Table.length t.all >= t.limit then (
    Table.filter_map_inplace (fun _ e -> if Weak.check e.what 0 then Some e else None) t.all;
    t.limit <- max 64 (2 * Table.length t.all))

let remember t x id =
  let what = Weak.create 1 in
  Weak.set what 0 (Some (Obj.repr x));
  settle t;
  forget_dead t;
  let e = { what; id; at = -1 } in
  t.young <- e :: t.young;
  put t e

let rec find t x =
  settle t;
  match Table.find_opt t.all (place (Obj.repr x)) with
  | Some { what; id; _ } when (match Weak.get what 0 with Some o -> o == Obj.repr x | None -> false) ->
      Some id
  | _ -> if has_moved t.stone then find t x else None

let number_of x = find known x

let last_id = ref 0

let fresh () =
  incr last_id;
  !last_id

(* Who runs as far as is known; and to whom a continuation belongs, which Lwt carries along. *)
let running = ref nobody
let owner : int Lwt.key = Lwt.new_key ()
let current () = match Lwt.get owner with Some id -> id | None -> nobody

(* Who goes on when the one that runs has told its end: it was interrupted by a wake-up. *)
let interrupted = ref None

(* Threads that have told what they wait for, and have not gone on since. *)
let told_wait : (int, unit) Hashtbl.t = Hashtbl.create 64

(* And those that end with a promise without a name. *)
let ending : (int, unit) Hashtbl.t = Hashtbl.create 64

let switch_to id =
  interrupted := None;
  if !running <> id then (
    running := id;
    event switch_id ~thread:id)

let name id text = event label_id ~thread:id ~text

let created ty text =
  let id = fresh () in
  event creates ~thread:(current ()) ~other:id ~number:ty;
  name id text;
  id

let go_back () = Option.iter switch_to !interrupted

(* Whose end has not been told: who resolves a promise may tell it before Lwt runs what waits for it. *)
let unended : (int, unit) Hashtbl.t = Hashtbl.create 64

(* A thread tells its own end; any other is told by who goes on. *)
let note_end id tell =
  if Hashtbl.mem unended id then (
    Hashtbl.remove unended id;
    if !running <> id then go_back ();
    tell ();
    go_back ())

let note_value id = note_end id (fun () -> event fulfills ~thread:!running ~other:id)

let note_failure id ex =
  note_end id (fun () -> event fails ~thread:!running ~other:id ~text:(Printexc.to_string ex))

(* The same promise, whose end is told before anything that waits for it goes on: Lwt runs what was
   added to a promise last first. *)
let telling_end id p =
  Hashtbl.replace unended id ();
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
      remember known p id;
      remember resolvers u id;
      (p, u)

  let named_wait text = named Lwt.wait type_wait text
  let named_task text = named Lwt.task type_task text

  let told ty text x =
    if on () then remember known x (created ty text);
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
            remember known p id;
            Hashtbl.replace unended id ();
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

  (* What waits for nothing, because somebody has paused only, is not told. *)
  let idle = ref false

  let enter () =
    if on () && Lwt.paused_count () = 0 then (
      idle := !sink == Ring;
      note_hiatus Wait_for_work)

  let leave () =
    if !idle then (
      idle := false;
      note_resume ())

  let hook_main_loop = lazy (Main_loop.hook ~enter ~leave)

  type log_buffer = buffer
  type timestamper = log_buffer -> int -> unit

  module Control = struct
    type t = sink

    let make buffer stamp = Buffer { log = log_open buffer; buffer; stamp }

    let begin_at place =
      Lazy.force hook_main_loop;
      idle := false;
      List.iter reset [ known; resolvers ];
      running := nobody;
      interrupted := None;
      List.iter Hashtbl.reset [ unended; told_wait; ending ];
      sink := place

    let start log = begin_at log

    let stop log =
      if !sink != log then failwith "Log is not currently tracing!";
      (* Until now, though nothing may have happened. *)
      name nobody "__end";
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

let start ?(size = 4 lsl 20) () =
  if not (ring_memory size) then failwith "MProf.start: there is no memory for the ring";
  Trace.Control.start_ring ()

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
  let named text p =
    if not (on () && Lwt.is_sleeping p) then p
    else
      let id = created type_wait text in
      let p = telling_end id p in
      remember known p id;
      p

  let sleep_ns_by sleep ns = named (Printf.sprintf "sleep %Ld us" (Int64.div ns 1000L)) (sleep ns)

  (* What goes on when p has ended is of the thread that runs now. If that slept it is woken in the midst
     of somebody else, who goes on when it sleeps again or has told its end. If not it is one loop
     perhaps, and needs a tail call. *)
  let goes_on me ~slept ~what ~ends f v =
    let before = match !interrupted with Some id -> id | None -> !running in
    switch_to me;
    if slept then Hashtbl.remove told_wait me;
    Option.iter (fun other -> event read ~thread:me ~other) what;
    if not slept then f v
    else
      match f v with
      | r ->
          if ends r then interrupted := Some before else switch_to before;
          r
      | exception ex ->
          interrupted := Some before;
          raise ex

  let ended p = not (Lwt.is_sleeping p)

  let tell_wait me other =
    Hashtbl.replace told_wait me ();
    event try_read ~thread:me ~other

  (* What a thread waits for has no name perhaps. The ring has it as "a promise", unless the thread waits
     for something already: then it is made of that. *)
  let awaited me p =
    let id = number_of p in
    if id <> None || !sink != Ring || me = nobody || Hashtbl.mem told_wait me then (id, p)
    else
      let id = created type_wait "a promise" in
      (Some id, telling_end id p)

  let rec when_over : 'a 'b. 'a Lwt.t -> ('a -> 'b Lwt.t) -> (exn -> 'b Lwt.t) -> 'b Lwt.t =
   fun p f g ->
    let me = current () and slept = Lwt.is_sleeping p in
    let what, p = if slept then awaited me p else (number_of p, p) in
    let last f v = if slept then awaits_last me (f v) else f v in
    if slept then Option.iter (tell_wait me) what;
    Lwt.try_bind
      (fun () -> p)
      (goes_on me ~slept ~what ~ends:ended (last f))
      (goes_on me ~slept ~what ~ends:ended (last g))

  (* A thread that ends with a promise waits for it, too, if it told no other wait. Of those without a name,
     one of a thread at a time: a loop through code that is not recorded would make one each time. *)
  and awaits_last : 'b. int -> 'b Lwt.t -> 'b Lwt.t =
   fun me p ->
    if ended p || me = nobody || Hashtbl.mem told_wait me then p
    else if number_of p <> None then when_over p Lwt.return Lwt.fail
    else if !sink != Ring || Hashtbl.mem ending me then p
    else (
      Hashtbl.replace ending me ();
      let over _ = Hashtbl.remove ending me in
      Lwt.on_any p over over;
      when_over p Lwt.return Lwt.fail)

  let started text f =
    if not (on ()) then f ()
    else
      let id = fresh () and before = !running in
      let f () = awaits_last id (try f () with ex -> Lwt.fail ex) in
      event creates ~thread:(current ()) ~other:id ~number:type_async;
      Option.iter (name id) text;
      switch_to id;
      let p = telling_end id (Lwt.with_value owner (Some id) f) in
      remember known p id;
      switch_to before;
      p

  let thread text f = started (Some text) f

  let when_ended p f = when_over p f Lwt.fail

  let bind p f = if on () then when_ended p f else Lwt.bind p f

  let map f p =
    if not (on ()) then Lwt.map f p
    else when_ended p (fun v -> match f v with x -> Lwt.return x | exception ex -> Lwt.fail ex)

  let ( >>= ) p f = bind p f
  let ( >|= ) p f = map f p

  (* Lwt may put off what waits for u until the one that runs has ended: it is told here who did it. *)
  let resolving u tell wake =
    if on () then Option.iter tell (find resolvers u);
    wake ();
    go_back ()

  module Lwt = struct
    let own_bind = bind
    and own_map = map

    include Lwt

    let bind = own_bind
    let map = own_map

    let try_bind f ok bad =
      if on () then when_over (try f () with ex -> fail ex) ok bad else try_bind f ok bad

    let catch f bad = try_bind f return bad

    let finalize f last =
      try_bind f
        (fun v -> map (fun () -> v) (last ()))
        (fun ex -> bind (last ()) (fun () -> fail ex))

    let async f = async (fun () -> started None f)
    let dont_wait f bad = dont_wait (fun () -> started None f) bad
    let join all = named "join" (join all)
    let both a b = named "both" (both a b)
    let all ps = named "all" (all ps)
    let choose ps = named "choose" (choose ps)
    let pick ps = named "pick" (pick ps)

    module Infix = struct
      include Infix

      let ( >>= ) = bind
      let ( >|= ) p f = map f p
      let ( =<< ) f p = bind p f
      let ( =|< ) = map
      let ( <&> ) a b = join [ a; b ]
      let ( <?> ) a b = choose [ a; b ]
    end

    module Syntax = struct
      let ( let* ) = bind
      let ( and* ) = both
      let ( let+ ) p f = map f p
      let ( and+ ) = both
    end

    let ( >>= ) = bind
    let ( >|= ) p f = map f p
    let ( =<< ) f p = bind p f
    let ( =|< ) = map
    let ( <&> ) a b = join [ a; b ]
    let ( <?> ) a b = choose [ a; b ]

    let note_result id = function Ok _ -> note_value id | Error ex -> note_failure id ex
    let wakeup u v = resolving u note_value (fun () -> wakeup u v)
    let wakeup_later u v = resolving u note_value (fun () -> wakeup_later u v)
    let wakeup_exn u ex = resolving u (fun id -> note_failure id ex) (fun () -> wakeup_exn u ex)

    let wakeup_later_exn u ex =
      resolving u (fun id -> note_failure id ex) (fun () -> wakeup_later_exn u ex)

    let wakeup_result u r = resolving u (fun id -> note_result id r) (fun () -> wakeup_result u r)

    let wakeup_later_result u r =
      resolving u (fun id -> note_result id r) (fun () -> wakeup_later_result u r)
  end

  (* Who hangs on what, in the order in which they came. Who has been told that it may go on hangs no
     more, though Lwt may put that off. *)
  type hanger = { who : int; mutable hangs : bool }
  type hangers = { mutable queue : hanger Queue.t; mutable gone : int }

  let hanging : hangers Table.t = Table.create 64

  let hangers_of what =
    match Table.find_opt hanging what with
    | Some all -> all
    | None ->
        let all = { queue = Queue.create (); gone = 0 } in
        Table.replace hanging what all;
        all

  let rec first_of all =
    match Queue.peek_opt all.queue with
    | Some h when not h.hangs ->
        ignore (Queue.pop all.queue);
        all.gone <- all.gone - 1;
        first_of all
    | first -> first

  let forget what all =
    match Table.find_opt hanging what with
    | Some x when x == all && Queue.is_empty all.queue -> Table.remove hanging what
    | _ -> ()

  let leave all h =
    if h.hangs then (
      h.hangs <- false;
      all.gone <- all.gone + 1)

  let release what all h =
    leave all h;
    if 2 * all.gone > Queue.length all.queue then (
      let left = Queue.create () in
      Queue.iter (fun h -> if h.hangs then Queue.push h left) all.queue;
      all.queue <- left;
      all.gone <- 0);
    forget what all

  let hang me what p =
    let h = { who = me; hangs = true } and all = hangers_of what in
    tell_wait me what;
    Queue.push h all.queue;
    Lwt.on_termination p (fun () -> release what all h);
    (* Cancelled, it has got nothing of what it hung on. *)
    Lwt.try_bind
      (fun () -> p)
      (goes_on me ~slept:true ~what:(Some what) ~ends:ended Lwt.return)
      (goes_on me ~slept:true ~what:None ~ends:ended Lwt.fail)

  let wake_one what =
    let all = hangers_of what in
    match first_of all with
    | Some h ->
        leave all h;
        event notify ~thread:h.who ~other:what
    | None ->
        forget what all;
        event notify ~thread:nobody ~other:what

  let wake_all what =
    let all = hangers_of what in
    if first_of all = None then wake_one what
    else
      Queue.iter
        (fun h ->
          if h.hangs then event notify ~thread:h.who ~other:what;
          leave all h)
        all.queue

  let when_known x f = if on () then Option.iter f (number_of x)

  let waiting x make =
    match if on () then number_of x else None with
    | None -> make ()
    | Some what -> (
        let p = make () in
        go_back ();
        match Lwt.state p with Lwt.Sleep -> hang (current ()) what p | _ -> p)

  module Lwt_condition = struct
    include Lwt_condition

    let wait ?mutex c = waiting c (fun () -> Lwt_condition.wait ?mutex c)

    let signal c v =
      when_known c wake_one;
      Lwt_condition.signal c v;
      go_back ()

    let broadcast c v =
      when_known c wake_all;
      Lwt_condition.broadcast c v;
      go_back ()
  end

  module Lwt_mvar = struct
    include Lwt_mvar

    (* What is full wakes nobody who puts, and what is empty nobody who takes. *)
    let put m v =
      if is_empty m then when_known m wake_one;
      waiting m (fun () -> Lwt_mvar.put m v)

    let take m =
      if not (is_empty m) then when_known m wake_one;
      waiting m (fun () -> Lwt_mvar.take m)
  end
end
