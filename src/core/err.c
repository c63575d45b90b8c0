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
    int http;
    int exit;
    const char *name;
    const char *python;
    const char *text;
} rows[] = {
#define X(name, code, http, exit, python, text) {code, http, exit, #name, #python, text},
#include <muster/err.def>
#undef X
};

static const struct row unknown = {0, 500, 70, "EUNKNOWN", "RuntimeError", "unknown error"};

static const struct row *find(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return &unknown;
}

int muster_vfail(struct muster_err *err, int code, const char *format, va_list args)
{
    assert(code < 0);
    if (err) {
        err->code = code;
        err->rank = -1;
        (void)vsnprintf(err->text, sizeof err->text, format, args);
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
    memcpy(inner, err->text, sizeof inner);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text) {
        (void)snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", inner);
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

int muster_code_http(int code)
{
    return find(code)->http;
}

int muster_code_exit(int code)
{
    return find(code)->exit;
}

const char *muster_code_python(int code)
{
    return find(code)->python;
}
