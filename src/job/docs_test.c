/* The table in docs/job-files.md is the table that the program uses. MUSTER_UPDATE=1 writes it
 * again. */
#include "base/buf.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "job/annotations.h"
#include "job/file/file.h"
#include "job/schema.h"

#include <stdio.h>
#include <stdlib.h>

static const char marker[] = "<!-- fields -->\n";

static void print_type(enum schema_type type, struct buf *out)
{
    static const char *const support[] = {[SCHEMA_SUPPORTED] = "supported",
                                          [SCHEMA_WARNED] = "no effect",
                                          [SCHEMA_REJECTED] = "rejected"};
    size_t count;
    const struct schema_field *fields = schema_fields(&count);
    buf_format(out, "\n### %s\n\n| field | here | |\n|---|---|---|\n", schema_title(type));
    for (size_t i = 0; i < count; i++) {
        if (fields[i].type == type) {
            buf_format(out, "| `%s`%s | %s | %s |\n", fields[i].name,
                       fields[i].required ? " (required)" : "", support[fields[i].support],
                       fields[i].says);
        }
    }
}

static const char *document_path(const char *name)
{
    static char path[4096];
    const char *source = getenv("MUSTER_SOURCE");
    snprintf(path, sizeof path, "%s/docs/%s", source ? source : ".", name);
    return path;
}

static char *read_document(const char *name)
{
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(file_read(document_path(name), 1 << 20, &text, &bytes, NULL), 0);
    return text;
}

static void the_documented_table_is_the_one_in_the_program(void **state)
{
    (void)state;
    char *text = read_document("job-files.md");
    char *place = strstr(text, marker);
    assert_non_null(place);
    place += strlen(marker);
    struct buf table;
    buf_init(&table, 1 << 20);
    for (enum schema_type type = 0; type < SCHEMA_TYPE_COUNT; type++) {
        print_type(type, &table);
    }
    if (getenv("MUSTER_UPDATE")) {
        struct buf whole;
        buf_init(&whole, 1 << 20);
        buf_add(&whole, text, (size_t)(place - text));
        buf_text(&whole, buf_str(&table));
        assert_int_equal(
            file_write(document_path("job-files.md"), whole.data, whole.used, 0644, NULL), 0);
        buf_done(&whole);
    } else {
        assert_string_equal(place, buf_str(&table));
    }
    buf_done(&table);
    free(text);
}

static void expect_clean(const char *text, size_t bytes)
{
    struct job_file file = {0};
    struct job_problems problems;
    struct buf out;
    buf_init(&out, 65536);
    job_problems_init(&problems, 20);
    assert_int_equal(job_file_read(text, bytes, &file, &problems, NULL), 0);
    job_problems_print(&problems, "docs/job-files.md", &out);
    assert_string_equal(buf_str(&out), "");
    buf_done(&out);
    job_problems_done(&problems);
    job_file_done(&file);
}

static void the_documented_jobs_are_in_order(void **state)
{
    (void)state;
    char *text = read_document("job-files.md");
    int jobs = 0;
    for (char *at = text; (at = strstr(at, "```yaml\n")) != NULL;) {
        at += strlen("```yaml\n");
        char *end = strstr(at, "```");
        assert_non_null(end);
        if (strncmp(at, "apiVersion:", strlen("apiVersion:")) == 0) {
            expect_clean(at, (size_t)(end - at));
            jobs++;
        }
        at = end + strlen("```");
    }
    assert_in_range(jobs, 2, 100);
    free(text);
}

static void every_annotation_is_documented(void **state)
{
    (void)state;
    static const char *const notes[] = {JOB_NOTES};
    char *text = read_document("annotations.md");
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        char row[128];
        snprintf(row, sizeof row, "| `%s` |", notes[i]);
        if (!strstr(text, row)) {
            fail_msg("docs/annotations.md has no row for %s", notes[i]);
        }
    }
    free(text);
}

/* A new field must have a text that says what happens to it, and must not be in the table twice. */
static void every_field_says_what_happens_to_it(void **state)
{
    (void)state;
    size_t count;
    const struct schema_field *fields = schema_fields(&count);
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].says || !*fields[i].says ||
            schema_find(fields[i].type, fields[i].name) != &fields[i]) {
            fail_msg("%s.%s says nothing or is there twice", schema_title(fields[i].type),
                     fields[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_table_is_the_one_in_the_program),
        cmocka_unit_test(the_documented_jobs_are_in_order),
        cmocka_unit_test(every_annotation_is_documented),
        cmocka_unit_test(every_field_says_what_happens_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
