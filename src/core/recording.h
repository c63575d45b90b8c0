/* The inputs and answers of a program's pure core, as a file: a test gives the same inputs to the
 * same core again, and compares the answers (test/elastic/recording.c). MUSTER_RECORD names the
 * folder; if it is not set, nothing is recorded.
 *
 * An entry is its kind (4 bytes), the number of its bytes (4 bytes), and the bytes; numbers in it
 * have 8 bytes, and all are little-endian. An entry is written before the program acts on it, so
 * that the end of a process, even by SIGKILL, loses no entry that had a consequence. If an entry
 * cannot be written the recording ends, and the program goes on.
 *
 * Layer: core; libc only. Memory: recording_open/close. Thread: one at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum recording_kind {
    /* of a worker */
    RECORDING_MEMBER, /* an incarnation: commit_member_init */
    RECORDING_COMMIT, /* commit_code of a step */
    RECORDING_PLAN,   /* the plan, as it is known now, and again with each anchor that it gets:
                         its fields, and those of the anchor */
    RECORDING_PASS,   /* a pass that was handed out: version, generation, rank, size,
                         micro-batch, first position, positions; then its records */
    /* of a coordinator */
    RECORDING_ARBITER, /* arbiter_code_options: arbiter_new */
    RECORDING_DECIDE,  /* arbiter_code_event, then arbiter_code_answer, of a step */
};

struct recording;

/* Opens FOLDER/NAME-PID-N, where N is the number of recordings that this process has opened before.
 * NULL: no recording is asked for, or the file cannot be opened. */
struct recording *recording_open(const char *name);
/* NULL is allowed. */
void recording_close(struct recording *recording);

void recording_write(struct recording *recording, enum recording_kind kind, const void *bytes,
                     size_t count);
void recording_write_numbers(struct recording *recording, enum recording_kind kind,
                             const uint64_t *numbers, size_t count);

/* Codes `count` numbers. */
void recording_code_numbers(const uint64_t *numbers, size_t count, uint8_t *ret);
uint64_t recording_number(const uint8_t *bytes);
