/* Mistakes that tests plant into the protocol, to see that they are found. The shipped code is
 * compiled without MUSTER_PLANTED: there PLANTED() is always false, and the mistakes are removed.
 *
 * Each mistake was made in some draft of the protocol. Layer: pure. Thread: the test's.
 */
#pragma once

#ifdef MUSTER_PLANTED
enum planted {
    PLANTED_NOTHING,
    PLANTED_RESTORE_NOT_JOURNALED,  /* rule 11: GEN in the journal does not say "restore" */
    PLANTED_RESTORE_NEEDS_REPORT,   /* 5, 11: if no member can report, nothing is decided */
    PLANTED_COMMIT_IF_APPLIED,      /* 6: a step that all have prepared is dropped */
    PLANTED_IDS_IN_BARRIER,         /* 1: a prepared member does not know the others' records */
    PLANTED_LATE_COMPLETION,        /* 4: a barrier completes after its generation was closed */
    PLANTED_EARLY_GRANTS,           /* 9: grants before all members have reported their leases */
    PLANTED_REPORT_REPLACES_LEASES, /* 9: a report replaces the table even within a term */
    PLANTED_OPEN_BEFORE_JOURNAL,    /* OPEN is sent before GEN is durable */
    PLANTED_UNLOADED_VOTE,          /* 8: a joiner prepares before it has the state */
    PLANTED_RESTORE_KEEPS_LOG,      /* 11: the log is not cut to the checkpoint */
    PLANTED_OLD_GRANTS,             /* 9: a member keeps grants of an old term */
    PLANTED_ACK_BEFORE_JOURNAL,     /* ACK is sent before LOG is durable */
    PLANTED_EXIT_BEFORE_ACK,        /* 14: a member exits before the log is acknowledged */
    PLANTED_STEP_DISCARDED,         /* 7: OPEN with base = version + 1 does not apply the sum */
    PLANTED_NO_COMMIT, /* 3: of a step that fails, the part that has arrived is applied */
    PLANTED_COUNT,
};
extern enum planted planted;
#define PLANTED(mistake) (planted == PLANTED_##mistake)
#else
#define PLANTED(mistake) false
#endif
