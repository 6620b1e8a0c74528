/* Finding the module of an instruction: see unwind_module.h. */
#include "os/unwind_module.h"

#include "os/guard.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>

/*
 * What _dl_find_object() fills in, on processors without a separate data base
 * address (x86-64, aarch64).  Declared here because the agent is built against
 * libcs that do not have it yet.
 */
struct found_object {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map *map;
    void *eh_frame_hdr;
    unsigned long long reserved[7];
};

/* A process has fewer; a list that does not end within this is damaged. */
enum { MODULES_MAX = 8192, SEGMENTS_MAX = 64 };

static int (*find_object)(void *pc, struct found_object *found);
static const struct r_debug *debugger;
static uintptr_t program_segments;
static unsigned program_segment_count;

/* Whether one of a module's segments holds pc; then *table is its table, 0 if it has none. */
static bool segments_hold(uintptr_t segments, unsigned count, uintptr_t bias, uintptr_t pc,
                          uintptr_t *table)
{
    bool holds = false;
    uintptr_t own = 0;
    unsigned bad = 0;
    if (count > SEGMENTS_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        uintptr_t at = segments + i * sizeof(ElfW(Phdr));
        uint32_t type = guard_u32(at + offsetof(ElfW(Phdr), p_type), &bad);
        if (type != PT_LOAD && type != PT_GNU_EH_FRAME)
            continue;
        uintptr_t start = bias + guard_ptr(at + offsetof(ElfW(Phdr), p_vaddr), &bad);
        if (type == PT_GNU_EH_FRAME)
            own = start;
        else if (pc - start < guard_u64(at + offsetof(ElfW(Phdr), p_memsz), &bad))
            holds = true;
    }
    if (bad || !holds)
        return false;
    *table = own;
    return true;
}

/* A library's ELF header is the first thing at its load address. */
static bool library_holds(uintptr_t base, uintptr_t pc, uintptr_t *table)
{
    unsigned bad = 0;
    if (!base || pc < base || guard_u32(base, &bad) != 0x464C457F || bad)
        return false;
    uintptr_t segments = base + guard_ptr(base + offsetof(ElfW(Ehdr), e_phoff), &bad);
    unsigned count = guard_u32(base + offsetof(ElfW(Ehdr), e_phnum), &bad) & 0xFFFF;
    return !bad && segments_hold(segments, count, base, pc, table);
}

uintptr_t unwind_module_table_by_list(uintptr_t pc)
{
    uintptr_t table = 0;
    unsigned bad = 0;
    if (!debugger)
        return 0;
    uintptr_t map = guard_ptr((uintptr_t)debugger + offsetof(struct r_debug, r_map), &bad);
    for (unsigned i = 0; map && !bad && i < MODULES_MAX; i++) {
        uintptr_t bias = guard_ptr(map + offsetof(struct link_map, l_addr), &bad);
        /* The program comes first; it may be linked to a fixed address, bias 0. */
        if (i == 0 ? segments_hold(program_segments, program_segment_count, bias, pc, &table)
                   : library_holds(bias, pc, &table))
            return table;
        map = guard_ptr(map + offsetof(struct link_map, l_next), &bad);
    }
    return 0;
}

uintptr_t unwind_module_table(uintptr_t pc)
{
    if (!find_object)
        return unwind_module_table_by_list(pc);
    struct found_object found;
    return find_object((void *)pc, &found) == 0 ? (uintptr_t)found.eh_frame_hdr : 0;
}

void unwind_module_init(void)
{
    *(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    debugger = dlsym(RTLD_DEFAULT, "_r_debug");
    program_segments = getauxval(AT_PHDR);
    program_segment_count = (unsigned)getauxval(AT_PHNUM);
}
