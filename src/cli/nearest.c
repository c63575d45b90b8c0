/* "Did you mean …?": the nearest known word, by edit distance. Pure. */
#include "cli/command.h"

#include <string.h>

enum { WORD_BYTES = 32 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's distance, one row at a time; a swap of neighbours counts 2. */
static size_t distance(const char *a, const char *b)
{
    size_t length = strlen(b);
    size_t row[WORD_BYTES + 1];
    if (length > WORD_BYTES) {
        return length;
    }
    for (size_t j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t substituted = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(substituted, row[j] + 1, row[j + 1] + 1);
        }
    }
    return row[length];
}

const char *cli_nearest(const char *word, const char *const *words, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, words[i]);
        if (d < best_distance) {
            best = words[i];
            best_distance = d;
        }
    }
    return best;
}
