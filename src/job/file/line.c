/* See line.h. */
#include "job/file/line.h"

#include <string.h>

void line_reader_init(struct line_reader *reader, const char *text, size_t bytes)
{
    *reader = (struct line_reader){.at = text, .end = text + bytes, .skip_column = -1};
}

static size_t count_blanks(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && text[count] == ' ') {
        count++;
    }
    return count;
}

/* Returns the length of the key at `text`, up to its colon, or 0 if there is no key. */
static size_t key_length(const char *text, size_t length)
{
    char quote = length > 0 && (text[0] == '"' || text[0] == '\'') ? text[0] : '\0';
    for (size_t i = quote ? 1 : 0; i < length; i++) {
        bool blank_follows = i + 1 == length || text[i + 1] == ' ' || text[i + 1] == '\r';
        if (quote && text[i] == quote) {
            quote = '\0';
        } else if (!quote && text[i] == ':' && blank_follows) {
            return i;
        } else if (!quote && (text[i] == '#' || strchr("{}[],", text[i]))) {
            return 0;
        }
    }
    return 0;
}

/* Takes the value without its comment and the blanks around it. */
static void take_value(const char *text, size_t length, struct line *ret)
{
    size_t start = count_blanks(text, length);
    size_t end = start;
    char quote = '\0';
    for (size_t i = start; i < length; i++) {
        if (text[i] == '#' && !quote && (i == start || text[i - 1] == ' ')) {
            break;
        }
        if (quote ? text[i] == quote : text[i] == '"' || text[i] == '\'') {
            quote = quote ? '\0' : text[i];
        }
        if (text[i] != ' ' && text[i] != '\r') {
            end = i + 1;
        }
    }
    ret->value = text + start;
    ret->value_length = end - start;
}

static int open_brackets(const char *text, size_t length)
{
    int open = 0;
    char quote = '\0';
    for (size_t i = 0; i < length; i++) {
        if (quote) {
            quote = text[i] == quote ? '\0' : quote;
        } else if (text[i] == '"' || text[i] == '\'') {
            quote = text[i];
        } else {
            open += (text[i] == '[' || text[i] == '{') - (text[i] == ']' || text[i] == '}');
        }
    }
    return open;
}

/* Notes what the value means for the lines after it. */
static void note_value(struct line_reader *reader, const struct line *line)
{
    if (line->value_length == 0) {
        return;
    }
    char first = line->value[0];
    if (first == '|' || first == '>') {
        reader->skip_column = line->column;
    } else if (first == '[' || first == '{') {
        reader->brackets = open_brackets(line->value, line->value_length);
    }
}

/* Reads a line; returns false if it has no key and is not a document marker. */
static bool read_line(struct line_reader *reader, const char *text, size_t length, struct line *ret)
{
    size_t column = count_blanks(text, length);
    if (column == length || text[column] == '#' || text[column] == '\r') {
        return false;
    }
    if (reader->brackets > 0) {
        reader->brackets += open_brackets(text, length);
        return false;
    }
    if (reader->skip_column >= 0 && (int)column > reader->skip_column) {
        return false;
    }
    reader->skip_column = -1;
    *ret = (struct line){.number = reader->number, .dash_column = -1};
    if (length >= 3 && (memcmp(text, "---", 3) == 0 || memcmp(text, "...", 3) == 0)) {
        return true;
    }
    while (column + 1 < length && text[column] == '-' && text[column + 1] == ' ') {
        ret->dash_column = ret->dash_column < 0 ? (int)column : ret->dash_column;
        column += 1 + count_blanks(text + column + 1, length - column - 1);
    }
    ret->column = (int)column;
    ret->key = text + column;
    ret->key_length = key_length(ret->key, length - column);
    if (ret->key_length == 0) {
        return false;
    }
    size_t after = column + ret->key_length + 1;
    take_value(text + after, length - after, ret);
    note_value(reader, ret);
    return true;
}

bool line_next(struct line_reader *reader, struct line *ret)
{
    while (reader->at < reader->end) {
        const char *text = reader->at;
        const char *stop = memchr(text, '\n', (size_t)(reader->end - text));
        stop = stop ? stop : reader->end;
        reader->at = stop < reader->end ? stop + 1 : stop;
        reader->number++;
        if (read_line(reader, text, (size_t)(stop - text), ret)) {
            return true;
        }
    }
    return false;
}
