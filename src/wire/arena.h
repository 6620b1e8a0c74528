/*
 * The arena: what one profiled process leaves behind, in a MAP_SHARED file
 * that is complete after every single store, so that it can be read at any
 * time: while the process runs, after it ended, after kill -9.
 *
 *   offset 0      struct wire_header (WIRE_HEADER_BYTES)
 *   section 0     blob    bytes: names and line tables, referred to by offset
 *   section 1     code    struct wire_code     one a Python code object seen
 *   section 2     node    struct wire_node     call tree: a stack is its leaf's id
 *   section 3     cell    struct wire_cell     time by (node, kind)
 *   section 4     log     struct wire_log      what ran when, run-length coded
 *   section 5     thread  struct wire_thread   one a thread seen
 *   section 6     await   struct wire_await    time of tasks by (node, kind)
 *   section 7     place   struct wire_place    where tasks wait, or an event loop is blocked
 *   section 8     name    struct wire_name     names of tasks seen at a place
 *   section 9     crowd   struct wire_crowd    how many tasks there were when
 *   section 10    module  struct wire_module   one a library that allocated
 *   section 11    site    struct wire_site     memory by (node, kind, module)
 *   section 12    block   struct wire_block    sampled blocks that are alive now
 *   section 13    foot    struct wire_foot     the footprint's course
 *
 * Sections 6 to 9 are empty unless the program has an event loop, 10 to 13 unless memory is
 * followed (allocation_window_bytes of the control file).
 *
 * A section is an array that only grows.  Its place in the file is spaced for
 * `capacity` records; the first `committed` of them are backed by
 * posix_fallocate, and a writer never goes beyond: a full disk costs samples
 * (counted in `dropped`), never a SIGBUS in the user's program.
 *
 * Record ids (in `blob`: byte offsets) start at 1, so that 0 means "none".  Writers fill a record
 * and then publish it: a code, node or thread by storing its id in a record that refers to it, a
 * cell or log entry by its `kind`, which is stored last.  A record nobody refers to, or whose kind
 * is 0, is to be ignored.  Two records may hold the same thing (writers never wait for each other):
 * readers merge by content.
 *
 * Counters must outlast the run.  Those of 64 bits do: nanoseconds for 584 years of all threads
 * together (4096 threads for 52 days), bytes for 5 years at 100 GB a second, samples for ever.
 * Where a field is smaller, or is made to last differently, it says so.  wire/limits.h has what
 * readers take for damage.
 */
#ifndef WIRE_ARENA_H
#define WIRE_ARENA_H

#include "wire/waits.h"

#include <stdatomic.h>
#include <stdint.h>

#define WIRE_ARENA_MAGIC UINT64_C(0x6e6572616c616373) /* "scalaren" */
enum {
    WIRE_ARENA_VERSION = 5,
    WIRE_HEADER_BYTES = 8192,
    WIRE_SECTIONS_MAX = 32,
    WIRE_LOSSES_MAX = 32,
    WIRE_COMMAND_BYTES = 2048,
};

enum wire_section_id {
    WIRE_BLOB,
    WIRE_CODE,
    WIRE_NODE,
    WIRE_CELL,
    WIRE_LOG,
    WIRE_THREAD,
    WIRE_AWAIT,
    WIRE_PLACE,
    WIRE_NAME,
    WIRE_CROWD,
    WIRE_MODULE,
    WIRE_SITE,
    WIRE_BLOCK,
    WIRE_FOOT,
    WIRE_SECTIONS,
};

/* What a stretch of a thread's time was spent on.  0 = record not published. */
#define WIRE_WAIT_ROW(NAME, key, label, external, help) WIRE_WAIT_##NAME,
enum wire_kind {
    WIRE_NONE,
    WIRE_CPU_PYTHON,
    WIRE_CPU_NATIVE,
    WIRE_CPU_CALL, /* a call into the interpreter, of we do not know what: report/judge.h */
    WIRE_WAITS(WIRE_WAIT_ROW) WIRE_KINDS, /* WIRE_WAIT_FILE, ...: wire/waits.h */
    WIRE_WAIT_FIRST = WIRE_CPU_CALL + 1,
};

/* Why something is missing from the numbers; counted in wire_header.lost. */
enum wire_loss {
    WIRE_LOST_TABLE_FULL, /* a sample whose stack or cell found no room */
    WIRE_LOST_BAD_FRAME,  /* a sample none of whose frames could be read: CPU kept, stack lost */
    WIRE_LOST_TORN_WAIT,  /* a waiting thread moved while it was read; its time was kept back */
    WIRE_LOST_LOG_FULL,   /* a timeline entry without room: totals unaffected */
    WIRE_LOST_TIMER,      /* a thread that got no timer */
    WIRE_LOST_THREAD,     /* a thread beyond the thread limit */
    WIRE_LOST_TRUNCATED,  /* a stack deeper than the limit: outermost frames cut */
    WIRE_LOST_FOLDED,     /* a stack stored with recursion folded, tables being nearly full */
    WIRE_LOST_TEXT,       /* a name or line table too long or unreadable */
    WIRE_LOST_GROW,       /* the arena could not grow: disk full */
    WIRE_LOST_SAMPLER,    /* the wait sampler could not be started */
    WIRE_LOST_ALLOCATION, /* an allocation or copy chosen as a sample that could not be recorded */
    WIRE_LOST_TORN,       /* a stack whose outermost frames could not be read */
    WIRE_LOSSES,
};

enum wire_stacks_state {
    WIRE_STACKS_UNTRIED,
    WIRE_STACKS_OK,
    WIRE_STACKS_UNKNOWN_PYTHON, /* no layout for this CPython: CPU totals only */
    WIRE_STACKS_SELFCHECK,      /* layout did not fit what was found: CPU totals only */
};

enum wire_header_flags {
    WIRE_PROCESS_JIT = 1u << 0,            /* CPython's JIT is on: lines in hot loops approximate */
    WIRE_PROCESS_FREE_THREADED = 1u << 1,  /* no GIL */
    WIRE_PROCESS_FORKED = 1u << 2,         /* began by fork, without exec */
    WIRE_PROCESS_FIRST = 1u << 3,          /* the one the launcher started */
    WIRE_PROCESS_MEMORY = 1u << 4,         /* memory is followed */
    WIRE_PROCESS_NO_OBJECTS = 1u << 5,     /* small Python objects are not: the interpreter's
                                              allocator does not hand them to malloc */
    WIRE_PROCESS_CRAMPED = 1u << 8,        /* little address space: sections hold less than usual */
    WIRE_PROCESS_CONFINED = 1u << 7,       /* recording ended when it installed a seccomp filter */
    WIRE_PROCESS_HIDDEN_OBJECTS = 1u << 6, /* for some time they were not: another hook was put in
                                              front of the allocator */
};

struct wire_section {
    uint64_t offset; /* from the start of the file */
    uint32_t record_bytes;
    uint32_t capacity;
    _Atomic uint32_t committed;
    _Atomic uint32_t used; /* records 1 to used - 1 are taken */
    _Atomic uint64_t dropped;
};

/* What was resident, and what was live at the same moment. */
struct wire_look {
    _Atomic uint64_t at_cpu_ms;             /* as in wire_block */
    _Atomic uint64_t rss_bytes, file_bytes; /* file: of it, pages of files and shared memory */
    _Atomic uint64_t live_bytes, live_python_bytes, live_mapped_bytes;
};

/*
 * Memory of the whole process, in bytes as estimated from the samples (blocks
 * of at least WIRE_LARGE_LEAST bytes are exact).  Counted from the program's
 * start: what the interpreter allocated before is in `start_rss_bytes`.
 */
struct wire_memory {
    _Atomic uint64_t samples;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t live_bytes, live_python_bytes, live_mapped_bytes;
    _Atomic uint64_t peak_bytes, peak_python_bytes, peak_at_ns; /* at_ns: since start_mono_ns */
    _Atomic uint32_t peak_epoch;     /* bumped with each new peak: see wire_site.  It wraps; only a
                                        site untouched for 2^32 peaks could take one for another */
    _Atomic uint32_t peak_site;      /* whose allocation made the peak */
    _Atomic uint64_t interval_bytes; /* mean bytes between two samples, now */
    _Atomic uint64_t copied_bytes;
    _Atomic uint64_t start_rss_bytes, start_file_bytes; /* as in `look` */
    struct wire_look look;                              /* the last one */
    _Atomic uint64_t foot_stride;                       /* as log_stride, of section foot */
    _Atomic uint64_t calls; /* of allocating and copying functions that passed ours, estimated */
    _Atomic uint64_t sample_ns;      /* time that taking and ending samples took, estimated */
    _Atomic uint64_t reserved_bytes; /* the size of what is mapped, resident or not, at `look` */
};
enum { WIRE_LARGE_LEAST = 65536 };

/* Can the tasks of event loops be read? */
enum wire_async_state {
    WIRE_ASYNC_UNSEEN, /* there was no event loop, or async was not asked for */
    WIRE_ASYNC_OK,
    WIRE_ASYNC_UNKNOWN_PYTHON, /* we do not know where this one keeps its tasks */
    WIRE_ASYNC_SELFCHECK,      /* what we know of them is not so here */
};

/*
 * Event loops of all threads together.  A loop is busy while it runs, which is whenever it is not
 * inside its poll; it is blocked while it has not polled for WIRE_BLOCKED_LEAST_NS.  Microseconds,
 * as all that tasks do: a hundred thousand of them at once would wrap nanoseconds within days.
 */
struct wire_async {
    _Atomic uint32_t state;                        /* enum wire_async_state */
    _Atomic uint32_t loops;                        /* that were seen */
    _Atomic uint64_t idle_us, busy_us, blocked_us; /* blocked: of busy */
    _Atomic uint64_t longest_us;                   /* that one was blocked at a stretch, */
    _Atomic uint32_t longest_node;                 /* and where most of it was spent; 0: unknown */
    _Atomic uint32_t tasks_peak;                   /* unfinished ones at once */
    _Atomic uint64_t passes;                       /* in which tasks were looked at */
    _Atomic uint64_t looks, rejected; /* at a task; those that changed while looked at */
    _Atomic uint64_t look_ns;         /* what they cost, of sampler_cpu_ns */
};
#define WIRE_BLOCKED_LEAST_NS UINT64_C(5000000)

struct wire_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    int32_t pid;
    int32_t ppid;
    uint32_t python_hex; /* PY_VERSION_HEX */
    _Atomic uint32_t stacks_state;
    _Atomic uint32_t flags;
    uint32_t caller_slack;  /* a caller's instruction may stand so many bytes behind its call's */
    _Atomic uint32_t ended; /* 1: the process came to its regular end */
    uint64_t start_real_ns; /* when the program began, CLOCK_REALTIME */
    uint64_t start_mono_ns; /* the same in CLOCK_MONOTONIC; log times count from here */
    uint64_t start_cpu_ns;  /* CPU the process had used by then (interpreter start-up) */
    uint64_t main_ident;    /* Python's ident of the main thread */
    _Atomic uint64_t beat_mono_ns; /* last sign of life */
    _Atomic uint64_t beat_cpu_ns;  /* process CPU time at that moment */
    _Atomic uint64_t on_ns;        /* wall time with sampling on, up to the last beat */
    _Atomic uint64_t off_cpu_ns;   /* process CPU used while sampling was off */
    uint64_t reserved;
    _Atomic uint64_t handler_count;
    _Atomic uint64_t handler_ns;     /* our own cost in the program's threads */
    _Atomic uint64_t sampler_cpu_ns; /* our own cost in the sampler thread */
    _Atomic uint64_t log_stride;     /* 1: every sample is logged; 2: every other; ... */
    _Atomic uint64_t peak_rss_bytes;
    _Atomic uint32_t has_status; /* 1: the process said with what status it ends */
    _Atomic int32_t exit_status;
    _Atomic uint64_t lost[WIRE_LOSSES_MAX];
    struct wire_section sections[WIRE_SECTIONS_MAX];
    uint32_t command_bytes; /* of `command`: the words of the command line, each ended by NUL */
    char command[WIRE_COMMAND_BYTES];
    struct wire_memory memory;
    struct wire_async async;
};

_Static_assert(sizeof(struct wire_header) <= WIRE_HEADER_BYTES, "header fits its place");

/* A piece of the blob section. */
struct wire_span {
    uint32_t offset;
    uint32_t bytes;
};

/*
 * A code object.  Names are Python strings as CPython stores them: 1, 2 or 4
 * bytes a character (`*_width`), not converted here.
 */
struct wire_code {
    uint64_t address;     /* for the agent's own lookup */
    uint64_t fingerprint; /* so that a reused address is another code */
    struct wire_span file, name, line_table;
    int32_t first_line;
    uint8_t file_width, name_width;
    uint8_t line_format; /* enum wire_line_format */
    uint8_t is_traced;   /* as the agent saw it (wire/traced.h) */
    uint8_t reserved[12];
};
_Static_assert(sizeof(struct wire_code) == 64, "wire_code");

enum wire_line_format {
    WIRE_LINES_NONE,
    WIRE_LINES_LNOTAB,   /* 3.8, 3.9 */
    WIRE_LINES_PEP626,   /* 3.10 */
    WIRE_LINES_LOCATION, /* 3.11 and later */
};

enum wire_frame {
    WIRE_FRAME_PYTHON,    /* ref: code id; at: byte offset of the instruction, < 0: at its start */
    WIRE_FRAME_NATIVE,    /* for later */
    WIRE_FRAME_TRUNCATED, /* outer frames were cut here */
    WIRE_FRAME_NO_PYTHON, /* root of stacks of threads that run no Python code */
    WIRE_FRAME_UNKNOWN,   /* Python frames were there but could not be read */
    WIRE_FRAME_INTERPRETER, /* a Python thread outside any frame: start-up, compiling, finalising */
    WIRE_FRAME_THREAD,      /* what is below ran in another thread, on behalf of what is above */
};

enum wire_node_flags {
    WIRE_NODE_DIRECT = 1u << 0, /* entered by its caller's own call instruction, no C in between */
    WIRE_NODE_TRACED = 1u << 1, /* it or a frame above it is of a traced file */
};

/* A frame below its caller.  The path to the root is the stack. */
struct wire_node {
    uint32_t parent; /* 0: outermost */
    uint32_t ref;
    int32_t at;
    uint16_t frame; /* enum wire_frame */
    uint16_t flags; /* enum wire_node_flags */
};
_Static_assert(sizeof(struct wire_node) == 16, "wire_node");

/* Time spent with exactly this stack in this way. */
struct wire_cell {
    _Atomic uint32_t kind; /* enum wire_kind, stored last */
    uint32_t node;
    _Atomic uint64_t count;      /* samples */
    _Atomic uint64_t ns;         /* CPU time, or time waited */
    _Atomic uint64_t charged_ns; /* of a wait: the part in which no thread of the process ran */
    _Atomic double square_us2;   /* sum of squared weights, for the error bars.  In 64 bits a single
                                    wait of 72 minutes would wrap it; 15 digits are plenty */
    uint64_t reserved;
};
_Static_assert(sizeof(struct wire_cell) == 48, "wire_cell");

/* `count` samples in a row of one thread with the same stack and kind. */
struct wire_log {
    uint64_t at_ns; /* since start_mono_ns, of the first of them */
    uint32_t node;
    uint16_t thread; /* thread id, 0: one beyond the table */
    _Atomic uint8_t kind;
    uint8_t reserved;
    _Atomic uint32_t count;
    _Atomic uint32_t us; /* their weight together (waits: the charged part), saturating: 71 minutes.
                            `count` lasts longer */
};
_Static_assert(sizeof(struct wire_log) == 24, "wire_log");

struct wire_thread {
    uint64_t ident; /* pthread_t, which is Python's thread ident */
    int32_t tid;
    _Atomic uint32_t python;    /* 1: has run Python code */
    _Atomic uint64_t cpu_ns;    /* last known CPU time since the program's start */
    _Atomic uint64_t waited_ns; /* wall time not on a processor */
    char name[16];              /* the kernel's name of it */
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct wire_thread) == 64, "wire_thread");

/* What a task did with exactly this stack: its coroutines, outermost first, in which each awaits
 * the next.  Of WIRE_AWAIT_BLOCKS the stack is that of the loop's thread. */
enum wire_await_kind {
    WIRE_AWAIT_NONE,   /* not published */
    WIRE_AWAIT_WAITS,  /* it waited for something that is no task */
    WIRE_AWAIT_TASKS,  /* it waited for other tasks, whose time counts by itself */
    WIRE_AWAIT_READY,  /* it could run, but the loop had not come to it */
    WIRE_AWAIT_BLOCKS, /* the loop did nothing else, see struct wire_async */
    WIRE_AWAIT_KINDS,
};

/* Time of tasks is that of all tasks together: ten that wait for a second are ten seconds. */
struct wire_await {
    _Atomic uint32_t kind; /* enum wire_await_kind, stored last */
    uint32_t node;
    _Atomic uint64_t count;    /* looks at tasks; of BLOCKS: stretches */
    _Atomic uint64_t us;       /* horizon: six years of 100,000 tasks */
    _Atomic uint64_t busy_us;  /* of WAITS: while the loop ran something else */
    _Atomic double square_us2; /* variance of `us` */
    uint64_t reserved;
};
_Static_assert(sizeof(struct wire_await) == 48, "wire_await");

/* A share of a stretch in which a loop was blocked.  It saturates: 71 minutes. */
struct wire_part {
    uint32_t place; /* 0: unused */
    uint32_t us;
};
enum { WIRE_PARTS_MAX = 6 };

/*
 * An instruction of a traced file, the innermost one of their stacks, at which tasks wait or that
 * blocks a loop.  A line has several instructions, and which of them are one line is known when the
 * file is read: so the longest stretch, of those in which most of the time was spent here, is told
 * with all its parts.
 */
struct wire_place {
    _Atomic uint32_t code;       /* stored last; 0: not published */
    int32_t at;                  /* as in wire_node */
    _Atomic uint64_t present_us; /* time in which at least one task waited (WAITS, TASKS) here */
    _Atomic uint64_t longest_us; /* that stretch */
    _Atomic uint32_t peak;       /* tasks that waited here at once */
    _Atomic uint32_t names;      /* of tasks, that are kept: WIRE_NAMES_OF_PLACE_MAX at most */
    struct wire_part parts[WIRE_PARTS_MAX]; /* of that stretch, largest first */
};
_Static_assert(sizeof(struct wire_place) == 80, "wire_place");

/* The name of a task that waited at a place. */
struct wire_name {
    _Atomic uint32_t place; /* stored last; 0: not published */
    uint32_t hash;          /* for the agent */
    struct wire_span text;  /* empty: the name is "Task-" and the number */
    uint64_t number;
    uint8_t width; /* as in wire_code */
    uint8_t reserved[7];
};
_Static_assert(sizeof(struct wire_name) == 32, "wire_name");

/* Tasks that are not finished.  Points are 100 ms apart, and twice as far after every 128 of them.
 */
struct wire_crowd {
    uint64_t at_ns;        /* since start_mono_ns */
    uint32_t tasks, ready; /* estimated if there are very many */
    _Atomic uint32_t published;
    uint32_t reserved;
};
_Static_assert(sizeof(struct wire_crowd) == 24, "wire_crowd");

/* A library by the addresses of its code. */
struct wire_module {
    uint64_t start, end;
    struct wire_span path;
    uint64_t reserved;
};
_Static_assert(sizeof(struct wire_module) == 32, "wire_module");

enum wire_site_kind {
    WIRE_SITE_NONE, /* not published */
    WIRE_SITE_PYTHON,
    WIRE_SITE_NATIVE,
    WIRE_SITE_MAPPED, /* anonymous mmap, by what is resident; counts as native */
    WIRE_SITE_COPY,   /* memcpy and memmove: `allocated_bytes` are the bytes copied */
    WIRE_SITE_KINDS,
};

/*
 * What was allocated with exactly this stack by this library.  `at_peak_bytes`
 * is what was live at the process's peak if `peak_epoch` is the header's; else
 * nothing changed since the peak and `live_bytes` is.
 *
 * What was gone again before its thread had allocated another window
 * (wire_control.allocation_window_bytes) is churn, unless the block had a window or
 * more.  Squares are sums of the squared weights of samples, in bytes^2, for the error
 * bars; exact blocks add nothing there.
 */
struct wire_site {
    _Atomic uint32_t kind; /* enum wire_site_kind, stored last */
    uint32_t node;
    uint32_t module; /* 0: the interpreter, or unknown */
    _Atomic uint32_t peak_epoch;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t live_bytes, at_peak_bytes;
    _Atomic uint64_t most_bytes; /* highest live_bytes ever */
    _Atomic uint64_t count;      /* estimated number of allocations */
    _Atomic uint64_t samples;
    _Atomic uint64_t churned_bytes, churned_count; /* of allocated_bytes and count */
    _Atomic double square, churned_square;         /* of all samples; of the churned ones */
    _Atomic double live_square, most_square;       /* of those in live_bytes and most_bytes */
    _Atomic double window_square; /* beside `square`, where small objects were looked at in windows:
                                     by how much one window has more than the next.  May be < 0 */
    uint32_t window;              /* for the agent: the last one that had a sample, */
    uint32_t reserved;
    double window_bytes, window_noise; /* what is in it, and by how much that may be chance, */
    double window_before;              /* and what was in the one before */
};
_Static_assert(sizeof(struct wire_site) == 152, "wire_site");

enum wire_block_flags {
    WIRE_BLOCK_EXACT = 1u << 0,  /* stands for itself alone */
    WIRE_BLOCK_GREW = 1u << 1,   /* was enlarged since `at_cpu_ms` */
    WIRE_BLOCK_WINDOW = 1u << 2, /* the whole block had a window or more */
};

/* A sampled block, or the part by which one grew.  Reused when it is freed. */
struct wire_block {
    _Atomic uint32_t site;   /* 0: not in use */
    uint32_t next;           /* another record of the same block */
    uint64_t bytes;          /* what it stands for */
    uint64_t from;           /* where in the block it begins: shrinking below drops it */
    uint64_t at_cpu_ms : 48; /* since start_cpu_ns, by the process's clock.  In 32 bits it would
                                last 49 days of one processor, 18 hours of 64 */
    uint64_t flags : 16;     /* enum wire_block_flags */
    uint64_t born;           /* for the agent: by its thread's allocation clock */
    uint32_t count;          /* allocations it stands for, */
    uint32_t hits;           /* and in how many samples; 0: exact */
};
_Static_assert(sizeof(struct wire_block) == 48, "wire_block");

/* The footprint after a sampled allocation or release. */
struct wire_foot {
    uint64_t at_ns;     /* since start_mono_ns */
    uint64_t at_cpu_ms; /* as in wire_block */
    uint32_t live_kib;  /* saturating, as the next: 4 TiB.  wire_memory has all of it */
    uint32_t site_live_kib;
    uint32_t site;              /* of a look: 0, at the total alone */
    _Atomic uint32_t published; /* enum wire_foot_kind, stored last */
};
enum wire_foot_kind { WIRE_FOOT_NONE, WIRE_FOOT_LOOK, WIRE_FOOT_ALLOCATED, WIRE_FOOT_FREED };
_Static_assert(sizeof(struct wire_foot) == 32, "wire_foot");

#endif
