#include "py/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const uint8_t *bytes;
    size_t size;
};

static const void *piece(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

static void match(const struct image *image, const ElfW(Shdr) * table, const ElfW(Shdr) * text,
                  uintptr_t bias, const char *const *names, struct py_range *found, size_t count)
{
    const ElfW(Sym) *symbols = piece(image, table->sh_offset, table->sh_size);
    const char *strings = piece(image, text->sh_offset, text->sh_size);
    if (!symbols || !strings || !text->sh_size || strings[text->sh_size - 1])
        return;
    for (size_t s = 0; s < table->sh_size / sizeof *symbols; s++) {
        if ((symbols[s].st_info & 0xF) != STT_FUNC || !symbols[s].st_size ||
            symbols[s].st_name >= text->sh_size)
            continue;
        const char *name = strings + symbols[s].st_name;
        for (size_t i = 0; i < count; i++)
            if (!found[i].start && !strcmp(name, names[i]))
                found[i] = (struct py_range){bias + symbols[s].st_value,
                                             bias + symbols[s].st_value + symbols[s].st_size};
    }
}

void symbols_find(uintptr_t inside, const char *const *names, struct py_range *found, size_t count)
{
    Dl_info module;
    struct link_map *map = NULL;
    if (!dladdr1((void *)inside, &module, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return;
    const char *path = map->l_name && map->l_name[0] ? map->l_name : "/proc/self/exe";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct stat st;
    struct image image = {0};
    if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(ElfW(Ehdr))) {
        image.size = (size_t)st.st_size;
        image.bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (!image.bytes || image.bytes == MAP_FAILED)
        return;
    const ElfW(Ehdr) *head = (const void *)image.bytes;
    const ElfW(Shdr) *sections =
        piece(&image, head->e_shoff, (uint64_t)head->e_shnum * sizeof(ElfW(Shdr)));
    if (!memcmp(head->e_ident, ELFMAG, SELFMAG) && sections)
        for (unsigned i = 0; i < head->e_shnum; i++)
            if ((sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM) &&
                sections[i].sh_link < head->e_shnum)
                match(&image, &sections[i], &sections[sections[i].sh_link], map->l_addr, names,
                      found, count);
    munmap((void *)image.bytes, image.size);
}
