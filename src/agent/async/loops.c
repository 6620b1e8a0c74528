#include "agent/async/loops.h"

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>

enum {
    US = 1000,
    SHORT_NS = 100000000,     /* such a stretch may fall between two passes, if we are late */
    ASK_PACE_NS = 4000000,    /* between two questions for a thread's loop, */
    AGAIN_PACE_NS = 20000000, /* the same one, that had no task yet; */
    ASKED_AT_ONCE = 32,       /* but for these polls: a loop that begins may soon wait for long */
};

static struct loop loops[LOOPS_MAX];
static _Atomic unsigned used;

unsigned loops_used(void)
{
    return atomic_load_explicit(&used, memory_order_acquire);
}

struct loop *loops_at(unsigned index)
{
    return &loops[index];
}

void loops_init(void)
{
    registry_init();
}

static bool is_wanted(void)
{
    return atomic_load_explicit(&agent.active, memory_order_relaxed) &&
           !(agent.control->flags & (WIRE_FLAG_NO_ASYNC | WIRE_FLAG_VIRTUAL_TIME));
}

/* ---- in the loop's thread ---- */

static struct loop *take(const struct thread *thread)
{
    for (unsigned i = 0; i < LOOPS_MAX; i++) {
        uint32_t expected = LOOP_FREE;
        if (!atomic_compare_exchange_strong(&loops[i].state, &expected, LOOP_TAKEN))
            continue;
        unsigned before = atomic_load(&used);
        while (before < i + 1 && !atomic_compare_exchange_weak(&used, &before, i + 1))
            ;
        loops[i].thread = thread;
        loops[i].serial = atomic_load(&thread->serial);
        loops[i].began_ns = os_mono_ns();
        return &loops[i];
    }
    return NULL;
}

/*
 * What is on the stack as long as the loop runs: the function that is the loop, or where that is
 * not written in Python, the call that began it.  Greenlets have stacks of their own.
 */
static void find_base(struct loop *loop, enum registry_kind kind, struct thread *thread)
{
    struct py_walk walk;
    atomic_store(&loop->base_code, 0);
    atomic_store(&loop->base_at, -1);
    if (kind == REGISTRY_GEVENT)
        return;
    frames_walk(&agent.layout, agent.code_type, atomic_load(&loop->tstate), thread->memory_frames,
                &walk);
    for (uint32_t i = 0; i < walk.count && !walk.bad; i++) {
        uint32_t id = tables_code(&agent.tables, &agent.layout, thread->memory_frames[i].code);
        const struct wire_code *code = id ? arena_record(&agent.arena, WIRE_CODE, id) : NULL;
        if (code && (tables_code_is(&agent.tables, code, "run_forever", "/base_events.py") ||
                     tables_code_is(&agent.tables, code, "run", "/trio/_core/_run.py"))) {
            atomic_store(&loop->base_code, id);
            return;
        }
    }
    if (walk.count && !walk.bad) {
        atomic_store(&loop->base_at, thread->memory_frames[0].at);
        atomic_store(&loop->base_code,
                     tables_code(&agent.tables, &agent.layout, thread->memory_frames[0].code));
    }
}

/* The thread polls something it did not poll before: a loop has begun in it, or ended. */
static void meet(struct thread *thread, int epoll_fd)
{
    struct registry_loop found = registry_ask();
    struct loop *loop = thread->loop;
    thread->poll_fd = epoll_fd;
    thread->epolls_met = thread->epolls_made;
    thread->is_asked_again = found.kind && !registry_ready(found.kind);
    if (found.kind && !loop)
        loop = take(thread);
    if (!loop)
        return;
    struct wire_async *header = &agent.arena.header->async;
    if (atomic_load(&loop->object) != found.object || atomic_load(&loop->tasks) != found.tasks) {
        atomic_store(&loop->moved_ns, 0);
        if (found.kind)
            atomic_fetch_add(&header->loops, 1);
    }
    atomic_store(&loop->tstate, (uintptr_t)agent.current_tstate());
    atomic_store(&loop->object, found.object);
    atomic_store(&loop->tasks, found.tasks);
    find_base(loop, found.kind, thread);
    atomic_store(&loop->kind, found.kind);
    if (found.kind && registry_ready(found.kind))
        atomic_store(&header->state, WIRE_ASYNC_OK);
    thread->loop = loop;
    atomic_store(&loop->state, LOOP_LIVE);
}

void loops_made_epoll(void)
{
    struct thread *thread = is_wanted() ? threads_self() : NULL;
    if (thread)
        thread->epolls_made++;
}

/* The loop has not polled since moved_ns. */
static void end_stretch(struct loop *loop, uint64_t now_ns)
{
    uint64_t begin_ns = atomic_load_explicit(&loop->moved_ns, memory_order_relaxed);
    if (!begin_ns)
        return;
    uint32_t made = atomic_load_explicit(&loop->stretches_made, memory_order_relaxed);
    bool is_long = now_ns - begin_ns >= WIRE_BLOCKED_LEAST_NS;
    if (!is_long || made - atomic_load_explicit(&loop->stretches_taken, memory_order_acquire) ==
                        LOOP_STRETCHES) {
        atomic_fetch_add_explicit(is_long ? &loop->crowded_ns : &loop->busy_ns, now_ns - begin_ns,
                                  memory_order_relaxed);
        return;
    }
    uint32_t turn = atomic_load_explicit(&loop->turn, memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(&loop->seen, memory_order_relaxed);
    loop->stretches[made % LOOP_STRETCHES] = (struct loop_stretch){
        begin_ns, now_ns, turn, (uint32_t)(seen >> 32) == turn ? (uint32_t)seen : 0};
    atomic_store_explicit(&loop->stretches_made, made + 1, memory_order_release);
}

static void move(struct loop *loop, uint64_t now_ns)
{
    atomic_store_explicit(&loop->moved_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&loop->turn, atomic_load_explicit(&loop->turn, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* Is it time to ask for the thread's loop?  Who polls another epoll each time is not asked each
 * time: that takes the GIL and some microseconds. */
static bool is_due(struct thread *thread, int epoll_fd)
{
    bool is_known = thread->poll_fd == epoll_fd && thread->epolls_met == thread->epolls_made;
    if (is_known && !thread->is_asked_again)
        return false;
    uint64_t now_ns = os_mono_ns();
    if (thread->polls >= ASKED_AT_ONCE &&
        now_ns - thread->asked_ns < (is_known ? AGAIN_PACE_NS : ASK_PACE_NS))
        return false;
    thread->asked_ns = now_ns;
    return true;
}

struct loop *loops_enter(int epoll_fd)
{
    int saved = errno;
    forks_check(); /* in a child that nobody told us of, nothing of the following is ours */
    struct thread *thread = is_wanted() ? threads_self() : NULL;
    if (!thread) {
        errno = saved;
        return NULL;
    }
    if (is_due(thread, epoll_fd))
        meet(thread, epoll_fd);
    thread->polls++;
    struct loop *loop = thread->loop;
    if (loop && atomic_load_explicit(&loop->kind, memory_order_relaxed)) {
        uint64_t now_ns = os_mono_ns();
        end_stretch(loop, now_ns);
        move(loop, now_ns);
    } else {
        loop = NULL;
    }
    errno = saved;
    return loop;
}

void loops_leave(struct loop *loop)
{
    if (!loop)
        return;
    int saved = errno;
    uint64_t now_ns = os_mono_ns();
    uint64_t idle_ns = now_ns - atomic_load_explicit(&loop->moved_ns, memory_order_relaxed);
    move(loop, now_ns);
    /* Afterwards: who looks in between finds too little, for once, and never the same time twice.
     */
    atomic_fetch_add_explicit(&loop->idle_ns, idle_ns, memory_order_release);
    errno = saved;
}

void loops_see(struct thread *thread, uint32_t node)
{
    struct loop *loop = thread->loop;
    atomic_store_explicit(
        &loop->seen, (uint64_t)atomic_load_explicit(&loop->turn, memory_order_relaxed) << 32 | node,
        memory_order_relaxed);
}

/* ---- in the sampler ---- */

uint64_t loops_first_ns(void)
{
    uint64_t first_ns = 0;
    for (unsigned i = 0; i < loops_used(); i++)
        if (atomic_load(&loops[i].state) == LOOP_LIVE &&
            (!first_ns || loops[i].began_ns < first_ns))
            first_ns = loops[i].began_ns;
    return first_ns;
}

bool loops_is_running(const struct loop *loop)
{
    uint32_t kind = atomic_load(&loop->kind);
    return atomic_load(&loop->state) == LOOP_LIVE && kind &&
           (!loop->open_outside || kind == REGISTRY_GEVENT);
}

/* Is the thread inside its loop, with this stack?  A greenlet's says nothing of that: but while all
 * others have ended, it keeps nobody from running. */
static bool is_inside(const struct loop *loop, uint32_t node)
{
    uint32_t code = atomic_load(&loop->base_code);
    int32_t at = atomic_load(&loop->base_at);
    if (atomic_load(&loop->kind) == REGISTRY_GEVENT)
        return loop->suspended > (loop->was_polling ? 1 : 0);
    if (!code || !node)
        return true;
    while (node) {
        const struct wire_node *record = arena_record(&agent.arena, WIRE_NODE, node);
        if (record->frame == WIRE_FRAME_PYTHON && record->ref == code &&
            (at < 0 || record->at == at))
            return true;
        node = record->parent;
    }
    return false;
}

static void keep_longest(const struct awaits_stretch *stretch)
{
    struct wire_async *header = &agent.arena.header->async;
    if (stretch->ns / US > atomic_load_explicit(&header->longest_us, memory_order_relaxed)) {
        atomic_store(&header->longest_us, stretch->ns / US);
        atomic_store(&header->longest_node, stretch->node);
    }
}

static void open_stretch(struct loop *loop, uint32_t turn, uint64_t from_ns)
{
    loop->open_turn = turn;
    loop->open_ns = from_ns;
    loop->open_node = 0;
    loop->open = (struct awaits_stretch){0};
}

/* The loop was blocked up to until_ns, and the thread is seen at this node. */
static void charge(struct loop *loop, uint32_t turn, uint64_t begin_ns, uint64_t until_ns,
                   uint32_t node)
{
    if (loop->open_turn != turn)
        open_stretch(loop, turn, begin_ns);
    if (until_ns <= loop->open_ns)
        return;
    loop->blocked_ns += until_ns - loop->open_ns;
    awaits_block(&loop->open, node, until_ns - loop->open_ns);
    loop->open_ns = until_ns;
    loop->open_node = node;
    keep_longest(&loop->open);
}

/* A stretch has ended.  Of one that nobody saw it is not known whose it was.  A short one is taken
 * for what the next short one is that is seen.  In a long one nobody ran, nor did we: the machine
 * stood still, and that is no line's doing. */
static void finish(struct loop *loop, const struct loop_stretch *stretch)
{
    bool was_open = loop->open_turn == stretch->turn;
    bool is_short = stretch->end_ns - stretch->begin_ns < SHORT_NS;
    uint32_t node = was_open && loop->open_node ? loop->open_node : stretch->node;
    if ((was_open && loop->open_outside) || !is_inside(loop, node))
        return;
    if (!node) {
        if (!was_open)
            open_stretch(loop, stretch->turn, stretch->begin_ns);
        if (stretch->end_ns > loop->open_ns) {
            loop->blocked_ns += stretch->end_ns - loop->open_ns;
            loop->unplaced_ns += is_short ? stretch->end_ns - loop->open_ns : 0;
            loop->unplaced += is_short;
            loop->open_ns = stretch->end_ns;
        }
        return;
    }
    charge(loop, stretch->turn, stretch->begin_ns, stretch->end_ns, node);
    if (is_short) {
        awaits_block_more(node, loop->unplaced_ns, loop->unplaced);
        loop->unplaced_ns = loop->unplaced = 0;
    }
}

static void finish_all(struct loop *loop)
{
    uint32_t made = atomic_load_explicit(&loop->stretches_made, memory_order_acquire);
    uint32_t taken = atomic_load_explicit(&loop->stretches_taken, memory_order_relaxed);
    for (; taken != made; taken++)
        finish(loop, &loop->stretches[taken % LOOP_STRETCHES]);
    atomic_store_explicit(&loop->stretches_taken, taken, memory_order_release);
    uint64_t crowded_ns = atomic_load_explicit(&loop->crowded_ns, memory_order_relaxed);
    loop->blocked_ns += crowded_ns - loop->told_crowded_ns;
    loop->unplaced_ns += crowded_ns - loop->told_crowded_ns;
    loop->told_crowded_ns = crowded_ns;
}

/* Add to a counter of the header what is new of ours. */
static void tell(_Atomic uint64_t *us, uint64_t ns, uint64_t *told_ns)
{
    if (ns < *told_ns + US)
        return;
    atomic_fetch_add(us, (ns - *told_ns) / US);
    *told_ns += (ns - *told_ns) / US * US;
}

static void tell_all(struct loop *loop, uint64_t idle_ns)
{
    struct wire_async *header = &agent.arena.header->async;
    tell(&header->idle_us, idle_ns, &loop->told_idle_ns);
    tell(&header->busy_us, atomic_load(&loop->busy_ns) + loop->blocked_ns, &loop->told_busy_ns);
    tell(&header->blocked_us, loop->blocked_ns, &loop->told_blocked_ns);
}

/* Where the thread is in this stretch; 0: nobody saw. */
static uint32_t node_of(const struct loop *loop, const struct thread *thread, uint32_t turn)
{
    uint64_t seen = atomic_load_explicit(&loop->seen, memory_order_relaxed);
    if (thread->placed)
        return thread->wait_node;
    return (uint32_t)(seen >> 32) == turn ? (uint32_t)seen : 0;
}

/* It has not polled for long. */
static void look_at_stretch(struct loop *loop, uint32_t turn, uint64_t moved_ns, uint64_t now_ns,
                            uint32_t node)
{
    if (!node) { /* the next time, or when it has ended */
        loop->open_outside = loop->open_outside && loop->open_turn == turn;
        return;
    }
    loop->open_outside = !is_inside(loop, node);
    if (!loop->open_outside) {
        charge(loop, turn, moved_ns, now_ns, node);
        return;
    }
    if (loop->open_turn != turn)
        open_stretch(loop, turn, now_ns);
    loop->open_ns = now_ns;
}

static void look_at(struct loop *loop, const struct thread *thread, uint64_t now_ns)
{
    finish_all(loop);
    uint32_t turn = atomic_load_explicit(&loop->turn, memory_order_acquire);
    uint64_t moved_ns = atomic_load(&loop->moved_ns);
    uint64_t idle_ns = atomic_load(&loop->idle_ns);
    if (atomic_load(&loop->turn) != turn ||
        atomic_load(&loop->stretches_made) != atomic_load(&loop->stretches_taken))
        return; /* it moves: the next time */
    bool is_on = moved_ns && atomic_load(&loop->kind);
    uint64_t since_ns = is_on && now_ns > moved_ns ? now_ns - moved_ns : 0;
    if (turn & 1 || since_ns < WIRE_BLOCKED_LEAST_NS)
        loop->open_outside = false;
    else
        look_at_stretch(loop, turn, moved_ns, now_ns, node_of(loop, thread, turn));
    tell_all(loop, idle_ns + (turn & 1 ? since_ns : 0));
}

/* Its thread has ended: the entry is for the next one.  Not as a whole: nobody may find it free
 * before it is empty. */
static void release(struct loop *loop)
{
    finish_all(loop);
    tell_all(loop, atomic_load(&loop->idle_ns));
    atomic_store(&loop->state, LOOP_TAKEN);
    memset((char *)loop + sizeof loop->state, 0, sizeof *loop - sizeof loop->state);
    atomic_store(&loop->state, LOOP_FREE);
}

static bool has_ended(const struct thread *thread, uint32_t serial)
{
    return atomic_load(&thread->state) != THREAD_LIVE || atomic_load(&thread->serial) != serial;
}

void loops_pass(uint64_t now_ns)
{
    for (unsigned i = 0; i < loops_used(); i++) {
        struct loop *loop = &loops[i];
        if (atomic_load(&loop->state) != LOOP_LIVE)
            continue;
        if (has_ended(loop->thread, loop->serial))
            release(loop);
        else
            look_at(loop, loop->thread, now_ns);
    }
}

void loops_skip(uint64_t now_ns)
{
    for (unsigned i = 0; i < loops_used(); i++) {
        struct loop *loop = &loops[i];
        if (atomic_load(&loop->state) != LOOP_LIVE)
            continue;
        uint32_t turn = atomic_load(&loop->turn);
        uint64_t moved_ns = atomic_load(&loop->moved_ns);
        bool is_idle = turn & 1 && moved_ns && now_ns > moved_ns;
        atomic_store(&loop->stretches_taken, atomic_load(&loop->stretches_made));
        loop->told_crowded_ns = atomic_load(&loop->crowded_ns);
        loop->told_idle_ns = atomic_load(&loop->idle_ns) + (is_idle ? now_ns - moved_ns : 0);
        loop->told_busy_ns = atomic_load(&loop->busy_ns) + loop->blocked_ns;
        loop->told_blocked_ns = loop->blocked_ns;
        open_stretch(loop, turn, now_ns);
    }
}

/* The forking thread's loop, if it has one, is in the child too; but nobody runs it there before it
 * polls, and then it is met anew. */
void loops_in_child(bool is_recorded)
{
    (void)is_recorded;
    memset(loops, 0, sizeof loops);
    atomic_store(&used, 0);
    registry_in_child();
}
