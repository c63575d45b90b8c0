/* Makes the PyTorchJob that `muster run -n N -- COMMAND` stands for: a Master and N-1 Workers that
 * all run the command. It names nothing of this machine, so that it also runs on a cluster.
 *
 * Every rank is a node of one process, as `torchrun --nnodes N --nproc-per-node 1` has it:
 * LOCAL_RANK is 0, because each replica sees its own GPUs only, here (CUDA_VISIBLE_DEVICES) and on
 * a cluster.
 *
 * Layer: pure. Thread: any.
 */
#pragma once

#include "job/override.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

#define JOB_DEFAULT_IMAGE "pytorch/pytorch:latest"

enum { JOB_RANKS_MAX = 10000, JOB_NAME_BYTES = 64 };

/* `= {0}` with ranks and command is a valid start; fields that are NULL or 0 are left out. */
struct job_command {
    int32_t ranks;              /* 1 to JOB_RANKS_MAX */
    const char *const *command; /* argv, NULL-terminated, not empty */
    const char *name;           /* NULL: made from the command's script */
    const char *namespace;      /* NULL: default */
    const char *image;          /* NULL: JOB_DEFAULT_IMAGE */
    bool has_threads;           /* the submitter sets OMP_NUM_THREADS */
    int64_t deadline_s;         /* activeDeadlineSeconds */
    struct job_override override;
};

/* Makes text from which Kubernetes' $(VAR) expansion makes `text` again: a $ before $ or ( is
 * doubled. Returns NULL if `text` is not valid UTF-8. */
json_t *job_literal(const char *text);

/* Writes a name: "train" for python3 -u mine/train.py, "net" for python3 -m net, otherwise the
 * program's own name, as a DNS label. */
void job_name_of_command(const char *const *command, char ret[JOB_NAME_BYTES]);

/* Returns a new reference in *ret. The error MUSTER_EINVAL names what is wrong with the options. */
int job_from_command(const struct job_command *options, json_t **ret, struct muster_err *err);
