/* The lines of a YAML text as a person reads them: how far each is indented, and its key. Works on
 * texts that are no YAML, too.
 *
 * Layer: pure. Ownership: everything is borrowed from the text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct line {
    int number;      /* from 1 */
    int dash_column; /* column of the first "- ", from 0; -1: none */
    int column;      /* column of the key */
    const char *key; /* not terminated; NULL: a document marker ("---") */
    size_t key_length;
    const char *value;   /* not terminated */
    size_t value_length; /* 0: the key has no value on its line */
};

struct line_reader {
    const char *at;
    const char *end;
    int number;
    int skip_column; /* lines that are indented deeper than this are in a block scalar; -1: none */
    int brackets;    /* [ and { that are still open */
};

void line_reader_init(struct line_reader *reader, const char *text, size_t bytes);

/* Reads the next line that has a key or marks the end of a document; returns false at the end. It
 * skips comments, the content of block scalars and flow collections, and list items without a
 * key. */
bool line_next(struct line_reader *reader, struct line *ret);
