/* The memory of GPUs by process, as nvidia-smi reports it; empty where nvidia-smi is missing.
 *
 * Layer: cli; runs a program. Ownership: gpu_memory_done; {0} is good to begin with.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gpu_memory {
    bool missing; /* nvidia-smi is missing, and is not called again */
    bool known;
    struct gpu_process *list;
    size_t count;
};

/* Calls nvidia-smi again. */
void gpu_memory_read(struct gpu_memory *gpus);
/* The memory of these processes on all GPUs. */
int64_t gpu_memory_of(const struct gpu_memory *gpus, const pid_t *processes, size_t count);
void gpu_memory_done(struct gpu_memory *gpus);
