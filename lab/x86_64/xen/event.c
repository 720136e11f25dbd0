/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Periodic interrupt: the virtual timer's event. PV guests get an upcall (traps.S), PVH guests an
 * interrupt at the vector of the bare machines' timer.
 */
#include "lab.h"
#include "../cpu.h"
#include "xen.h"

#define VECTOR_TIMER 32
#define NS_A_SECOND  1000000000ULL

static volatile uint64_t nr_ticks;
static void (*tick_hook)(void);
static uint32_t timer_port;
static uint64_t period_ns, next_ns;

extern char lab_pv_upcall[];

/* None comes through until there is a timer. */
void lab_xen_event_init(void)
{
	struct xen_vcpu_info *vcpu = &lab_xen_shared.vcpu[0];

	for (unsigned i = 0; i < 64; i++)
		lab_xen_shared.event_mask[i] = ~0ULL;
	vcpu->upcall_mask = 1;
}

static void must(int64_t rc, const char *why)
{
	if (rc)
		lab_fail(why);
}

/* Xen's system time: what timers are set by. */
static uint64_t now_ns(void)
{
	const volatile struct xen_vcpu_info *vcpu = &lab_xen_shared.vcpu[0];
	uint64_t cycles, base;
	uint32_t version;

	do {
		version = vcpu->time.version;
		cycles = lab_tsc() - vcpu->time.tsc_timestamp;
		cycles = vcpu->time.tsc_shift < 0 ? cycles >> -vcpu->time.tsc_shift
						  : cycles << vcpu->time.tsc_shift;
		base = vcpu->time.system_time +
		       (uint64_t)((unsigned __int128)cycles * vcpu->time.tsc_to_system_mul >> 32);
	} while (version % 2 || version != vcpu->time.version);
	return base;
}

/* One at a time: the periodic timer that Xen has stands still while a vCPU sleeps. */
static void set_timer(void)
{
	uint64_t now = now_ns();
	struct xen_singleshot timer;

	next_ns = next_ns + period_ns > now ? next_ns + period_ns : now;
	timer = (struct xen_singleshot){ .timeout_ns = next_ns };
	must(lab_hypercall(
		     XEN_VCPU_OP, XEN_VCPU_SET_SINGLESHOT_TIMER, lab_cpu_id(), (uint64_t)&timer, 0),
		"no timer");
}

static void acknowledge(void)
{
	struct xen_vcpu_info *vcpu = &lab_xen_shared.vcpu[0];

	vcpu->upcall_pending = 0;
	__atomic_exchange_n(&vcpu->pending_sel, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_and(&lab_xen_shared.event_pending[timer_port / 64],
		~(1ULL << timer_port % 64), __ATOMIC_SEQ_CST);
}

/* For images without ../inside.c and port.c. */
__attribute__((weak)) void lab_tick_of(const uint64_t *frame)
{
}

__attribute__((weak)) void lab_port_tick(void)
{
}

void lab_timer_tick(const uint64_t *frame)
{
	acknowledge();
	set_timer();
	nr_ticks++;
	lab_tick_of(frame);
	lab_port_tick();
	if (tick_hook)
		tick_hook();
}

void lab_spurious(void)
{
}

static void route_events(void)
{
	struct xen_callback callback = { .type = XEN_CALLBACK_TYPE_EVENT,
		.address = (uint64_t)lab_pv_upcall };
	struct xen_hvm_param param = { .domid = XEN_DOMID_SELF,
		.index = XEN_HVM_PARAM_CALLBACK,
		.value = XEN_HVM_CALLBACK_BY_VECTOR | VECTOR_TIMER };

	if (lab_xen_pv)
		must(lab_hypercall(
			     XEN_CALLBACK_OP, XEN_CALLBACK_REGISTER, (uint64_t)&callback, 0, 0),
			"no upcalls");
	else
		must(lab_hypercall(XEN_HVM_OP, XEN_HVM_SET_PARAM, (uint64_t)&param, 0, 0),
			"no interrupts by events");
}

static void timer_bind(void)
{
	struct xen_bind_virq bind = { .virq = XEN_VIRQ_TIMER };

	route_events();
	/* PV guests are born with a timer of 100 Hz. */
	if (lab_xen_pv)
		must(lab_hypercall(XEN_VCPU_OP, XEN_VCPU_STOP_PERIODIC_TIMER, lab_cpu_id(), 0, 0),
			"the periodic timer does not stop");
	must(lab_hypercall(XEN_EVENT_CHANNEL_OP, XEN_EVENT_BIND_VIRQ, (uint64_t)&bind, 0, 0),
		"no timer event");
	timer_port = bind.port;
	/* Xen has to do it: one that came since would keep all others from coming. */
	must(lab_hypercall(XEN_EVENT_CHANNEL_OP, XEN_EVENT_UNMASK, (uint64_t)&timer_port, 0, 0),
		"no timer event comes through");
}

void lab_timer_start(unsigned hz, void (*hook)(void))
{
	tick_hook = hook;
	period_ns = NS_A_SECOND / hz;
	next_ns = now_ns();
	if (timer_port == 0)
		timer_bind();
	set_timer();
}

uint64_t lab_ticks(void)
{
	return nr_ticks;
}

LAB_FUNC void lab_halt(void)
{
	if (!lab_xen_pv) {
		__asm__ volatile("sti\n\thlt\n\tcli" : : : "memory");
		return;
	}
	/* Lets upcalls in, and both at once: none is lost between the two. */
	lab_hypercall(XEN_SCHED_OP, XEN_SCHED_BLOCK, 0, 0, 0);
	lab_irq_disable();
}

void lab_irq_enable(void)
{
	volatile struct xen_vcpu_info *vcpu = &lab_xen_shared.vcpu[0];

	if (!lab_xen_pv) {
		__asm__ volatile("sti" : : : "memory");
		return;
	}
	vcpu->upcall_mask = 0;
	/* An event that came before that is delivered at the end of the next hypercall, whichever
	 * it is. */
	if (vcpu->upcall_pending)
		lab_hypercall(XEN_VERSION, 0, 0, 0, 0);
}

void lab_irq_disable(void)
{
	volatile struct xen_vcpu_info *vcpu = &lab_xen_shared.vcpu[0];

	if (lab_xen_pv)
		vcpu->upcall_mask = 1;
	else
		__asm__ volatile("cli" : : : "memory");
}
