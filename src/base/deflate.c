#include "base/deflate.h"

#include "base/mem.h"

#include <limits.h>
#include <zlib.h>

/* zlib's own, through ours: out of memory is dealt with in one place. */
static void *allocate(void *context, unsigned count, unsigned size)
{
    return mem_zalloc(count, size);
}

static void drain(z_stream *stream, int flush, struct buf *out)
{
    unsigned char chunk[65536];
    do {
        stream->next_out = chunk;
        stream->avail_out = sizeof chunk;
        deflate(stream, flush);
        buf_add(out, chunk, sizeof chunk - stream->avail_out);
    } while (!stream->avail_out);
}

void deflate_bytes(const void *bytes, size_t length, enum deflate_format format, int level,
                   struct buf *out)
{
    z_stream stream = {.zalloc = allocate};
    int window_bits = format == DEFLATE_GZIP ? 15 + 16 : 15;
    deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (unsigned char *)bytes;
    while (length > UINT_MAX) {
        stream.avail_in = UINT_MAX;
        length -= UINT_MAX;
        drain(&stream, Z_NO_FLUSH, out);
    }
    stream.avail_in = (unsigned)length;
    drain(&stream, Z_FINISH, out);
    deflateEnd(&stream);
}
