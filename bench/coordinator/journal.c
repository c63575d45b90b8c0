/* What a record of the coordinator's journal costs that survives the death of the process (write),
 * and one that survives the host's (fdatasync); how fast a journal is read at a restart.
 *
 *     journal_append FOLDER SYNC COUNT     prints one JSON line
 */
#include "coordinator/journal/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORD_BYTES = 100, RECORDS_MAX = 1 << 20 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct journal *open_or_exit(const struct journal_options *options)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct journal *journal = NULL;
    if (journal_open(options, &journal, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return journal;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void append(const struct journal_options *options, size_t count, double *ret_us)
{
    static const uint8_t bytes[RECORD_BYTES] = {1};
    struct journal *journal = open_or_exit(options);
    struct journal_record record;
    while (journal_read(journal, &record)) {
    }
    for (size_t i = 0; i < count; i++) {
        double start_us = now_us();
        if (journal_append(journal, 1, bytes, sizeof bytes, NULL) < 0 ||
            journal_sync(journal, NULL) < 0) {
            exit(1);
        }
        ret_us[i] = now_us() - start_us;
    }
    journal_close(journal);
}

static double read_us(const struct journal_options *options, size_t *ret_bytes)
{
    struct journal_record record;
    double start_us = now_us();
    struct journal *journal = open_or_exit(options);
    while (journal_read(journal, &record)) {
    }
    double us = now_us() - start_us;
    *ret_bytes = journal_bytes(journal);
    journal_close(journal);
    return us;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: journal_append FOLDER SYNC COUNT\n");
        return 64;
    }
    const struct journal_options options = {.folder = argv[1], .sync = strcmp(argv[2], "1") == 0};
    size_t count = strtoul(argv[3], NULL, 10), bytes = 0;
    double *us = count > 0 && count <= RECORDS_MAX ? malloc(count * sizeof *us) : NULL;
    if (!us) {
        return 64;
    }
    append(&options, count, us);
    qsort(us, count, sizeof *us, compare);
    double reading_us = read_us(&options, &bytes);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"read_mb_per_s\": %.0f}\n",
           us[count / 2], us[count * 99 / 100], us[count - 1], (double)bytes / reading_us);
    free(us);
    return 0;
}
