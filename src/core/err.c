/* The error table and the sentence that travels with a code.
 *
 * Layer: core; libc only, part of libmuster. Memory: the caller's struct. Thread: any.
 */
#include <muster/err.h>

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct row {
    int code;
    int exit;
    const char *name;
    const char *python;
    const char *text;
} rows[] = {
#define MUSTER_ERROR(name, code, exit, python, text) {code, exit, #name, #python, text},
#include <muster/err.def>
#undef MUSTER_ERROR
};

static const struct row unknown = {0, 70, "EUNKNOWN", "RuntimeError", "unknown error"};

static const struct row *find(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return &unknown;
}

/* Returns the bytes that the text has in the caller's struct, which may come from an older or newer
 * program. */
static size_t text_room(const struct muster_err *err)
{
    size_t before = offsetof(struct muster_err, text);
    if (err->struct_size == 0 || err->struct_size >= before + sizeof err->text) {
        return sizeof err->text;
    }
    return err->struct_size > before ? err->struct_size - before : 0;
}

int muster_vfail(struct muster_err *err, int code, const char *format, va_list args)
{
    assert(code < 0);
    if (err) {
        err->code = code;
        err->rank = -1;
        (void)vsnprintf(err->text, text_room(err), format, args);
    }
    return code;
}

int muster_fail(struct muster_err *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    muster_vfail(err, code, format, args);
    va_end(args);
    return code;
}

int muster_wrap(struct muster_err *err, const char *format, ...)
{
    if (!err) {
        return MUSTER_EINTERNAL;
    }
    assert(err->code < 0);
    char inner[MUSTER_ERR_TEXT_BYTES];
    size_t room = text_room(err);
    memcpy(inner, err->text, room);
    inner[room > 0 ? room - 1 : 0] = '\0';
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, room, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < room) {
        (void)snprintf(err->text + n, room - (size_t)n, ": %s", inner);
    }
    return err->code;
}

const char *muster_code_name(int code)
{
    return find(code)->name;
}

const char *muster_code_text(int code)
{
    return find(code)->text;
}

int muster_code_exit(int code)
{
    return find(code)->exit;
}

const char *muster_code_python(int code)
{
    return find(code)->python;
}
