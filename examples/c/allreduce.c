/* Averages a vector over all ranks: docs/c-api.md. Run it with, for instance,
 *     for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_PORT=29600 build/examples/allreduce & done; wait
 */
#include <muster/muster.h>

#include <stdio.h>

enum { COUNT = 1000 };

int main(void)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *comm;
    if (muster_comm_from_env(&comm, &err) < 0) {
        (void)fprintf(stderr, "no communicator: %s\n", err.text);
        return muster_code_exit(err.code);
    }
    float values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)(i + muster_comm_rank(comm));
    }
    int rc = muster_all_reduce(comm, values, values, COUNT, MUSTER_F32, MUSTER_AVG, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "rank %d: %s\n", muster_comm_rank(comm), err.text);
    } else if (muster_comm_rank(comm) == 0) {
        (void)printf("%s\nthe average of element 10 is %g\n", muster_comm_describe(comm),
                     (double)values[10]);
    }
    muster_comm_free(comm);
    return rc < 0 ? muster_code_exit(rc) : 0;
}
