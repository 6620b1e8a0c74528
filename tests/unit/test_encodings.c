/* SHA-256, base64 and compression: known answers, every length around a block, and the way back. */
#include "base/base64.h"
#include "base/deflate.h"
#include "base/mem.h"
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

static void assert_digest(const char *text, size_t length, const char *hex)
{
    uint8_t digest[SHA256_BYTES];
    char shown[2 * SHA256_BYTES + 1];
    sha256(text, length, digest);
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(shown + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(shown, hex);
}

/* The examples of FIPS 180-4, and lengths at which the padding changes. */
static void test_sha256(void **state)
{
    (void)state;
    assert_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = mem_alloc(1000000);
    memset(million, 'a', 1000000);
    assert_digest(million, 1000000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_digest(million, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_digest(million, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    free(million);
}

static void test_base64(void **state)
{
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xFF\xFE\xFD", "//79"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf out = {0};
        base64_encode(pairs[i][0], strlen(pairs[i][0]), &out);
        assert_string_equal(out.data ? out.data : "", pairs[i][1]);
        buf_release(&out);
    }
}

static void test_deflate(void **state)
{
    (void)state;
    for (int format = DEFLATE_ZLIB; format <= DEFLATE_GZIP; format++) {
        for (size_t length = 0; length < 300000; length = length * 3 + 1) {
            struct buf in = {0}, out = {0};
            for (uint32_t i = 0, random = 1; i < length; i++, random = random * 1103515245 + 12345)
                buf_char(&in, (char)(random >> 20));
            deflate_bytes(in.data, in.len, format, 1, &out);
            char *back = mem_alloc(length + 1);
            z_stream stream = {.next_in = (unsigned char *)out.data,
                               .avail_in = (unsigned)out.len,
                               .next_out = (unsigned char *)back,
                               .avail_out = (unsigned)length + 1};
            inflateInit2(&stream, format == DEFLATE_GZIP ? 15 + 16 : 15);
            assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
            assert_int_equal(stream.total_out, length);
            assert_true(!length || !memcmp(back, in.data, length));
            inflateEnd(&stream);
            free(back);
            buf_release(&in);
            buf_release(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sha256), cmocka_unit_test(test_base64),
                                       cmocka_unit_test(test_deflate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
