(* SPDX-License-Identifier: BSD-2-Clause *)

(** What happens to a program's promises, for [uniscope trace threads], [why], [findings] and [wakeups]:
    the interface of MirageOS' mirage-profile, for programs on an Lwt that nobody has changed.

    While nothing is recorded every function does nothing, or what Lwt does. Otherwise events are told
    of what is named here, and, with {!Traced}, of who waits for it. *)

val start : ?size:int -> unit -> unit
(** Events are kept from now on in memory of that size, 4 MiB unless told otherwise: the newest ones.
    [uniscope trace dump], [record] and their like read them there from outside. Lwt's main loop says
    when it waits for work.
    @raise Failure if there is no memory, or no tracer in this program. *)

module Trace : sig
  val label : string -> unit
  (** Names the thread that runs (see {!Traced.thread}). *)

  val named_wait : string -> 'a Lwt.t * 'a Lwt.u
  val named_task : string -> 'a Lwt.t * 'a Lwt.u
  val named_condition : string -> 'a Lwt_condition.t
  val named_mvar : string -> 'a -> 'a Lwt_mvar.t
  val named_mvar_empty : string -> 'a Lwt_mvar.t

  val should_resolve : 'a Lwt.t -> unit
  (** This promise is meant to end: it is a finding if it does not. *)

  val note_increase : string -> int -> unit
  val note_counter_value : string -> int -> unit

  type hiatus_reason = Wait_for_work | Suspend | Hibernate

  val note_hiatus : hiatus_reason -> unit
  val note_resume : unit -> unit

  val note_gc : float -> unit
  (** A pause of so many seconds ends now. Also the callback "MProf.Trace.note_gc" for C. *)

  type log_buffer = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t

  type timestamper = log_buffer -> int -> unit
  (** Writes the time there: ns, 64 bits, little-endian. *)

  module Control : sig
    type t

    val make : log_buffer -> timestamper -> t
    (** @raise Invalid_argument if the buffer is smaller than 4096 bytes. *)

    val start : t -> unit

    val stop : t -> unit
    (** @raise Failure if this log is not being written. *)

    val lost : t -> int
    (** Events that were larger than a quarter of the buffer. *)

    val has_ring : unit -> bool
    (** The program is linked with uniscope's tracer: -DUNI_MPROF_RING. *)

    val start_ring : unit -> unit
    (** Events go into the tracer's rings from now on.
        @raise Failure if there are none. *)

    val stop_ring : unit -> unit
  end
end

module Counter : sig
  type t

  val create : ?init:int -> name:string -> unit -> t
  val make : name:string -> t
  val set_value : t -> int -> unit
  val increase : t -> int -> unit
  val value : t -> int
end

(** Who waits for whom. What has no name is "a promise" in the ring; a file has it not. *)
module Traced : sig
  val thread : string -> (unit -> 'a Lwt.t) -> 'a Lwt.t
  (** Runs it as a thread of that name; what it binds is its own, with this module's [bind]. *)

  val bind : 'a Lwt.t -> ('a -> 'b Lwt.t) -> 'b Lwt.t
  val ( >>= ) : 'a Lwt.t -> ('a -> 'b Lwt.t) -> 'b Lwt.t
  val map : ('a -> 'b) -> 'a Lwt.t -> 'b Lwt.t
  val ( >|= ) : 'a Lwt.t -> ('a -> 'b) -> 'b Lwt.t

  val named : string -> 'a Lwt.t -> 'a Lwt.t
  (** This promise has a name: who binds it waits for that. *)

  val sleep_ns_by : (int64 -> unit Lwt.t) -> int64 -> unit Lwt.t
  (** [let sleep_ns = sleep_ns_by Time.sleep_ns] names each sleep by its length. *)

  (** Who resolves what {!Trace} has named is told when it does so. Binds are those of this module, and
      each [async] is a thread of its own. So [-open MProf.Traced] among a library's flags records that
      library, and its source stays as it is. The rest is Lwt's. *)
  module Lwt : sig
    include module type of struct
      include Lwt
    end

    val bind : 'a t -> ('a -> 'b t) -> 'b t
    val map : ('a -> 'b) -> 'a t -> 'b t
    val try_bind : (unit -> 'a t) -> ('a -> 'b t) -> (exn -> 'b t) -> 'b t
    val catch : (unit -> 'a t) -> (exn -> 'a t) -> 'a t
    val finalize : (unit -> 'a t) -> (unit -> unit t) -> 'a t
    val async : (unit -> unit t) -> unit
    val dont_wait : (unit -> unit t) -> (exn -> unit) -> unit
    val join : unit t list -> unit t
    val both : 'a t -> 'b t -> ('a * 'b) t
    val all : 'a t list -> 'a list t
    val choose : 'a t list -> 'a t
    val pick : 'a t list -> 'a t
    val ( >>= ) : 'a t -> ('a -> 'b t) -> 'b t
    val ( >|= ) : 'a t -> ('a -> 'b) -> 'b t
    val ( =<< ) : ('a -> 'b t) -> 'a t -> 'b t
    val ( =|< ) : ('a -> 'b) -> 'a t -> 'b t
    val ( <&> ) : unit t -> unit t -> unit t
    val ( <?> ) : 'a t -> 'a t -> 'a t

    module Infix : module type of struct
      include Lwt.Infix
    end

    module Syntax : module type of struct
      include Lwt.Syntax
    end

    val wakeup : 'a Lwt.u -> 'a -> unit
    val wakeup_exn : 'a Lwt.u -> exn -> unit
    val wakeup_result : 'a Lwt.u -> ('a, exn) Stdlib.result -> unit
    val wakeup_later : 'a Lwt.u -> 'a -> unit
    val wakeup_later_exn : 'a Lwt.u -> exn -> unit
    val wakeup_later_result : 'a Lwt.u -> ('a, exn) Stdlib.result -> unit
  end

  (** Of conditions and mvars that {!Trace} has named; others as in Lwt. *)
  module Lwt_condition : sig
    include module type of struct
      include Lwt_condition
    end

    val wait : ?mutex:Lwt_mutex.t -> 'a Lwt_condition.t -> 'a Lwt.t
    val signal : 'a Lwt_condition.t -> 'a -> unit
    val broadcast : 'a Lwt_condition.t -> 'a -> unit
  end

  module Lwt_mvar : sig
    include module type of struct
      include Lwt_mvar
    end

    val put : 'a Lwt_mvar.t -> 'a -> unit Lwt.t
    val take : 'a Lwt_mvar.t -> 'a Lwt.t
  end
end
