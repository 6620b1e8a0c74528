/*
 * Reads call frame information: from a module's .eh_frame_hdr and an
 * instruction to the rule that leads to the caller.  For unwind.c, on a miss of
 * its cache; in the signal handler, all loads guarded.
 */
#ifndef OS_UNWIND_CFI_H
#define OS_UNWIND_CFI_H

#include "os/unwind_rule.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The rule at `pc`, the address of the interrupted instruction, or of a return
 * address minus 1.  False when the table could not be read to the end (damaged,
 * or its module is just going away): not a rule to remember.
 */
bool unwind_cfi_rule(uintptr_t table, uintptr_t pc, union unwind_rule *rule);

#endif
