/*
 * Where CPython keeps what we read: byte offsets as data, one struct for the
 * version in this process.  -1 (PY_ABSENT) means that this Python has no such
 * field; code elsewhere asks `layout->ts_cframe >= 0`, never for a version.
 *
 * 3.8 to 3.12 come from a table; from 3.13 on the interpreter describes itself
 * (_Py_DebugOffsets at the start of _PyRuntime) and only the positions inside
 * that description are in a table.  layout_select.c holds both and is the one
 * file that knows version numbers.
 */
#ifndef PY_LAYOUT_H
#define PY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PY_ABSENT (-1)

/* How a frame tells its current instruction. */
enum py_instruction {
    PY_LASTI_BYTES, /* int: byte offset */
    PY_LASTI_UNITS, /* int: offset in 2-byte units */
    PY_INSTR_POINTER,
};

/* What an opcode says about who is running; see opcodes.h. */
enum py_call {
    PY_CALL_NONE,   /* not a call */
    PY_CALL_ANY,    /* a call, of what is unknown until it runs */
    PY_CALL_C,      /* specialised for a C function */
    PY_CALL_PYTHON, /* specialised for a Python function: never native */
};

/* How a suspended generator or coroutine tells whether it awaits another one. */
enum py_await {
    PY_AWAIT_UNKNOWN,     /* chains of coroutines cannot be followed */
    PY_AWAIT_NEXT_OPCODE, /* its next instruction is await_opcode */
    PY_AWAIT_RESUME,      /* its next instruction is one of the resume opcodes, argument >= 2 */
    PY_AWAIT_STATE,       /* its state says so */
};

/* Generators, coroutines and asynchronous generators, which are alike. */
struct py_generators {
    uint8_t await;            /* enum py_await */
    int32_t frame_ref, frame; /* where its frame's address is, or the frame itself */
    int32_t running;          /* a byte, not 0: it runs; else the state, a signed byte: */
    int32_t state;            /* in the object ... */
    int32_t frame_state;      /* ... or in its frame */
    int8_t created, executing, awaits_first, awaits_last; /* values of the state */
    /* The frame's stack of values: the address behind its top; or how many there are, and the
     * values themselves or their address. */
    int32_t stack_end, stack_depth, stack, stack_ref;
    uint8_t awaited;      /* so many values below the top's end is what is awaited */
    uintptr_t value_mask; /* tag bits of a value */
    uint8_t opcodes[2];
};

/* Futures and tasks of the C part of asyncio. */
struct py_futures {
    int32_t future_bytes, task_bytes; /* size of the objects, to tell whether this fits */
    int32_t loop, state;              /* state 0: pending */
    int32_t waiter, coroutine, name;
    int32_t node, ts_tasks; /* where tasks are in lists, one a thread: links, head; */
    int32_t interp_tasks;   /* the head of one with tasks of threads that have ended */
    bool is_described;      /* by asyncio itself: tasks_describe() fills the above */
};

struct py_layout {
    int32_t ts_prev, ts_thread_id;
    int32_t ts_frame;                                   /* current frame directly ... */
    int32_t ts_cframe, cframe_current, cframe_previous; /* ... or through the C frame */
    int32_t ts_gil_requested;
    int32_t ts_state;      /* free-threaded: what a thread waits on while the world is stopped */
    int32_t ts_base_frame; /* the frame every complete chain ends in */

    int32_t fr_code, fr_back, fr_instr, fr_owner, fr_tlbc_index;
    int32_t fr_is_entry;   /* not 0: entered from C.  Where absent, a shim frame says so */
    uint8_t fr_owner_shim; /* frames with this owner or a higher one hold no code: skip them */
    uint8_t fr_owner_max;  /* anything above is not a frame */
    uint8_t instruction;   /* enum py_instruction */
    uintptr_t code_mask;   /* tag bits of the code pointer in a frame */
    int32_t
        fo_frame; /* where a frame object has the frame's address; where absent, it is the frame */

    int32_t code_file, code_name, code_first_line, code_line_table;
    int32_t code_bytes;     /* first instruction: inside the code object ... */
    int32_t code_bytes_ref; /* ... or behind a pointer to a bytes object */
    int32_t code_tlbc;      /* free-threaded: per-thread copies of the bytecode */
    uint8_t line_format;    /* enum wire_line_format */
    uint8_t caller_slack; /* a caller's instruction may stand so many bytes behind its call's start:
                             in the call's inline caches */

    int32_t ob_type, bytes_size, bytes_data;
    int32_t str_length, str_state, str_ascii, str_compact;
    uint8_t str_kind_shift, str_compact_shift, str_ascii_shift;

    int32_t head_bytes; /* of every object */
    struct py_generators generators;
    struct py_futures futures;

    const uint8_t *calls;  /* 256 entries: enum py_call of each opcode */
    bool calls_need_stack; /* calls of Python functions go through C: see classify.h */
    bool chain_may_tear;   /* a frame chain can be caught half-linked by its own thread */
    bool free_threaded;
    bool may_jit;
};

/*
 * Fill `layout` for the running interpreter.  `runtime` is &_PyRuntime (or 0),
 * `runtime_bytes` its size.  False: a Python we know nothing about.
 */
bool layout_select(struct py_layout *layout, uint32_t version_hex, uintptr_t runtime,
                   size_t runtime_bytes);

#endif
