#!/usr/bin/env python3
"""Write an assembler file that includes the page's bundle as bytes; the build runs it.

    tools/embed.py OUTPUT.S page.js page.css

The one-file report puts both into markup as they are, so text that would end their element stops
the build.
"""

import hashlib
import sys
from pathlib import Path

ENDS = {"page_js": ("</script", "<!--"), "page_css": ("</style",)}


def embed(path):
    symbol = path.name.replace(".", "_")
    text = path.read_bytes()
    for end in ENDS[symbol]:
        if end.encode() in text.lower():
            sys.exit(f"embed: {path} holds {end!r}, which would end its element")
    # The digest makes this file, and so the object, a new one when the bundle changes.
    return f"""
/* {hashlib.sha256(text).hexdigest()} */
.globl {symbol}, {symbol}_length
{symbol}:
.incbin "{path.resolve()}"
.byte 0
.balign 8
{symbol}_length:
.quad {len(text)}
"""


def main():
    output, *inputs = map(Path, sys.argv[1:])
    parts = [".section .rodata"] + [embed(path) for path in inputs]
    output.write_text("\n".join(parts) + '\n.section .note.GNU-stack, "", %progbits\n')


main()
