/* See scan.h. */
#include "base/yaml/scan.h"

#include <string.h>

void yaml_scan_init(struct yaml_scan *scan, const char *text, size_t bytes)
{
    bool mark = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    *scan = (struct yaml_scan){
        .at = text + (mark ? 3 : 0), .end = text + bytes, .place = {1, 1}, .parent_column = -1};
}

static size_t left(const struct yaml_scan *scan)
{
    return (size_t)(scan->end - scan->at);
}

static char peek(const struct yaml_scan *scan, size_t ahead)
{
    return ahead < left(scan) ? scan->at[ahead] : '\n';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Moves past one byte; columns count characters. */
static void step(struct yaml_scan *scan)
{
    if (*scan->at == '\n') {
        scan->place = (struct yaml_place){scan->place.line + 1, 1};
        scan->line_begun = false;
    } else if (((unsigned char)peek(scan, 1) & 0xc0) != 0x80) {
        scan->place.column++;
    }
    scan->at++;
}

static void skip_line(struct yaml_scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\n') {
        step(scan);
    }
}

/* --- lines --- */

/* Whether a line starts with "word:" or "- ", as lines inside brackets or quotes hardly ever do. */
static bool starts_key(const char *at, const char *end)
{
    const char *from = at;
    if (at + 1 < end && at[0] == '-' && at[1] == ' ') {
        return true;
    }
    while (at < end &&
           (*at == '_' || *at == '-' || *at == '.' || *at == '/' || (*at >= '0' && *at <= '9') ||
            (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z'))) {
        at++;
    }
    return at > from && at < end && *at == ':' && (at + 1 == end || is_blank(at[1]));
}

static void leave_open(struct yaml_scan *scan, const struct yaml_scan_open *open)
{
    if (!scan->unclosed.what) {
        scan->unclosed = *open;
    }
    scan->depth = 0;
    scan->quote.what = 0;
}

static void note_unclosed(struct yaml_scan *scan)
{
    scan->in_block = false;
    if (scan->quote.what) {
        leave_open(scan, &scan->quote);
    } else if (scan->depth > 0) {
        leave_open(
            scan,
            &scan->open[(scan->depth < YAML_SCAN_OPEN_MAX ? scan->depth : YAML_SCAN_OPEN_MAX) - 1]);
    }
}

/* Ends the block, quote or brackets if this line shows that they are over. */
static void end_open(struct yaml_scan *scan, int indent, const char *first)
{
    bool marker = indent == 0 && left(scan) >= 3 &&
                  (memcmp(scan->at, "---", 3) == 0 || memcmp(scan->at, "...", 3) == 0);
    if (scan->in_block && indent <= scan->block_column) {
        scan->in_block = false;
    }
    if (marker) {
        note_unclosed(scan);
        return;
    }
    const struct yaml_scan_open *outer = scan->quote.what ? &scan->quote : &scan->open[0];
    if ((scan->quote.what || scan->depth > 0) && indent <= outer->key_column &&
        starts_key(first, scan->end)) {
        note_unclosed(scan);
    }
}

/* Begins a line; returns false if the line was skipped. */
static bool begin_line(struct yaml_scan *scan)
{
    int indent = 0;
    scan->line = scan->at;
    scan->line_begun = true;
    scan->blank_before = true;
    while (peek(scan, (size_t)indent) == ' ') {
        indent++;
    }
    const char *first = scan->at + ((size_t)indent < left(scan) ? (size_t)indent : left(scan));
    if (first == scan->end || *first == '\n' || *first == '\r') {
        skip_line(scan);
        return false;
    }
    end_open(scan, indent, first);
    if (scan->in_block) {
        skip_line(scan);
        return false;
    }
    if (!scan->quote.what) {
        scan->fresh = true;
        scan->key_column = scan->depth > 0 ? scan->key_column : -1;
    }
    return true;
}

/* --- characters --- */

static void open_at(struct yaml_scan *scan, char what)
{
    int column = scan->key_column < 0 ? scan->place.column - 1 : scan->key_column;
    struct yaml_scan_open open = {what, scan->place, column};
    if (what == '"' || what == '\'') {
        scan->quote = open;
    } else {
        if (scan->depth < YAML_SCAN_OPEN_MAX) {
            scan->open[scan->depth] = open;
        }
        scan->depth++;
    }
}

/* Moves past one character inside quotes, and out of the quotes at the closing one. */
static void step_quoted(struct yaml_scan *scan)
{
    char c = *scan->at;
    if (c == scan->quote.what) {
        bool doubled = c == '\'' && peek(scan, 1) == '\'';
        scan->quote.what = doubled ? c : 0;
        scan->fresh = false;
        scan->blank_before = false;
        if (doubled) {
            step(scan);
        }
    } else if (c == '\\' && scan->quote.what == '"' && left(scan) > 1 && scan->at[1] != '\n') {
        step(scan);
    }
    step(scan);
}

/* Whether "|" or ">" is the whole rest of a line. */
static bool starts_block(const struct yaml_scan *scan)
{
    size_t i = 1;
    while (peek(scan, i) == '+' || peek(scan, i) == '-' ||
           (peek(scan, i) >= '0' && peek(scan, i) <= '9')) {
        i++;
    }
    bool blank = is_blank(peek(scan, i));
    while (peek(scan, i) == ' ' || peek(scan, i) == '\t' || peek(scan, i) == '\r') {
        i++;
    }
    return blank && (peek(scan, i) == '\n' || peek(scan, i) == '#');
}

/* Updates the state after a character outside quotes. */
static void take_plain(struct yaml_scan *scan, bool start)
{
    char c = *scan->at;
    bool before_blank = is_blank(peek(scan, 1));
    bool flow = scan->depth > 0;
    int column = scan->place.column - 1;
    scan->fresh = false;
    if (start && c == '-' && before_blank && !flow) {
        scan->fresh = true;
        scan->parent_column = column;
        return;
    }
    if (start) {
        scan->token_column = column;
        scan->key_column = scan->key_column < 0 ? column : scan->key_column;
    }
    if (c == ':' && (before_blank || (flow && !scan->blank_before))) {
        scan->fresh = before_blank;
        scan->parent_column = scan->token_column;
    } else if ((c == '[' || c == '{') && (start || flow)) {
        open_at(scan, c);
        scan->fresh = true;
    } else if ((c == ']' || c == '}') && flow) {
        scan->depth--;
    } else if (c == ',' && flow) {
        scan->fresh = true;
    } else if (start && (c == '"' || c == '\'')) {
        open_at(scan, c);
    } else if (start && (c == '|' || c == '>') && !flow && starts_block(scan)) {
        scan->in_block = true;
        scan->block_column = scan->parent_column;
    }
}

/* Skips an anchor or a tag; its value follows. */
static void skip_property(struct yaml_scan *scan)
{
    while (scan->at < scan->end && !is_blank(*scan->at) && *scan->at != ',') {
        step(scan);
    }
}

bool yaml_scan_next(struct yaml_scan *scan, struct yaml_scan_char *ret)
{
    while (scan->at < scan->end) {
        char c = *scan->at;
        if (!scan->line_begun && !begin_line(scan)) {
            continue;
        }
        c = *scan->at;
        if (is_blank(c)) {
            scan->blank_before = true;
            step(scan);
        } else if (scan->quote.what) {
            *ret = (struct yaml_scan_char){scan->at, scan->place, false, true, scan->depth > 0};
            step_quoted(scan);
            return true;
        } else if (c == '#' && scan->blank_before) {
            skip_line(scan);
        } else if (scan->fresh && (c == '&' || c == '!')) {
            skip_property(scan);
        } else {
            bool start = scan->fresh;
            *ret = (struct yaml_scan_char){scan->at, scan->place, start, false, scan->depth > 0};
            take_plain(scan, start);
            scan->blank_before = false;
            step(scan);
            if (scan->in_block) {
                skip_line(scan);
            }
            return true;
        }
    }
    note_unclosed(scan);
    return false;
}
