/* The coordinator's journal: records are appended before what they say is announced, and read from
 * the beginning after a restart. A folder has one journal, and one writer at a time.
 *
 * What journal_append returned for survives the death of the process; with `sync`, what
 * journal_sync returned for survives the host's. A torn end is cut off at opening; a damaged record
 * is an error that says where, and nothing is cut.
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
    const char *folder; /* it exists */
    bool sync;
    /* The coordinator before may have it open still, on a host whose lock is not seen here, or be
     * stopped: what such a one writes from now on is in a file that nobody reads. A lease keeps
     * others away, so a file system without locks will do. */
    bool takes_over;
    const struct journal_files *files; /* NULL: the system's */
};

/* MUSTER_ECONFLICT: another process has it; MUSTER_EIO: also where there are no locks;
 * MUSTER_EDATA, MUSTER_EUNSUPPORTED: see format.h. All records are checked; the first one is read
 * next. */
int journal_open(const struct journal_options *options, struct journal **ret,
                 struct muster_err *err);
/* NULL is fine. */
void journal_close(struct journal *journal);

/* The next record, in the order in which they were appended; false: there are no more, and the
 * memory of those that were read is given back. */
bool journal_read(struct journal *journal, struct journal_record *ret);

/* Called after all records were read. MUSTER_EIO: nothing was appended (the sentence says why: a
 * full disk, among others), and a later append may succeed. */
int journal_append(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                   struct muster_err *err);

/* Does nothing without `sync`. MUSTER_EIO: it is not known what the disk has, and nothing is
 * appended any more. */
int journal_sync(struct journal *journal, struct muster_err *err);

/* One record takes the place of all of them. On failure they are still there. MUSTER_EIO also where
 * another one has taken the journal over meanwhile: nothing is appended any more. */
int journal_compact(struct journal *journal, uint32_t kind, const void *bytes, size_t count,
                    struct muster_err *err);

/* The size of the file. */
size_t journal_bytes(const struct journal *journal);

/* False: the file system has no locks. */
bool journal_is_locked(const struct journal *journal);
/* Notes the term for a coordinator that finds the lock held. */
void journal_note_term(struct journal *journal, uint64_t term);
