/* See headers.h. */
#include "spdy/headers.h"

#include "spdy/dictionary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#define ZLIB_CONST
#include <zlib.h>

enum { COUNT_BYTES = 4 };

struct spdy_inflater {
    z_stream zlib;
};

const char *spdy_header(const struct spdy_headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (strcasecmp(headers->names[i], name) == 0) {
            return headers->values[i];
        }
    }
    return NULL;
}

/* ---- the compressed stream ---- */

struct spdy_inflater *spdy_inflater_new(void)
{
    struct spdy_inflater *inflater = calloc(1, sizeof *inflater);
    if (inflater && inflateInit(&inflater->zlib) != Z_OK) {
        free(inflater);
        return NULL;
    }
    return inflater;
}

struct spdy_inflater *spdy_inflater_free(struct spdy_inflater *inflater)
{
    if (inflater) {
        (void)inflateEnd(&inflater->zlib);
        free(inflater);
    }
    return NULL;
}

static int inflate_on(z_stream *zlib)
{
    int rc = inflate(zlib, Z_SYNC_FLUSH);
    if (rc == Z_NEED_DICT) {
        unsigned char dictionary[SPDY_DICTIONARY_BYTES];
        spdy_dictionary(dictionary);
        rc = inflateSetDictionary(zlib, dictionary, sizeof dictionary);
        rc = rc == Z_OK ? inflate(zlib, Z_SYNC_FLUSH) : rc;
    }
    return rc;
}

/* Decompresses one block. Each block is flushed, so that all of its content can be read when all of
 * its bytes have come. */
static bool unpack(z_stream *zlib, const unsigned char *bytes, size_t count,
                   unsigned char ret[SPDY_HEADER_BYTES_MAX], size_t *ret_count)
{
    zlib->next_in = bytes;
    zlib->avail_in = (uInt)count;
    zlib->next_out = ret;
    zlib->avail_out = SPDY_HEADER_BYTES_MAX;
    int rc = inflate_on(zlib);
    *ret_count = SPDY_HEADER_BYTES_MAX - zlib->avail_out;
    return (rc == Z_OK || rc == Z_BUF_ERROR) && zlib->avail_in == 0 && zlib->avail_out > 0;
}

/* ---- what it says ---- */

struct cursor {
    const unsigned char *at;
    size_t left;
};

static bool take_number(struct cursor *cursor, uint32_t *ret)
{
    const unsigned char *at = cursor->at;
    if (cursor->left < COUNT_BYTES) {
        return false;
    }
    *ret = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    cursor->at += COUNT_BYTES;
    cursor->left -= COUNT_BYTES;
    return true;
}

/* Copies a text and adds a NUL. The text is shorter than its bytes in the block, which begin with
 * its length, so there is room for the NUL. A NUL in the text separates several values of one name;
 * the first value is used. */
static bool take_text(struct cursor *cursor, struct spdy_headers *headers, const char **ret)
{
    uint32_t length;
    if (!take_number(cursor, &length) || length > cursor->left) {
        return false;
    }
    char *text = headers->text + headers->used;
    memcpy(text, cursor->at, length);
    text[length] = '\0';
    headers->used += length + 1;
    cursor->at += length;
    cursor->left -= length;
    *ret = text;
    return true;
}

bool spdy_inflate(struct spdy_inflater *inflater, const unsigned char *bytes, size_t count,
                  struct spdy_headers *ret)
{
    unsigned char plain[SPDY_HEADER_BYTES_MAX];
    struct cursor cursor = {.at = plain};
    uint32_t pairs;
    ret->count = ret->used = 0;
    if (!unpack(&inflater->zlib, bytes, count, plain, &cursor.left) ||
        !take_number(&cursor, &pairs) || pairs > SPDY_HEADERS_MAX) {
        return false;
    }
    while (ret->count < pairs) {
        if (!take_text(&cursor, ret, &ret->names[ret->count]) ||
            !take_text(&cursor, ret, &ret->values[ret->count])) {
            return false;
        }
        ret->count++;
    }
    return cursor.left == 0;
}
