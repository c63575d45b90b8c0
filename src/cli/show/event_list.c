/* See event_list.h. */
#include "cli/show/event_list.h"

#include "base/doc.h"
#include "base/time/age.h"
#include "base/time/timestamp.h"
#include "cli/show/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, AGE_CELL_BYTES = 128 };

const char *event_list_time(const json_t *event)
{
    static const char *const fields[] = {"lastTimestamp", "eventTime", "firstTimestamp",
                                         "metadata.creationTimestamp"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *text = doc_text(event, fields[i], NULL);
        if (text && *text) {
            return text;
        }
    }
    return "";
}

/* Compares by time. Seconds are often equal; then the version shows which event was written first.
 */
static int by_time(const json_t *a, const json_t *b)
{
    int64_t ta = timestamp_read(event_list_time(a));
    int64_t tb = timestamp_read(event_list_time(b));
    if (ta != tb) {
        return ta < tb ? -1 : 1;
    }
    return doc_compare_versions(a, b);
}

json_t *event_list_sort(const json_t *items)
{
    return doc_sorted(items, by_time);
}

/* Writes "17m", or "2s (x5 over 1m)" for an event that was counted several times. */
static void age_cell(const json_t *event, int64_t now_unix_ms, char ret[AGE_CELL_BYTES])
{
    char last[AGE_BYTES];
    char first[AGE_BYTES];
    long long count = (long long)doc_int(event, "count", 1);
    age_since(event_list_time(event), now_unix_ms, last);
    if (count > 1) {
        age_since(doc_text(event, "firstTimestamp", ""), now_unix_ms, first);
        snprintf(ret, AGE_CELL_BYTES, "%s (x%lld over %s)", last, count, first);
    } else {
        snprintf(ret, AGE_CELL_BYTES, "%s", last);
    }
}

static const char *source_of(const json_t *event)
{
    const char *component = doc_text(event, "source.component", "");
    return *component ? component : doc_text(event, "reportingComponent", "");
}

void event_list_describe(const json_t *events, int64_t now_unix_ms, struct buf *out)
{
    static const char *const head[] = {"Type", "Reason", "Age",  "From", "Message",
                                       "----", "------", "----", "----", "-------"};
    size_t rows = json_array_size(events) + 2;
    const char **cells = calloc(rows * COLUMNS, sizeof *cells);
    char(*ages)[AGE_CELL_BYTES] = calloc(rows, sizeof *ages);
    if (cells && ages) {
        memcpy(cells, head, sizeof head);
        size_t i;
        json_t *event;
        json_array_foreach (events, i, event) {
            const char **row = cells + (i + 2) * COLUMNS;
            age_cell(event, now_unix_ms, ages[i]);
            row[0] = doc_text(event, "type", "Normal");
            row[1] = doc_text(event, "reason", "");
            row[2] = ages[i];
            row[3] = source_of(event);
            row[4] = doc_text(event, "message", "");
        }
        table_print_cells(cells, COLUMNS, rows, "  ", out);
    }
    free(cells);
    free(ages);
}
