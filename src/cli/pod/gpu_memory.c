/* See gpu_memory.h. */
#include "cli/pod/gpu_memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROCESSES_MAX = 4096, LINE_BYTES = 256 };

struct gpu_process {
    pid_t pid;
    int64_t bytes;
};

static const char command[] =
    "nvidia-smi --query-compute-apps=pid,used_gpu_memory --format=csv,noheader,nounits 2>/dev/null";

/* Reads lines like "12345, 678": the second number is in MiB, or "[N/A]" if the driver does not
 * report it. */
static void read_lines(struct gpu_memory *gpus, FILE *lines)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, lines) && gpus->count < PROCESSES_MAX) {
        int pid = 0;
        long long mib = 0;
        if (sscanf(line, "%d, %lld", &pid, &mib) == 2) {
            gpus->list[gpus->count++] = (struct gpu_process){pid, mib << 20};
        }
    }
}

void gpu_memory_read(struct gpu_memory *gpus)
{
    gpus->list = gpus->list ? gpus->list : calloc(PROCESSES_MAX, sizeof *gpus->list);
    FILE *lines = gpus->missing || !gpus->list ? NULL : popen(command, "re");
    gpus->count = 0;
    gpus->known = false;
    if (lines) {
        read_lines(gpus, lines);
        gpus->known = pclose(lines) == 0;
    }
    gpus->missing = !gpus->known;
}

int64_t gpu_memory_of(const struct gpu_memory *gpus, const pid_t *processes, size_t count)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < gpus->count; i++) {
        for (size_t k = 0; k < count; k++) {
            bytes += gpus->list[i].pid == processes[k] ? gpus->list[i].bytes : 0;
        }
    }
    return bytes;
}

void gpu_memory_done(struct gpu_memory *gpus)
{
    free(gpus->list);
    *gpus = (struct gpu_memory){0};
}
