/*
 * The call frame information of the Linux Standard Base (.eh_frame), as far as
 * the rules of unwind_rule.h need it:
 *
 *     .eh_frame_hdr   version, 3 encodings, &.eh_frame, count, {function, FDE}[count] sorted
 *                                                                         |
 *     .eh_frame       CIE <---------------------------------------------- FDE
 *                     encodings, alignments,                              function, size,
 *                     instructions for every function                     instructions
 *
 * The instructions of CIE and FDE build a table, row by row; they are run until
 * the row that covers the program counter stands.  All of it is foreign memory
 * that may be unmapped under our hands: struct reader guards each load.  The
 * file is long because the instruction set is; it is nothing but its reader.
 */
#include "os/unwind_cfi.h"

#include "os/guard.h"

#include <stddef.h>

/*
 * The longest instructions of one function known are some 20 KB (an
 * interpreter's evaluation loop); a longer one is damage and would keep the
 * handler busy.  Compilers remember one row at a time.
 */
enum { ENTRY_BYTES_MAX = 1 << 18, REMEMBERED_MAX = 2 };

/* Pointer encodings: the low half is the format, the high half what it is relative to. */
enum {
    ENCODING_ABSOLUTE = 0x00,
    ENCODING_UDATA4 = 0x03,
    ENCODING_PC_RELATIVE = 0x10,
    ENCODING_TABLE_SDATA4 = 0x3B,
    ENCODING_INDIRECT = 0x80,
    ENCODING_OMIT = 0xFF,
};

/* DWARF's instructions; the first three carry an operand in their low 6 bits. */
enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xC0,
    CFA_NOP = 0x00,
    CFA_SET_LOC,
    CFA_ADVANCE1,
    CFA_ADVANCE2,
    CFA_ADVANCE4,
    CFA_OFFSET_EXTENDED,
    CFA_RESTORE_EXTENDED,
    CFA_UNDEFINED,
    CFA_SAME_VALUE,
    CFA_REGISTER,
    CFA_REMEMBER,
    CFA_RESTORE_STATE,
    CFA_DEF_CFA,
    CFA_DEF_CFA_REGISTER,
    CFA_DEF_CFA_OFFSET,
    CFA_DEF_CFA_EXPRESSION,
    CFA_EXPRESSION,
    CFA_OFFSET_EXTENDED_SF,
    CFA_DEF_CFA_SF,
    CFA_DEF_CFA_OFFSET_SF,
    CFA_VAL_OFFSET,
    CFA_VAL_OFFSET_SF,
    CFA_VAL_EXPRESSION,
    CFA_GNU_ARGS_SIZE = 0x2E,
    CFA_GNU_NEGATIVE_OFFSET = 0x2F,
};

enum { OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23, OP_LIT0 = 0x30, OP_BREG0 = 0x70 };

struct reader {
    uintptr_t at, end;
    unsigned bad; /* a load failed, or went past the end: what was read is meaningless */
};

/* Beside enum unwind_saved: somewhere that a rule cannot say. */
enum { SAVED_ELSEWHERE = UNWIND_LOST + 1 };

/* The registers whose fate matters. */
enum slot { SLOT_RBP, SLOT_RBX, SLOT_RA, SLOT_RSP, SLOTS, SLOT_OTHER = SLOTS };

struct row {
    int32_t cfa_off;
    uint8_t cfa_type, cfa_reg, cfa_add;
    uint8_t saved[SLOTS];    /* enum unwind_saved, or SAVED_ELSEWHERE */
    int16_t slot_off[SLOTS]; /* in 8 bytes, as in the rule */
};

struct cie {
    uint64_t code_align;
    int64_t data_align;
    struct reader program;
    struct row initial; /* what its instructions give, for every function */
    uint8_t encoding;   /* of pointers in its FDEs */
    bool sized;         /* its FDEs have augmentation data */
    bool signal_frame;
};

static uint8_t read_u8(struct reader *r)
{
    if (r->at >= r->end) {
        r->bad = 1;
        return 0;
    }
    return guard_u8(r->at++, &r->bad);
}

/* Little-endian, `bytes` long. */
static uint64_t read_fixed(struct reader *r, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)read_u8(r) << (8 * i);
    return value;
}

static uint64_t read_leb(struct reader *r, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = read_u8(r);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 70);
    if (is_signed && byte & 0x40 && shift < 64)
        value |= ~(uint64_t)0 << shift;
    return value;
}

static uint64_t read_uleb(struct reader *r)
{
    return read_leb(r, false);
}

static int64_t read_sleb(struct reader *r)
{
    return (int64_t)read_leb(r, true);
}

/* A pointer; those that need more than the place they are read from are not used in FDEs. */
static uint64_t read_encoded(struct reader *r, uint8_t encoding)
{
    static const uint8_t bytes_of[8] = {8, 0, 2, 4, 8, 0, 0, 0};
    uintptr_t here = r->at;
    unsigned bytes = bytes_of[encoding & 7];
    uint64_t value = read_fixed(r, bytes);
    if (!bytes || encoding & ENCODING_INDIRECT)
        r->bad = 1;
    if (encoding & 8 && bytes && bytes < 8 && value >> (8 * bytes - 1))
        value |= ~(uint64_t)0 << (8 * bytes);
    switch (encoding & 0x70) {
    case ENCODING_ABSOLUTE:
        return value;
    case ENCODING_PC_RELATIVE:
        return here + value;
    default:
        r->bad = 1;
        return 0;
    }
}

/* A CIE or FDE: the reader is set to what follows its length. */
static void entry_open(struct reader *r, uintptr_t at)
{
    r->bad = 0;
    uint32_t length = guard_u32(at, &r->bad);
    r->at = at + 4;
    r->end = r->at + length;
    if (length == 0 || length > ENTRY_BYTES_MAX) /* 0xFFFFFFFF, the 64-bit form, among them */
        r->bad = 1;
}

static void cie_augment(struct cie *cie, struct reader *letters)
{
    struct reader *r = &cie->program;
    uint64_t length = read_uleb(r);
    uintptr_t end = r->at + length;
    if (length > ENTRY_BYTES_MAX || end > r->end) {
        r->bad = 1;
        return;
    }
    for (;;) {
        switch (read_u8(letters)) {
        case 'R':
            cie->encoding = read_u8(r);
            break;
        case 'P': { /* the address is not wanted: its place in the CIE alone counts */
            uint8_t encoding = read_u8(r);
            read_encoded(r, encoding & 0x0F);
            break;
        }
        case 'L':
            read_u8(r);
            break;
        case 'S':
            cie->signal_frame = true;
            break;
        case 0:
            r->bad |= letters->bad;
            r->at = end;
            return;
        default: /* the standard: what follows is unknown, but its length is not */
            r->bad = 1;
            return;
        }
    }
}

/* Out of line, so that its stack is given back before the instructions run. */
static __attribute__((noinline)) bool cie_open(struct cie *cie, uintptr_t at)
{
    struct reader *r = &cie->program;
    entry_open(r, at);
    if (r->bad || read_fixed(r, 4) != 0)
        return false;
    uint8_t version = read_u8(r);
    struct reader letters = *r;
    while (!r->bad && read_u8(r))
        ;
    if (version == 4)
        read_fixed(r, 2); /* sizes of addresses and segments */
    cie->code_align = read_uleb(r);
    cie->data_align = read_sleb(r);
    uint64_t ra = version == 1 ? read_u8(r) : read_uleb(r);
    if (r->bad || ra != UNWIND_RA || (version != 1 && version != 3 && version != 4))
        return false;
    cie->encoding = ENCODING_ABSOLUTE;
    cie->signal_frame = false;
    uint8_t first = read_u8(&letters);
    cie->sized = first == 'z';
    if (cie->sized)
        cie_augment(cie, &letters);
    else if (first)
        return false;
    return !r->bad;
}

static enum slot slot_of(uint64_t reg)
{
    switch (reg) {
    case UNWIND_RBP:
        return SLOT_RBP;
    case UNWIND_RBX:
        return SLOT_RBX;
    case UNWIND_RA:
        return SLOT_RA;
    case UNWIND_RSP:
        return SLOT_RSP;
    default:
        return SLOT_OTHER;
    }
}

static void row_save(struct row *row, uint64_t reg, unsigned saved, int64_t off)
{
    enum slot slot = slot_of(reg);
    if (slot == SLOT_OTHER)
        return;
    row->slot_off[slot] = (int16_t)(off / 8);
    row->saved[slot] = (uint8_t)(row->slot_off[slot] * 8 == off ? saved : SAVED_ELSEWHERE);
}

static void row_restore(struct row *row, const struct cie *cie, uint64_t reg)
{
    enum slot slot = slot_of(reg);
    if (slot == SLOT_OTHER)
        return;
    row->saved[slot] = cie->initial.saved[slot];
    row->slot_off[slot] = cie->initial.slot_off[slot];
}

static void row_cfa_register(struct row *row, uint64_t reg)
{
    row->cfa_type = reg < 16 ? UNWIND_REG : UNWIND_UNKNOWN;
    row->cfa_reg = (uint8_t)reg;
}

static void row_cfa_offset(struct row *row, int64_t off)
{
    row->cfa_off = (int32_t)off;
    if (off != row->cfa_off)
        row->cfa_type = UNWIND_UNKNOWN;
}

/* The operand of an expression instruction; the outer reader goes past it. */
static struct reader read_block(struct reader *r)
{
    uint64_t length = read_uleb(r);
    struct reader block = {.at = r->at, .end = r->at + length, .bad = 0};
    if (length > r->end - r->at)
        r->bad = block.bad = 1;
    else
        r->at = block.end;
    return block;
}

/*
 * The one expression with arithmetic, that of the linker's stubs for lazy
 * binding: each pushes a word at a fixed place of its 16 bytes.
 *     breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus
 */
static bool plt_expression(struct reader block, uint8_t *pushed_from)
{
    static const uint8_t expected[] = {0x77, 8, 0x80, 0, 0x3F, 0x1A, 0, 0x2A, 0x33, 0x24, 0x22};
    if (block.end - block.at != sizeof expected)
        return false;
    for (unsigned i = 0; i < sizeof expected; i++) {
        uint8_t byte = read_u8(&block);
        if (i == 6 && byte >= OP_LIT0 && byte < OP_LIT0 + 16)
            *pushed_from = byte - OP_LIT0;
        else if (byte != expected[i])
            return false;
    }
    return !block.bad;
}

/* bregN off [; deref [; plus_uconst add]] */
static void row_cfa_expression(struct row *row, struct reader block)
{
    if (plt_expression(block, &row->cfa_add)) {
        row->cfa_type = UNWIND_PLT;
        return;
    }
    uint8_t type = UNWIND_REG;
    uint64_t add = 0;
    unsigned reg = read_u8(&block) - (unsigned)OP_BREG0;
    int64_t off = read_sleb(&block);
    if (block.at < block.end) {
        type = read_u8(&block) == OP_DEREF ? UNWIND_DEREF : UNWIND_UNKNOWN;
        if (block.at < block.end) {
            if (read_u8(&block) != OP_PLUS_UCONST)
                type = UNWIND_UNKNOWN;
            add = read_uleb(&block);
        }
    }
    row->cfa_type =
        reg < 16 && add < 64 && block.at == block.end && !block.bad ? type : UNWIND_UNKNOWN;
    row->cfa_reg = (uint8_t)reg;
    row->cfa_add = (uint8_t)add;
    row_cfa_offset(row, off);
}

/* Realigned frames save rbp, and only that, relative to itself: breg6 off. */
static void row_saved_expression(struct row *row, uint64_t reg, struct reader block)
{
    bool relative = read_u8(&block) == OP_BREG0 + UNWIND_RBP;
    int64_t off = read_sleb(&block);
    relative = relative && !block.bad && block.at == block.end;
    row_save(row, reg, relative ? UNWIND_AT_RBP : SAVED_ELSEWHERE, off);
}

/* Unsigned, because a damaged operand may overflow. */
static int64_t scaled(const struct cie *cie, uint64_t factor)
{
    return (int64_t)(factor * (uint64_t)cie->data_align);
}

/* The instructions that change the row, but not the place.  False: not known, or damaged. */
static bool row_change(struct row *row, const struct cie *cie, uint8_t op, struct reader *r)
{
    uint64_t reg;
    switch (op) {
    case CFA_NOP:
        return true;
    case CFA_GNU_ARGS_SIZE:
        read_uleb(r);
        return true;
    case CFA_DEF_CFA_OFFSET:
        row_cfa_offset(row, (int64_t)read_uleb(r));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        row_cfa_offset(row, scaled(cie, read_leb(r, true)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        row_cfa_expression(row, read_block(r));
        return true;
    default:
        break;
    }
    if (op > CFA_VAL_EXPRESSION && op != CFA_GNU_NEGATIVE_OFFSET)
        return false;
    reg = read_uleb(r); /* all others start with one */
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        row_save(row, reg, UNWIND_AT_CFA, scaled(cie, read_uleb(r)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        row_save(row, reg, UNWIND_AT_CFA, scaled(cie, read_leb(r, true)));
        return true;
    case CFA_GNU_NEGATIVE_OFFSET:
        row_save(row, reg, UNWIND_AT_CFA, scaled(cie, -read_uleb(r)));
        return true;
    case CFA_RESTORE_EXTENDED:
        row_restore(row, cie, reg);
        return true;
    case CFA_SAME_VALUE:
        row_save(row, reg, UNWIND_SAME, 0);
        return true;
    case CFA_UNDEFINED:
        row_save(row, reg, UNWIND_LOST, 0);
        return true;
    case CFA_REGISTER:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        read_uleb(r);
        row_save(row, reg, SAVED_ELSEWHERE, 0);
        return true;
    case CFA_EXPRESSION:
        row_saved_expression(row, reg, read_block(r));
        return true;
    case CFA_VAL_EXPRESSION:
        read_block(r);
        row_save(row, reg, SAVED_ELSEWHERE, 0);
        return true;
    case CFA_DEF_CFA:
        row_cfa_register(row, reg);
        row_cfa_offset(row, (int64_t)read_uleb(r));
        return true;
    case CFA_DEF_CFA_SF:
        row_cfa_register(row, reg);
        row_cfa_offset(row, scaled(cie, read_leb(r, true)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        row_cfa_register(row, reg);
        return true;
    default:
        return false;
    }
}

/* Runs instructions until the row of `pc` stands, from the row and place given. */
static bool program_run(struct reader *r, const struct cie *cie, uintptr_t place, uintptr_t pc,
                        struct row *row)
{
    struct row remembered[REMEMBERED_MAX];
    unsigned depth = 0;
    while (r->at < r->end && place <= pc && !r->bad) {
        uint8_t op = read_u8(r);
        unsigned low = op & 0x3F;
        switch (op >= CFA_ADVANCE ? op & 0xC0 : op) {
        case CFA_ADVANCE:
            place += low * cie->code_align;
            break;
        case CFA_ADVANCE1:
            place += read_fixed(r, 1) * cie->code_align;
            break;
        case CFA_ADVANCE2:
            place += read_fixed(r, 2) * cie->code_align;
            break;
        case CFA_ADVANCE4:
            place += read_fixed(r, 4) * cie->code_align;
            break;
        case CFA_SET_LOC:
            place = read_encoded(r, cie->encoding);
            break;
        case CFA_OFFSET:
            row_save(row, low, UNWIND_AT_CFA, scaled(cie, read_uleb(r)));
            break;
        case CFA_RESTORE:
            row_restore(row, cie, low);
            break;
        case CFA_REMEMBER:
            if (depth == REMEMBERED_MAX)
                return false;
            remembered[depth++] = *row;
            break;
        case CFA_RESTORE_STATE:
            if (!depth)
                return false;
            *row = remembered[--depth];
            break;
        default:
            if (!row_change(row, cie, op, r))
                return false;
        }
    }
    return !r->bad;
}

static union unwind_rule rule_of(const struct row *row)
{
    union unwind_rule rule = {.word = 0};
    if (row->saved[SLOT_RA] == UNWIND_LOST) {
        rule.type = UNWIND_END;
        return rule;
    }
    /* The return address is just below the CFA and rsp is the CFA, or it is no common frame. */
    if (row->saved[SLOT_RA] != UNWIND_AT_CFA || row->slot_off[SLOT_RA] != -1 ||
        row->saved[SLOT_RSP] != UNWIND_SAME)
        return rule;
    rule.reg = row->cfa_reg & 31;
    rule.off = row->cfa_off;
    rule.add = row->cfa_add & 63;
    if (rule.off != row->cfa_off && row->cfa_type != UNWIND_PLT)
        return rule;

    rule.rbp_saved = row->saved[SLOT_RBP] < UNWIND_LOST ? row->saved[SLOT_RBP] : UNWIND_LOST;
    rule.rbp_off = row->slot_off[SLOT_RBP];

    int below = -row->slot_off[SLOT_RBX];
    if (row->saved[SLOT_RBX] == UNWIND_SAME)
        rule.rbx_slot = 0;
    else if (row->saved[SLOT_RBX] == UNWIND_AT_CFA && below > 0 && below < UNWIND_RBX_LOST)
        rule.rbx_slot = (uint64_t)below;
    else
        rule.rbx_slot = UNWIND_RBX_LOST;
    rule.type = row->cfa_type;
    return rule;
}

/* The FDE of the last function that starts at or before pc; 0: none. */
static uintptr_t fde_search(uintptr_t table, uintptr_t pc, unsigned *bad)
{
    uint32_t head = guard_u32(table, bad);
    uint8_t pointer_format = head >> 8 & 0x0F;
    /* Version 1 and the only encodings linkers write for the sorted table. */
    if ((head & 0xFF) != 1 || (head >> 16 & 0xFF) != ENCODING_UDATA4 ||
        head >> 24 != ENCODING_TABLE_SDATA4 || (pointer_format & 7) != ENCODING_UDATA4)
        return 0;
    uint32_t above = guard_u32(table + 8, bad), below = 0;
    uintptr_t entries = table + 12;
    while (below < above && !*bad) {
        uint32_t middle = below + (above - below) / 2;
        int32_t start = (int32_t)guard_u32(entries + 8ull * middle, bad);
        if (table + (uintptr_t)(intptr_t)start <= pc)
            below = middle + 1;
        else
            above = middle;
    }
    if (below == 0)
        return 0;
    int32_t fde = (int32_t)guard_u32(entries + 8ull * (below - 1) + 4, bad);
    return *bad ? 0 : table + (uintptr_t)(intptr_t)fde;
}

/*
 * The code a signal handler returns to is `mov $15,%eax; syscall`, and the
 * kernel put a ucontext on the stack before.  Others that call themselves
 * signal frames (emulators, runtimes) have layouts of their own.
 */
static bool is_sigreturn(uintptr_t code)
{
    unsigned bad = 0;
    return guard_u64(code, &bad) == 0x0F0000000FC0C748 && guard_u8(code + 8, &bad) == 0x05 && !bad;
}

/*
 * The FDE of pc, its instructions next in `fde`, and its CIE.  Gives the start
 * of its function, 0 when pc is in none; `bad` in `fde`: not readable.  Out of
 * line like cie_open().
 */
static __attribute__((noinline)) uintptr_t fde_open(struct reader *fde, uintptr_t table,
                                                    uintptr_t pc, struct cie *cie)
{
    fde->bad = 0;
    uintptr_t at = fde_search(table, pc, &fde->bad);
    if (!at)
        return 0;
    entry_open(fde, at);
    at = fde->at;
    at -= read_fixed(fde, 4); /* a CIE is named by its distance from here */
    if (fde->bad || !cie_open(cie, at)) {
        fde->bad = 1;
        return 0;
    }
    uintptr_t start = read_encoded(fde, cie->encoding);
    uint64_t size = read_encoded(fde, cie->encoding & 0x07);
    if (cie->sized)
        read_block(fde);
    return pc - start < size ? start : 0;
}

bool unwind_cfi_rule(uintptr_t table, uintptr_t pc, union unwind_rule *rule)
{
    struct cie cie;
    struct reader fde;
    rule->word = 0;
    uintptr_t start = fde_open(&fde, table, pc, &cie);
    if (fde.bad || !start)
        return !fde.bad;
    if (cie.signal_frame) {
        /* Returned to (pc is one less), or interrupted at one of the two instructions. */
        if (is_sigreturn(pc + 1) || is_sigreturn(pc) || is_sigreturn(pc - 7))
            rule->type = UNWIND_SIGNAL;
        return true;
    }
    struct row row = {.cfa_type = UNWIND_UNKNOWN};
    cie.initial = row;
    if (!program_run(&cie.program, &cie, start, pc, &row))
        return false;
    cie.initial = row;
    if (!program_run(&fde, &cie, start, pc, &row))
        return false;
    *rule = rule_of(&row);
    return true;
}
