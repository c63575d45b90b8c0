/* Errors of muster's C API: a negative code from one table, and a sentence that the caller owns.
 *
 *     struct muster_err err = MUSTER_ERR_INIT;
 *
 * Every fallible function returns 0 or a positive value on success, and one of these codes on
 * failure. It takes a `struct muster_err *` last, which may be NULL; on failure the sentence is
 * written there, without allocating. Outputs named ret_… are untouched on failure.
 *
 * Sized structs. Structs that may grow begin with struct_size, which the initialiser macro
 * MUSTER_…_INIT sets to the size that the program was compiled with. The library reads and writes
 * nothing beyond it, so that a program goes on working with a library whose structs have grown:
 * fields that the program does not have keep their defaults. A larger struct_size is accepted as
 * long as what this library does not know is zero (MUSTER_EUNSUPPORTED else). A struct_size of 0,
 * which is one that was forgotten, is MUSTER_EINVAL.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_API __attribute__((visibility("default")))

enum muster_code {
    MUSTER_OK = 0,
#define MUSTER_ERROR(name, code, exit, python, text) MUSTER_##name = (code),
#include <muster/err.def>
#undef MUSTER_ERROR
};

enum { MUSTER_ERR_TEXT_BYTES = 512 };

/* Caller's memory. It is written on failure only, so that one struct may serve many calls. */
struct muster_err {
    size_t struct_size;               /* set by MUSTER_ERR_INIT */
    int code;                         /* 0 or a muster_code */
    int rank;                         /* the peer an error of a communicator is about, else -1 */
    char text[MUSTER_ERR_TEXT_BYTES]; /* one sentence, no newline, NUL-terminated; cut to the room
                                         that struct_size leaves */
};
/* clang-format off */
#define MUSTER_ERR_INIT {sizeof(struct muster_err), 0, -1, {0}}
/* clang-format on */

/* Fills err (if not NULL) and returns code, so that `return muster_fail(err, MUSTER_EIO, …);` reads
 * as one step. These functions take a struct_size of 0 for that of this struct's first version. */
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
MUSTER_API int muster_code_exit(int code);
MUSTER_API const char *muster_code_python(int code);

#ifdef __cplusplus
}
#endif
