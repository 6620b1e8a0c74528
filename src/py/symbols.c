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

/* The file of the module that holds an address, mapped. */
struct file {
    struct image image;
    const ElfW(Shdr) * sections;
    unsigned count;
    uintptr_t bias;
};

static void map_file(struct file *file, const char *path)
{
    struct stat st;
    struct image *image = &file->image;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(ElfW(Ehdr))) {
        void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED)
            *image = (struct image){bytes, (size_t)st.st_size};
    }
    close(fd);
}

/* Without sections if it cannot be read or is none. */
static struct file open_file(uintptr_t inside)
{
    struct file file = {0};
    Dl_info module;
    struct link_map *map = NULL;
    if (!dladdr1((void *)inside, &module, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return file;
    map_file(&file, map->l_name && map->l_name[0] ? map->l_name : "/proc/self/exe");
    const ElfW(Ehdr) *head = (const void *)file.image.bytes;
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG))
        return file;
    file.sections = piece(&file.image, head->e_shoff, (uint64_t)head->e_shnum * sizeof(ElfW(Shdr)));
    file.count = file.sections ? head->e_shnum : 0;
    file.bias = map->l_addr;
    return file;
}

static void close_file(struct file *file)
{
    if (file->image.bytes)
        munmap((void *)file->image.bytes, file->image.size);
}

void symbols_find(uintptr_t inside, const char *const *names, struct py_range *found, size_t count)
{
    struct file file = open_file(inside);
    for (unsigned i = 0; i < file.count; i++) {
        const ElfW(Shdr) *section = &file.sections[i];
        if ((section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM) &&
            section->sh_link < file.count)
            match(&file.image, section, &file.sections[section->sh_link], file.bias, names, found,
                  count);
    }
    close_file(&file);
}

const void *symbols_section(uintptr_t inside, const char *name, size_t *bytes)
{
    struct file file = open_file(inside);
    const ElfW(Ehdr) *head = (const void *)file.image.bytes;
    const ElfW(Shdr) *names =
        file.count && head->e_shstrndx < file.count ? &file.sections[head->e_shstrndx] : NULL;
    const char *texts = names ? piece(&file.image, names->sh_offset, names->sh_size) : NULL;
    const void *found = NULL;
    for (unsigned i = 0; texts && !found && i < file.count; i++) {
        const ElfW(Shdr) *section = &file.sections[i];
        if (section->sh_name < names->sh_size && section->sh_addr && section->sh_size &&
            !strncmp(texts + section->sh_name, name, names->sh_size - section->sh_name)) {
            *bytes = section->sh_size;
            found = (const void *)(file.bias + section->sh_addr);
        }
    }
    close_file(&file);
    return found;
}
