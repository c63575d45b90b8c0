/* The coordinator's journal: records are appended before their decisions are announced, and read
 * from the beginning after a restart. A folder has one journal, and one writer at a time.
 *
 * A record survives the death of the process once journal_append has returned; with `sync`, it
 * survives the death of the host once journal_sync has returned. A torn end is cut off at opening;
 * a damaged record is an error that names its place, and nothing is cut.
 *
 *     journal        the records
 *     journal.new    a compacted one that is not finished; removed at opening
 *     lock           held by the writer: lock.h
 *
 * Layer: program (coordinator); services of base. Memory: journal_open/close; the bytes of records
 * that are read belong to the journal. Thread: one.
 */
#pragma once

#include "coordinator/journal/files.h"
#include "coordinator/journal/format.h"

#include <stdbool.h>

struct journal;

enum { JOURNAL_READ_MAX = 1 << 30 };

struct journal_options {
    const char *folder; /* it must exist */
    bool sync;
    /* Allows to open a journal that an earlier coordinator may still have open, on a host whose
     * lock is not seen here, or while it is stopped. What the earlier one writes from now on is in
     * a file that nobody reads. A lease keeps others away, so that a file system without locks is
     * enough. */
    bool takes_over;
    const struct journal_files *files; /* NULL: those of the system */
};

/* Opens the journal and checks all records; the first one is read next. MUSTER_ECONFLICT: another
 * process has it; MUSTER_EIO: also if there are no locks; MUSTER_EDATA, MUSTER_EUNSUPPORTED: see
 * format.h. */
int journal_open(const struct journal_options *options, struct journal **ret,
                 struct muster_err *err);
/* The argument may be NULL. */
void journal_close(struct journal *journal);

/* Reads the next record, in the order in which they were appended; false: there are no more, and
 * the memory of the records is freed. */
bool journal_read(struct journal *journal, struct journal_record *ret);

/* Appends a record; called after all records were read. MUSTER_EIO: nothing was appended (the error
 * text says why, for example a full disk), and a later append may succeed. */
int journal_append(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                   struct muster_err *err);

/* Makes all records durable; does nothing without `sync`. MUSTER_EIO: the content of the disk is
 * not known, and nothing can be appended any more. */
int journal_sync(struct journal *journal, struct muster_err *err);

/* Replaces all records by this one, also if the files were deleted or moved; the folder must
 * exist. On
 * failure the records still exist. MUSTER_EIO also if another process
 * has taken over the journal meanwhile: nothing can be appended any more. */
int journal_compact(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                    struct muster_err *err);

/* Returns true if somebody has deleted or moved the file, so that a later writer would begin
 * without its records, or the lock, so that there could be two writers. Of a journal that was taken
 * over this is not asked. */
bool journal_is_lost(const struct journal *journal);

/* Returns the size of the file. */
size_t journal_bytes(const struct journal *journal);

/* Returns false if the file system has no locks. */
bool journal_is_locked(const struct journal *journal);
/* Notes the term for a coordinator that finds the lock held. */
void journal_note_term(struct journal *journal, uint64_t term);
