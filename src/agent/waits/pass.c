#include "agent/waits/pass.h"

#include "agent/core/agent.h"
#include "agent/core/threads.h"
#include "agent/core/timeline.h"
#include "agent/cpu/owner.h"
#include "agent/waits/cause.h"
#include "agent/waits/look.h"
#include "agent/waits/still.h"
#include "os/os.h"

enum {
    WAIT_NOTICE_NS = 300000,     /* shorter waits are scheduling noise */
    PENDING_MAX_NS = 1000000000, /* waits of a thread that is never caught waiting */
    LOOK_MOST_NS = 300000, /* CPU time of a pass; who is left over is looked at in the next one */
    CHECK_EVERY = 8,       /* threads: whether it was that much */
    BOOKS_PARTS = 8,       /* of threads that stand still, in turn: what they waited is noted */
    BOOKS_NS = 20000000,   /* so long after the part before */
};

static bool keep_descriptors;
static uint64_t last_now_ns; /* of the pass before */
static unsigned first;       /* thread of the next pass */
static struct {              /* who was charged in the pass before */
    enum wire_rank rank;
    unsigned sharers; /* 0: nobody */
} charged_last;
static struct py_frame walk_frames[PY_FRAMES_MAX];

static void forget(struct thread *thread)
{
    os_close(&thread->syscall_fd);
    os_close(&thread->delay_fd);
}

/* A thread seen for the first time: its clocks start where it began. */
static void adopt(struct thread *thread, uint32_t serial)
{
    if (thread->seen_serial)
        forget(thread);
    thread->syscall_fd = thread->delay_fd = -1;
    thread->seen_serial = serial;
    thread->pass_wall_ns = thread->begin_wall_ns;
    thread->pass_cpu_ns = thread->begin_cpu_ns;
    thread->valid_cpu_ns = thread->pending_ns = thread->pending_charged_ns = thread->waited_ns = 0;
    thread->wait_node = thread->wait_kind = 0;
    thread->starved_ns = thread->ahead_ns = 0;
    thread->switches = UINT64_MAX; /* not known */
    thread->placed = false;
    thread->wait_log = (struct timeline_cursor){0};
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* What looking at a thread that did not run all the time can show. */
enum finding {
    FOUND_WAITING,  /* wait_node and wait_kind say where and for what */
    FOUND_RUNNABLE, /* on a processor, or ready for one */
    FOUND_MOVING,   /* it ran while it was looked at */
    FOUND_NATIVE,   /* a thread without Python code: nobody's line */
};

/*
 * Find out where a thread waits.  What was read counts only if the thread did
 * not run meanwhile, i.e. its CPU clock stood still.
 */
static enum finding find_wait(struct thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
    uint32_t joined = claims_joined();
    if (thread->valid_cpu_ns == cpu_ns && thread->wait_node && thread->seen_joined == joined)
        return FOUND_WAITING; /* has not run since it was read: still there */
    struct look look;
    if (!look_begin(thread, &look))
        return FOUND_NATIVE;
    if (!look_wait(thread, &thread->syscall_fd, keep_descriptors, &look))
        return FOUND_RUNNABLE;
    look_stack(&look, walk_frames);
    struct cause cause = {WIRE_WAIT_OTHER, false};
    if (look.knows_wait)
        cause = cause_find(&look.wait, look.tstate, now_ns);
    if (!look_held(thread, cpu_ns)) {
        arena_lost(&agent.arena, WIRE_LOST_TORN_WAIT);
        return FOUND_MOVING;
    }
    if (!look.node)
        return FOUND_MOVING;
    thread->wait_node = look.node;
    thread->wait_kind = cause.kind;
    thread->is_outside = cause.is_outside;
    thread->valid_cpu_ns = cpu_ns;
    thread->seen_joined = joined;
    bool in_native = cause.kind == WIRE_WAIT_LOCK &&
                     agent.layout.calls[look.leaf_opcode] != PY_CALL_NONE &&
                     !cause_is_python_lock(&look.wait);
    owner_see(thread, look.node,
              in_native                     ? OWNER_NATIVE_WAITS
              : cause.kind == WIRE_WAIT_GIL ? OWNER_RUNS
                                            : OWNER_WAITS);
    return FOUND_WAITING;
}

/* What the thread claims of the time in which nobody runs. */
static enum wire_rank rank_of(const struct thread *thread)
{
    bool is_main = agent.is_first && thread->is_main;
    uint32_t node = thread->runnable
                        ? atomic_load_explicit(&thread->last_node, memory_order_relaxed)
                        : thread->wait_node;
    bool is_traced = tables_traced(&agent.tables, node);
    if (thread->runnable)
        return is_traced ? WIRE_RANK_STARVED : WIRE_RANK_UNTRACED_STARVED;
    if (thread->placed && thread->wait_kind == WIRE_WAIT_REQUEST)
        return WIRE_RANK_REQUEST;
    if (thread->placed && thread->is_outside)
        return is_main     ? is_traced ? WIRE_RANK_MAIN_OUTSIDE : WIRE_RANK_UNTRACED_MAIN_OUTSIDE
               : is_traced ? WIRE_RANK_OUTSIDE
                           : WIRE_RANK_UNTRACED_OUTSIDE;
    if (is_main)
        return is_traced ? WIRE_RANK_MAIN : WIRE_RANK_UNTRACED_MAIN;
    return WIRE_RANKS;
}

/* Do the sampler's fields speak of the thread that has the entry?  Not if that began after threads
 * were looked at, in the entry of another; but if it has ended since. */
static bool is_observed(const struct thread *thread)
{
    return thread->seen_serial && thread->seen_serial == atomic_load(&thread->serial);
}

static void add(struct thread *thread, uint32_t node, enum wire_kind kind, uint64_t ns,
                uint64_t charged_ns, uint64_t now_ns)
{
    tables_add(&agent.tables, node, kind, ns, charged_ns);
    if (charged_ns && kind != WIRE_WAIT_REQUEST) /* idle is nothing that happens */
        timeline_add(&thread->wait_log, thread->record, node, kind, now_ns - charged_ns,
                     charged_ns);
}

/* Put what is pending, or one part in `parts` of it, to a place. */
static void add_pending(struct thread *thread, uint32_t node, enum wire_kind kind, unsigned parts,
                        uint64_t now_ns)
{
    uint64_t ns = thread->pending_ns / parts, charged_ns = thread->pending_charged_ns / parts;
    if (ns)
        add(thread, node, kind, ns, charged_ns, now_ns);
    thread->pending_ns -= ns;
    thread->pending_charged_ns -= charged_ns;
}

/* So much of what is pending was for want of a processor.  A thread not yet sampled on the CPU has
 * no line for that. */
static void add_starved(struct thread *thread, uint64_t ns, uint64_t now_ns)
{
    uint32_t node = atomic_load_explicit(&thread->last_node, memory_order_relaxed);
    if (!node)
        node = tables_node(&agent.tables, 0, WIRE_FRAME_INTERPRETER, 0, 0, 0);
    uint64_t starved = least(ns, thread->pending_ns);
    uint64_t charged = least(thread->pending_charged_ns, starved);
    add(thread, node, WIRE_WAIT_STARVED, starved, charged, now_ns);
    thread->pending_ns -= starved;
    thread->pending_charged_ns -= charged;
}

/* Write down what one thread waited in this pass. */
static void settle(const struct pass *pass, struct thread *thread)
{
    if (!thread->wait_ns)
        return;
    uint32_t cpu_node = atomic_load_explicit(&thread->last_node, memory_order_relaxed);
    thread->pending_ns += thread->wait_ns;
    thread->pending_charged_ns += least(thread->charge_ns, thread->wait_ns);
    /* The kernel tells of a delay when it is over: it may reach back into earlier passes. */
    if (thread->starve_ns >= WAIT_NOTICE_NS)
        add_starved(thread, thread->starve_ns, pass->now_ns);
    /* What it is charged for being ready to run is not for a lock, got or waited for. */
    enum wire_kind kind =
        (enum wire_kind)(thread->placed ? thread->wait_kind : thread->before_kind);
    if (!thread->is_main && (thread->placed || thread->runnable) && !cause_is_external(kind) &&
        thread->pending_charged_ns) {
        thread->ahead_ns += thread->pending_charged_ns;
        add_starved(thread, thread->pending_charged_ns, pass->now_ns);
    }
    bool left =
        thread->before_node && (!thread->placed || thread->before_node != thread->wait_node ||
                                thread->before_kind != thread->wait_kind);
    if (left) /* its old wait ended somewhere in this pass: on average in the middle of the wait */
        add_pending(thread, thread->before_node, (enum wire_kind)thread->before_kind,
                    thread->placed ? 2 : 1, pass->now_ns);
    if (thread->placed)
        add_pending(thread, thread->wait_node, (enum wire_kind)thread->wait_kind, 1, pass->now_ns);
    else if (thread->pending_ns > PENDING_MAX_NS && cpu_node)
        add_pending(thread, cpu_node, WIRE_WAIT_OTHER, 1, pass->now_ns);
    /* Else it was caught running: the wait goes where the thread is next found waiting. */
    thread->wait_ns = 0; /* it is on the books */
    if (thread->record) {
        struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, thread->record);
        atomic_store_explicit(&record->waited_ns, thread->waited_ns, memory_order_relaxed);
    }
}

/* Its part of the time in which nobody ran, if it was charged at the last pass. */
static uint64_t charge_of_ended(const struct pass *pass, const struct thread *thread)
{
    bool was_charged = charged_last.sharers && thread->rank == charged_last.rank;
    return was_charged ? pass->idle_ns / charged_last.sharers : 0;
}

/* A thread is gone: what it waited since the last pass goes where it was last seen waiting. */
static void settle_ended(struct pass *pass, struct thread *thread)
{
    if (is_observed(thread)) {
        uint64_t used_ns = thread->end_cpu_ns - thread->pass_cpu_ns;
        uint64_t wall_ns = thread->end_wall_ns - thread->pass_wall_ns;
        if (wall_ns > used_ns) {
            uint64_t charge_ns = thread->placed ? charge_of_ended(pass, thread) : 0;
            thread->pending_ns += wall_ns - used_ns;
            thread->pending_charged_ns += least(charge_ns, wall_ns - used_ns);
            pass->idle_ns -= least(charge_ns, wall_ns - used_ns);
        }
        if (thread->wait_node)
            add_pending(thread, thread->wait_node, (enum wire_kind)thread->wait_kind, 1,
                        pass->now_ns);
    }
    if (thread->seen_serial)
        forget(thread);
    thread->seen_serial = 0;
    still_note(thread, false);
}

/* Has it waited for something since this was last asked?  If not, it had no processor: others had
 * it or, in a virtual machine, other machines, of which the kernel's own count knows nothing. */
static bool has_waited(struct thread *thread)
{
    uint64_t switches, before = thread->switches;
    if (!os_thread_switches(thread->tid, &switches))
        return true;
    thread->switches = switches;
    return switches != before;
}

/* How much of the time in this pass the thread was ready to run without a processor.  The kernel
 * tells that when it is over, and then once more what was seen before. */
static void look_for_starving(struct thread *thread, uint64_t used_ns)
{
    uint64_t starved_ns;
    if (used_ns &&
        os_thread_starved_ns(thread->tid, &thread->delay_fd, keep_descriptors, &starved_ns)) {
        uint64_t told_ns = starved_ns - thread->starved_ns;
        thread->starve_ns = told_ns - least(told_ns, thread->ahead_ns);
        thread->starved_ns = starved_ns;
        thread->ahead_ns = 0;
    }
    if (thread->runnable && thread->wait_ns > thread->starve_ns + WAIT_NOTICE_NS &&
        !has_waited(thread)) {
        thread->ahead_ns += thread->wait_ns - thread->starve_ns;
        thread->starve_ns = thread->wait_ns;
    }
}

/* How long the thread waited since the last look, and where it is now. */
static void look_at(struct pass *pass, struct thread *thread, uint64_t cpu_ns)
{
    if (pass->now_ns < thread->pass_wall_ns)
        return; /* it began after this pass did: for the next one */
    uint64_t used_ns = cpu_ns - thread->pass_cpu_ns;
    uint64_t wall_ns = pass->now_ns - thread->pass_wall_ns;
    thread->pass_cpu_ns = cpu_ns;
    thread->pass_wall_ns = pass->now_ns;
    if (used_ns)
        pass->any_moved = true;
    if (wall_ns < used_ns + WAIT_NOTICE_NS)
        return;
    enum finding finding = find_wait(thread, cpu_ns, pass->now_ns);
    thread->waited_ns += wall_ns - used_ns;
    thread->stood = !used_ns && (finding == FOUND_WAITING || finding == FOUND_NATIVE);
    if (finding == FOUND_NATIVE)
        return;
    thread->wait_ns = wall_ns - used_ns;
    thread->placed = finding == FOUND_WAITING;
    thread->runnable = finding == FOUND_RUNNABLE;
    look_for_starving(thread, used_ns);
    thread->rank = (uint8_t)rank_of(thread);
}

static void begin_look(struct thread *thread)
{
    thread->wait_ns = thread->starve_ns = thread->charge_ns = 0;
    thread->before_node = thread->placed ? thread->wait_node : 0;
    thread->before_kind = thread->placed ? thread->wait_kind : 0;
    thread->placed = thread->runnable = thread->stood = false;
    thread->rank = WIRE_RANKS;
}

/* A thread that stood still has run: up to the last pass it had not. */
static void catch_up(struct thread *thread)
{
    uint64_t wait_ns = last_now_ns - thread->pass_wall_ns;
    thread->pass_wall_ns = last_now_ns;
    thread->waited_ns += wait_ns;
    if (thread->before_node) {
        thread->pending_ns += wait_ns;
        add_pending(thread, thread->before_node, (enum wire_kind)thread->before_kind, 1,
                    last_now_ns);
    }
}

static void observe(struct pass *pass, struct thread *thread)
{
    uint32_t serial = atomic_load(&thread->serial);
    uint64_t cpu_ns;
    begin_look(thread);
    if (serial != thread->seen_serial) {
        still_note(thread, false);
        adopt(thread, serial);
        pass->any_moved = true;
    }
    if (!os_thread_cpu_of(thread->tid, &cpu_ns))
        return; /* just ended */
    if (still_is(thread->index) && cpu_ns != thread->pass_cpu_ns)
        catch_up(thread);
    look_at(pass, thread, cpu_ns);
    if (thread->rank < WIRE_RANKS)
        pass->claims.threads[thread->rank]++;
    if (thread->wait_ns > thread->starve_ns + WAIT_NOTICE_NS && !still_is(thread->index))
        pass->any_waited = true;
}

/* As if it had not been there: its time goes on, and it claims nothing. */
static void leave_over(struct thread *thread)
{
    still_note(thread, false);
    thread->wait_ns = thread->charge_ns = 0;
    thread->rank = WIRE_RANKS;
}

/* Of very many threads that all move, some are looked at in each pass, and the main one. */
static void observe_all(struct pass *pass, bool still_ones_too)
{
    unsigned used = threads_used(), looks = 0, next = first;
    uint64_t until_ns = os_thread_cpu_ns() + LOOK_MOST_NS;
    bool is_over = false;
    for (unsigned k = 0; k < used; k++) {
        unsigned i = (first + k) % used;
        if (!still_ones_too && still_is(i))
            continue;
        struct thread *thread = threads_at(i);
        uint32_t state = atomic_load(&thread->state);
        if (state == THREAD_ENDED) {
            settle_ended(pass, thread);
            threads_free(thread);
        } else if (state == THREAD_LIVE && is_over && !thread->is_main) {
            leave_over(thread);
        } else if (state == THREAD_LIVE) {
            observe(pass, thread);
            if (!is_over && ++looks % CHECK_EVERY == 0 && os_thread_cpu_ns() > until_ns) {
                is_over = true;
                next = i + 1;
            }
        }
    }
    first = next;
}

/* What each thread of a rank is charged in this pass; those of none, nothing. */
struct charges {
    uint64_t ns[WIRE_RANKS + 1];
};

/* Threads of this rank cannot be charged all that, having waited less. */
static uint64_t excess_of(unsigned rank, uint64_t charge_ns, bool still_ones_too)
{
    uint64_t excess_ns = 0;
    for (unsigned i = 0, used = threads_used(); i < used; i++) {
        const struct thread *thread = threads_at(i);
        if ((still_ones_too || !still_is(i)) && thread->rank == rank && is_observed(thread))
            excess_ns += charge_ns - least(charge_ns, thread->wait_ns);
    }
    return excess_ns;
}

/* The best rank in the session comes first.  What is before its threads began to wait is for those
 * of the next one, in this process. */
static struct charges share_out(const struct pass *pass, bool still_ones_too)
{
    struct charges charges = {{0}};
    unsigned sharers;
    unsigned best = claims_settle(&pass->claims, pass->now_ns, &sharers);
    uint64_t left_ns = pass->idle_ns;
    charged_last.rank = best;
    charged_last.sharers = sharers;
    for (unsigned rank = best; rank < WIRE_RANKS && left_ns; rank++) {
        unsigned threads = rank == best ? sharers : pass->claims.threads[rank];
        if (!threads)
            continue;
        charges.ns[rank] = left_ns / threads;
        left_ns = excess_of(rank, charges.ns[rank], still_ones_too);
        if (left_ns < WAIT_NOTICE_NS)
            break;
    }
    return charges;
}

/* Write down what those waited that stand still: where they are charged at once, else now and
 * then. */
static void settle_still(struct pass *pass, const struct charges *charges)
{
    static unsigned first_part;
    uint64_t parts = 1 + pass->wall_ns / BOOKS_NS;
    for (unsigned i = 0, used = threads_used(); i < used; i++) {
        uint64_t charge_ns = charges->ns[still_rank(i)];
        bool is_due = (i + first_part) % BOOKS_PARTS < parts;
        if (!still_is(i) || !(charge_ns || is_due))
            continue;
        struct thread *thread = threads_at(i);
        if (atomic_load(&thread->state) != THREAD_LIVE || !is_observed(thread))
            continue; /* it ends: the next pass will see that */
        begin_look(thread);
        look_at(pass, thread, thread->pass_cpu_ns);
        thread->charge_ns = charge_ns;
        settle(pass, thread);
    }
    first_part += BOOKS_PARTS - (unsigned)(parts % BOOKS_PARTS);
}

static void settle_others(struct pass *pass, const struct charges *charges, bool still_ones_too)
{
    for (unsigned i = 0, used = threads_used(); i < used; i++) {
        struct thread *thread = threads_at(i);
        if ((!still_ones_too && still_is(i)) || !is_observed(thread))
            continue;
        thread->charge_ns = charges->ns[thread->rank];
        settle(pass, thread);
        if (thread->pass_wall_ns == pass->now_ns)
            still_note(thread, thread->stood);
    }
}

/* The time in which no thread of any process ran is charged once, to the threads of the best rank
 * there is in the session: this process's part of it. */
void pass_look(struct pass *pass)
{
    bool hold = still_hold();
    if (hold)
        pass->claims = *still_claims();
    observe_all(pass, !hold);
    struct charges charges = share_out(pass, !hold);
    if (hold)
        settle_still(pass, &charges);
    settle_others(pass, &charges, !hold);
    last_now_ns = pass->now_ns;
}

/* What the thread does counts from now on. */
static void begin_at(struct thread *thread, uint64_t now_ns)
{
    adopt(thread, atomic_load(&thread->serial));
    thread->pass_wall_ns = now_ns;
    os_thread_cpu_of(thread->tid, &thread->pass_cpu_ns);
    os_thread_starved_ns(thread->tid, &thread->delay_fd, keep_descriptors, &thread->starved_ns);
}

/* While switched off: let time pass without charging it. */
void pass_skip(uint64_t now_ns)
{
    still_clear();
    last_now_ns = now_ns;
    for (unsigned i = 0; i < threads_used(); i++)
        if (atomic_load(&threads_at(i)->state) == THREAD_LIVE)
            begin_at(threads_at(i), now_ns);
}

void pass_begin(uint64_t now_ns, bool may_keep_descriptors)
{
    keep_descriptors = may_keep_descriptors;
    still_clear();
    last_now_ns = now_ns;
    first = 0;
    for (unsigned i = 0; i < threads_used(); i++) {
        struct thread *thread = threads_at(i);
        thread->syscall_fd = thread->delay_fd = -1; /* numbers they were for a sampler before */
        if (atomic_load(&thread->state) == THREAD_LIVE && !is_observed(thread))
            begin_at(thread, now_ns);
    }
}
