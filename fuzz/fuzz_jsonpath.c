/* -o jsonpath and -o custom-columns: the first line is a template, the rest is the JSON that it is
 * applied to; the template is also read as columns. */
#include "base/buf.h"
#include "base/doc.h"
#include "cli/show/custom_columns.h"
#include "cli/show/jsonpath.h"
#include "invariant.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUT_BYTES_MAX = 4 << 20 };

static void print_template(const char *template, const json_t *doc)
{
    struct jsonpath *path = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct buf out;
    buf_init(&out, OUTPUT_BYTES_MAX);
    int r = jsonpath_parse(template, &path, &err);
    r = r < 0 || !doc ? r : jsonpath_print(path, doc, &out, &err);
    invariant(r == 0 || *err.text, "it says why", template);
    invariant(r == 0 || out.used == 0, "an error prints nothing", template);
    buf_done(&out);
    jsonpath_free(path);
}

static void print_columns(const char *spec, const json_t *doc)
{
    struct custom_columns *columns = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct buf out;
    buf_init(&out, OUTPUT_BYTES_MAX);
    int r = custom_columns_parse(spec, &columns, &err);
    r = r < 0 || !doc ? r : custom_columns_print(columns, doc, &out, &err);
    invariant(r == 0 || *err.text, "it says why", spec);
    buf_done(&out);
    custom_columns_free(columns);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    memcpy(text, data, size);
    char *line = strchr(text, '\n');
    json_t *doc = NULL;
    if (line) {
        *line = '\0';
        doc_parse(line + 1, strlen(line + 1), &doc, NULL);
    }
    print_template(text, doc);
    print_columns(text, doc);
    json_decref(doc);
    free(text);
    return 0;
}
