/* Errors of muster's C API: a negative code from one table, and a sentence that the caller owns.
 *
 * Every fallible function returns 0 or a positive value on success, and one of these codes on
 * failure. It takes a `struct muster_err *` last, which may be NULL; on failure the sentence is
 * written there, without allocating. Outputs named ret_… are untouched on failure.
 */
#pragma once

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_API __attribute__((visibility("default")))

enum muster_code {
    MUSTER_OK = 0,
#define X(name, code, http, exit, python, text) MUSTER_##name = (code),
#include <muster/err.def>
#undef X
};

enum { MUSTER_ERR_TEXT_BYTES = 512 };

/* Caller's memory; `= {0}` is a valid start. */
struct muster_err {
    int code;                         /* 0 or a muster_code */
    int rank;                         /* the peer an error of a communicator is about, else -1 */
    char text[MUSTER_ERR_TEXT_BYTES]; /* one sentence, no newline, NUL-terminated */
};

/* Fills err (if not NULL) and returns code, so that `return muster_fail(err, MUSTER_EIO, …);` reads
 * as one step. */
MUSTER_API int muster_fail(struct muster_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
MUSTER_API int muster_vfail(struct muster_err *err, int code, const char *format, va_list args);

/* Puts context before the sentence that is already there ("loading x.yaml: …") and returns err's
 * code. */
MUSTER_API int muster_wrap(struct muster_err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Static strings; an unknown code gives "unknown error". */
MUSTER_API const char *muster_code_name(int code);
MUSTER_API const char *muster_code_text(int code);
MUSTER_API int muster_code_http(int code);
MUSTER_API int muster_code_exit(int code);
MUSTER_API const char *muster_code_python(int code);

#ifdef __cplusplus
}
#endif
