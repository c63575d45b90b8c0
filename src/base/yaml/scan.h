/* Reads YAML text as a person does, even if it is not YAML: which characters are within quotes,
 * comments and block scalars, where values begin, and which bracket or quote was left open.
 *
 * A bracket or quote counts as left open when a line below it, indented no deeper than the key it
 * belongs to, has a key of its own.
 *
 * Layer: base; pure. Ownership: everything is borrowed from the text. Bounded: brackets past the
 * 64th level are not matched.
 */
#pragma once

#include "base/yaml/yaml.h"

enum { YAML_SCAN_OPEN_MAX = 64 };

struct yaml_scan_open {
    char what; /* [ { ' " */
    struct yaml_place place;
    int key_column; /* column of the key that it belongs to, from 0 */
};

struct yaml_scan {
    const char *at;
    const char *end;
    struct yaml_place place; /* place of *at */
    const char *line;        /* start of the line */
    bool line_begun;
    bool fresh;        /* a value or key may begin here */
    bool blank_before; /* a blank precedes *at, so # begins a comment */
    int key_column;    /* column of the key in this line, from 0 */
    int token_column;  /* column of the last token that began */
    int parent_column; /* column of the key or dash that the next value belongs to */
    bool in_block;
    int block_column;
    struct yaml_scan_open quote; /* `what` is 0 outside quotes */
    int depth;
    struct yaml_scan_open open[YAML_SCAN_OPEN_MAX];
    struct yaml_scan_open unclosed; /* the first that was left open; `what` is 0 if none so far */
};

/* One character outside comments and block scalars. */
struct yaml_scan_char {
    const char *at;
    struct yaml_place place;
    bool start;  /* it starts a value or key */
    bool quoted; /* inside quotes */
    bool flow;   /* inside [ ] or { } */
};

void yaml_scan_init(struct yaml_scan *scan, const char *text, size_t bytes);

/* Reads the next character; returns false at the end of the text. Blanks and line ends are
 * skipped. */
bool yaml_scan_next(struct yaml_scan *scan, struct yaml_scan_char *ret);
