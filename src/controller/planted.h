/* Mistakes that tests plant into the driver, to see that they are found. The shipped code is
 * compiled without MUSTER_PLANTED_DRIVER: PLANTED_DRIVER() is false there, and nothing of it is
 * left.
 *
 * Layer: pure. Thread: the test's.
 */
#pragma once

#ifdef MUSTER_PLANTED_DRIVER
enum planted_driver {
    PLANTED_NOTHING,
    PLANTED_NO_LOOK,          /* creations that no write of the job vouches for are sent at once */
    PLANTED_TAKEN_IS_DONE,    /* a name that is taken is not looked at */
    PLANTED_BLIND_STATUS,     /* the status is written whatever the job is by now */
    PLANTED_DELETE_BY_NAME,   /* a deletion is not for one uid */
    PLANTED_UNSEEN_STAYS,     /* what a listing does not have stays in the cache */
    PLANTED_LISTED_IS_UNSEEN, /* what a listing has is dropped at its end */
    PLANTED_END_UNSEEN,       /* the end of a pod wakes nobody */
    PLANTED_NO_RETRY,         /* a step that failed is not made again */
    PLANTED_NOT_AWAITED,      /* the next step does not wait until what was written is shown */
    PLANTED_NO_NODE_LOOK,     /* a pod is deleted by force, though its node may be back */
    PLANTED_COUNT,
};
extern enum planted_driver planted_driver;
#define PLANTED_DRIVER(mistake) (planted_driver == PLANTED_##mistake)
#else
#define PLANTED_DRIVER(mistake) false
#endif
