/* Mistakes that tests plant into the driver, to see that they are found. The shipped code is
 * compiled without MUSTER_PLANTED_DRIVER: there PLANTED_DRIVER() is always false, and the mistakes
 * are removed.
 *
 * Layer: pure. Thread: the test's.
 */
#pragma once

#ifdef MUSTER_PLANTED_DRIVER
enum planted_driver {
    PLANTED_NOTHING,
    PLANTED_NO_LOOK,          /* creations are sent although no write has confirmed the job */
    PLANTED_TAKEN_IS_DONE,    /* a name that is taken is not looked at */
    PLANTED_BLIND_STATUS,     /* the status is written without a check that the job is unchanged */
    PLANTED_DELETE_BY_NAME,   /* a deletion has no uid as precondition */
    PLANTED_UNSEEN_STAYS,     /* objects that a listing lacks stay in the cache */
    PLANTED_LISTED_IS_UNSEEN, /* objects of a listing are dropped at its end */
    PLANTED_END_UNSEEN,       /* no step follows the end of a pod */
    PLANTED_NO_RETRY,         /* a failed step is not repeated */
    PLANTED_NOT_AWAITED,      /* the next step does not wait until the watches show the writes */
    PLANTED_NO_NODE_LOOK,     /* a pod is deleted by force, although its node may be back */
    PLANTED_COUNT,
};
extern enum planted_driver planted_driver;
#define PLANTED_DRIVER(mistake) (planted_driver == PLANTED_##mistake)
#else
#define PLANTED_DRIVER(mistake) false
#endif
