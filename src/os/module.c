#include "os/module.h"

#include "os/guard.h"

#include <dlfcn.h>
#include <link.h>
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

/* Whether one of a module's segments holds the address. */
static bool segments_hold(uintptr_t segments, unsigned count, uintptr_t bias, uintptr_t address,
                          struct module *found)
{
    struct module module = {.start = UINTPTR_MAX};
    bool holds = false;
    unsigned bad = 0;
    if (count > SEGMENTS_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        uintptr_t at = segments + i * sizeof(ElfW(Phdr));
        uint32_t type = guard_u32(at + offsetof(ElfW(Phdr), p_type), &bad);
        if (type != PT_LOAD && type != PT_GNU_EH_FRAME)
            continue;
        uintptr_t start = bias + guard_ptr(at + offsetof(ElfW(Phdr), p_vaddr), &bad);
        uintptr_t end = start + guard_u64(at + offsetof(ElfW(Phdr), p_memsz), &bad);
        if (type == PT_GNU_EH_FRAME) {
            module.unwind_table = start;
            continue;
        }
        holds |= address >= start && address < end;
        module.start = start < module.start ? start : module.start;
        module.end = end > module.end ? end : module.end;
    }
    if (bad || !holds)
        return false;
    *found = module;
    return true;
}

/* A library's ELF header is the first thing at its load address. */
static bool library_holds(uintptr_t base, uintptr_t address, struct module *found)
{
    unsigned bad = 0;
    if (!base || address < base || guard_u32(base, &bad) != 0x464C457F || bad)
        return false;
    uintptr_t segments = base + guard_ptr(base + offsetof(ElfW(Ehdr), e_phoff), &bad);
    unsigned count = guard_u32(base + offsetof(ElfW(Ehdr), e_phnum), &bad) & 0xFFFF;
    return !bad && segments_hold(segments, count, base, address, found);
}

bool module_find_by_list(uintptr_t address, struct module *found)
{
    unsigned bad = 0;
    if (!debugger)
        return false;
    uintptr_t map = guard_ptr((uintptr_t)debugger + offsetof(struct r_debug, r_map), &bad);
    for (unsigned i = 0; map && !bad && i < MODULES_MAX; i++) {
        uintptr_t bias = guard_ptr(map + offsetof(struct link_map, l_addr), &bad);
        /* The program comes first; it may be linked to a fixed address, bias 0. */
        if (i == 0 ? segments_hold(program_segments, program_segment_count, bias, address, found)
                   : library_holds(bias, address, found)) {
            found->name = (const char *)guard_ptr(map + offsetof(struct link_map, l_name), &bad);
            if (!found->name || bad)
                found->name = "";
            return true;
        }
        map = guard_ptr(map + offsetof(struct link_map, l_next), &bad);
    }
    return false;
}

bool module_find(uintptr_t address, struct module *found)
{
    struct found_object object;
    if (!find_object)
        return module_find_by_list(address, found);
    if (find_object((void *)address, &object))
        return false;
    *found = (struct module){
        .start = (uintptr_t)object.map_start,
        .end = (uintptr_t)object.map_end,
        .unwind_table = (uintptr_t)object.eh_frame_hdr,
        .name = object.map && object.map->l_name ? object.map->l_name : "",
    };
    return true;
}

void module_init(void)
{
    *(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    debugger = dlsym(RTLD_DEFAULT, "_r_debug");
    program_segments = getauxval(AT_PHDR);
    program_segment_count = (unsigned)getauxval(AT_PHNUM);
}
