/* "Did you mean …?": the nearest known word, by edit distance. Pure. */
#include "cli/command/command.h"

#include <string.h>

enum { WORD_BYTES = 128 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Edits from a to b: insertions, deletions, substitutions, and swaps of neighbours (Damerau, in the
 * restricted form), one row at a time. */
static size_t distance(const char *a, const char *b)
{
    size_t length = strlen(b);
    size_t rows[3][WORD_BYTES + 1]; /* of the letter before the last, the last, and this */
    if (length > WORD_BYTES) {
        return length;
    }
    for (size_t j = 0; j <= length; j++) {
        rows[0][j] = j;
    }
    size_t i = 0;
    for (; a[i]; i++) {
        const size_t *before = rows[(i + 2) % 3];
        const size_t *last = rows[i % 3];
        size_t *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            row[j + 1] = least(last[j] + (a[i] != b[j]), last[j + 1] + 1, row[j] + 1);
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
                row[j + 1] = least(row[j + 1], before[j - 1] + 1, row[j + 1]);
            }
        }
    }
    return rows[i % 3][length];
}

/* What follows the first - or _ of it: "workers" of "num_workers"; NULL: it is one word. */
static const char *tail_of(const char *word)
{
    const char *end = strpbrk(word, "-_");
    return end && end > word ? end + 1 : NULL;
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
    best_distance = strlen(word) / 3 + 1;
    for (size_t i = 0; !tail_of(word) && !best && i < count;
         i++) { /* --workers for --num_workers */
        const char *tail = tail_of(words[i]);
        best = tail && distance(word, tail) < best_distance ? words[i] : NULL;
    }
    return best;
}
