/*
 * Makes arenas for tests: the same bytes an agent would leave, from a few calls.
 *
 *   struct arena_make make;
 *   arena_make_init(&make, 100);
 *   uint32_t code = arena_make_code(&make, "/p/main.py", "f", 1, 20);
 *   uint32_t node = arena_make_frame(&make, 0, code, 7);
 *   arena_make_cell(&make, node, WIRE_CPU_PYTHON, 3, 30000000, 0);
 *   arena_make_write(&make, "/tmp/dir/100-0.arena");
 *   arena_make_release(&make);
 */
#ifndef TESTS_ARENA_MAKE_H
#define TESTS_ARENA_MAKE_H

#include "base/buf.h"
#include "wire/arena.h"

#include <stdbool.h>

struct arena_make {
    struct wire_header header; /* counters are the test's to set; _image fills the sections, and the
                                  last clocks unless they were set */
    struct buf sections[WIRE_SECTIONS];
};

/* A process of CPython 3.12.1 that began one second after the machine did. */
void arena_make_init(struct arena_make *make, int pid);
void arena_make_release(struct arena_make *make);

struct wire_span arena_make_blob(struct arena_make *make, const void *bytes, size_t length);

/* A code object whose instruction at offset 2 * n stands on line first_line + n. */
uint32_t arena_make_code(struct arena_make *make, const char *file, const char *name,
                         int first_line, int last_line);
/* The same as CPython 3.8 writes it: co_lnotab, and the plain name. */
uint32_t arena_make_old_code(struct arena_make *make, const char *file, const char *name,
                             int first_line, int last_line);
uint32_t arena_make_node(struct arena_make *make, uint32_t parent, enum wire_frame frame,
                         uint32_t ref, int32_t at);
uint32_t arena_make_frame(struct arena_make *make, uint32_t parent, uint32_t code, int line);
void arena_make_cell(struct arena_make *make, uint32_t node, enum wire_kind kind, uint64_t count,
                     uint64_t ns, uint64_t charged_ns);
void arena_make_log(struct arena_make *make, uint64_t at_ns, uint32_t node, uint16_t thread,
                    enum wire_kind kind, uint32_t count, uint32_t us);
uint32_t arena_make_thread(struct arena_make *make, uint64_t ident, int tid, const char *name,
                           bool is_python);

/* Tasks: of `us` in `count` looks, or stretches of a loop that was blocked. */
void arena_make_await(struct arena_make *make, uint32_t node, enum wire_await_kind kind,
                      uint64_t count, uint64_t us);
uint32_t arena_make_place(struct arena_make *make, uint32_t code, int line, uint64_t present_us,
                          uint32_t peak, uint64_t longest_us);
/* `text` NULL: "Task-NUMBER". */
void arena_make_name(struct arena_make *make, uint32_t place, const char *text, uint64_t number);
void arena_make_crowd(struct arena_make *make, uint64_t at_ns, uint32_t tasks);

/* Memory: everything stays live that `live_bytes` says; counts and samples follow from the bytes.
 * The process is on a processor all the time. */
uint32_t arena_make_module(struct arena_make *make, const char *path);
uint32_t arena_make_site(struct arena_make *make, uint32_t node, enum wire_site_kind kind,
                         uint32_t module, uint64_t allocated_bytes, uint64_t live_bytes);
void arena_make_foot(struct arena_make *make, uint64_t at_ns, uint32_t site,
                     enum wire_foot_kind kind, uint32_t live_kib, uint32_t site_live_kib);
void arena_make_block(struct arena_make *make, uint32_t site, uint64_t bytes, uint64_t at_cpu_ms);

void arena_make_image(struct arena_make *make, struct buf *out);
void arena_make_write(struct arena_make *make, const char *path);

#endif
