/* See yaml.h. libfyaml scans the text and gives events; everything that could cost more than the
 * text is long (aliases, depth) is done here, within limits. */
#include "base/yaml/yaml.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/yaml/place.h"
#include "base/yaml/text.h"
#include "base/yaml/tree.h"

#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

/* OPEN_MAX: libfyaml reads any number of open brackets before it returns the first event, and takes
 * memory for each. A text that only mentions brackets closes most of them. */
enum { FAULTS_MAX = 256, PATH_BYTES_MAX = 64 * 1024, OPEN_MAX = 1000 };

const struct yaml_limits yaml_limits_default = {
    .text_bytes_max = 8 * 1024 * 1024,
    .nodes_max = 200000,
    .depth_max = 64,
    .documents_max = 256,
};

struct loader {
    const struct yaml_limits *limits;
    struct yaml_budget budget;
    struct yaml_tree tree;
    bool in_document;
    struct yaml_place last; /* place of the last event that had one */
    struct yaml_stream stream;
};

/* Makes room for one more element of *list, zeroed; returns NULL when out of memory. */
static void *grow(void *list, size_t count, size_t size)
{
    char **array = list;
    char *more = reallocarray(*array, count + 1, size);
    if (!more) {
        return NULL;
    }
    *array = more;
    return memset(more + count * size, 0, size);
}

/* Adds a fault; texts are copied. Faults after FAULTS_MAX are dropped: they would repeat the
 * others. */
static int add_fault(struct yaml_stream *stream, const struct yaml_fault *fault)
{
    if (stream->fault_count >= FAULTS_MAX && !fault->fatal) {
        return 0;
    }
    struct yaml_fault *new = grow(&stream->faults, stream->fault_count, sizeof *new);
    if (!new) {
        return MUSTER_ENOMEM;
    }
    stream->fault_count++;
    new->place = fault->place;
    new->fatal = fault->fatal;
    new->message = strdup(fault->message);
    new->hint = fault->hint ? strdup(fault->hint) : NULL;
    new->path = fault->path ? strdup(fault->path) : NULL;
    return new->message ? 0 : MUSTER_ENOMEM;
}

/* Adds the fault that the tree found in the last event. */
static int add_tree_fault(struct loader *loader)
{
    const struct yaml_tree *tree = &loader->tree;
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    yaml_places_path(tree->places, tree->fault_place, &path);
    struct yaml_place place = tree->fault_at.line > 0 ? tree->fault_at : loader->last;
    if (place.line == 0) {
        place = yaml_places_get(tree->places, tree->fault_place);
    }
    struct yaml_fault fault = {place, false, (char *)tree->fault, (char *)tree->hint,
                               (char *)buf_str(&path)};
    int r = add_fault(&loader->stream, &fault);
    buf_done(&path);
    return r;
}

/* --- documents --- */

static int open_document(struct loader *loader, struct muster_err *err)
{
    if (loader->stream.document_count == loader->limits->documents_max) {
        return muster_fail(err, MUSTER_ETOOBIG, "more than %zu documents",
                           loader->limits->documents_max);
    }
    loader->in_document = true;
    return yaml_tree_init(&loader->tree, &loader->budget);
}

static int close_document(struct loader *loader)
{
    struct yaml_stream *stream = &loader->stream;
    loader->in_document = false;
    struct yaml_document *new = grow(&stream->documents, stream->document_count, sizeof *new);
    if (!new) {
        yaml_tree_done(&loader->tree);
        return MUSTER_ENOMEM;
    }
    stream->document_count++;
    new->places = muster_take(loader->tree.places);
    new->doc = json_is_null(loader->tree.root) ? NULL : json_incref(loader->tree.root);
    yaml_tree_done(&loader->tree);
    return 0;
}

/* --- events --- */

/* Copies a token's text, which the caller frees; *ret is NULL if there is no token.
 * fy_token_get_text0() of libfyaml 0.7.12, which adds a NUL, returns only as many bytes as the text
 * has characters. */
static int copy_text(struct fy_token *token, char **ret)
{
    size_t bytes = 0;
    const char *text = token ? fy_token_get_text(token, &bytes) : NULL;
    *ret = text ? strndup(text, bytes) : NULL;
    return token && !*ret ? MUSTER_ENOMEM : 0;
}

/* Reads the text of a folded scalar piece by piece. libfyaml 0.7.12 counts its bytes wrongly if it
 * is at column 0 and ends in blanks: fy_token_get_text() then ends in bytes that were never
 * written. */
static int read_folded(struct fy_token *token, struct buf *out)
{
    struct fy_token_iter *iterator = fy_token_iter_create(token);
    if (!iterator) {
        return MUSTER_ENOMEM;
    }
    const struct fy_iter_chunk *piece = NULL;
    while ((piece = fy_token_iter_chunk_next(iterator, piece, NULL))) {
        buf_add(out, piece->str, piece->len);
    }
    fy_token_iter_destroy(iterator);
    return buf_failed(out) ? MUSTER_ENOMEM : 0;
}

static int take_scalar(struct loader *loader, struct fy_event *event, struct yaml_place place,
                       struct muster_err *err)
{
    struct fy_token *token = event->scalar.value;
    struct yaml_scalar scalar = {.text = "", .quoting = YAML_PLAIN};
    enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
    muster_auto(free) char *tag = NULL, *anchor = NULL;
    struct buf folded;
    int r = copy_text(event->scalar.tag, &tag);
    r = r < 0 ? r : copy_text(event->scalar.anchor, &anchor);
    buf_init(&folded, loader->limits->text_bytes_max);
    if (r == 0 && style == FYSS_FOLDED) {
        r = read_folded(token, &folded);
        scalar.text = buf_str(&folded);
        scalar.length = folded.used;
    } else if (token) {
        scalar.text = fy_token_get_text(token, &scalar.length);
    }
    scalar.quoting = style == FYSS_PLAIN ? YAML_PLAIN : YAML_QUOTED;
    scalar.tag = tag;
    if (r == 0) {
        r = scalar.text ? yaml_tree_scalar(&loader->tree, &scalar, anchor, place, err)
                        : MUSTER_ENOMEM;
    }
    buf_done(&folded);
    return r;
}

static int take_opening(struct loader *loader, bool mapping, struct fy_token *token,
                        struct yaml_place place, struct muster_err *err)
{
    muster_auto(free) char *anchor = NULL;
    int r = copy_text(token, &anchor);
    return r < 0 ? r : yaml_tree_open(&loader->tree, mapping, anchor, place, err);
}

static int take_alias(struct loader *loader, struct fy_token *token, struct muster_err *err)
{
    muster_auto(free) char *name = NULL;
    int r = copy_text(token, &name);
    loader->last.column -= 1; /* the mark is after the * */
    return r < 0 ? r : yaml_tree_alias(&loader->tree, name, loader->last, err);
}

static int take_event(struct loader *loader, struct fy_event *event, struct muster_err *err)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    struct yaml_place place = {0, 0};
    if (mark) {
        place = (struct yaml_place){mark->line + 1, mark->column + 1};
        loader->last = place;
    }
    switch (event->type) {
    case FYET_DOCUMENT_START: return open_document(loader, err);
    case FYET_DOCUMENT_END: return close_document(loader);
    case FYET_MAPPING_START:
        return take_opening(loader, true, event->mapping_start.anchor, place, err);
    case FYET_SEQUENCE_START:
        return take_opening(loader, false, event->sequence_start.anchor, place, err);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END: return yaml_tree_close(&loader->tree, err);
    case FYET_SCALAR: return take_scalar(loader, event, place, err);
    case FYET_ALIAS: return take_alias(loader, event->alias.anchor, err);
    case FYET_NONE:
    case FYET_STREAM_START:
    case FYET_STREAM_END: break;
    }
    return 0;
}

/* Adds the library's first error as a fatal fault. */
static int add_syntax_error(struct loader *loader, struct fy_diag *diag, const char *text,
                            size_t bytes)
{
    void *iterator = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(diag, &iterator);
    struct yaml_fault fault = {.fatal = true, .place = loader->last};
    const char *says = "";
    if (error) {
        fault.place = (struct yaml_place){error->line, error->column};
        says = error->msg;
    }
    const char *hint;
    fault.message = (char *)yaml_syntax_sentence(text, bytes, &fault.place, says, &hint);
    fault.hint = (char *)hint;
    return add_fault(&loader->stream, &fault);
}

static int read_events(struct loader *loader, struct fy_parser *parser, struct fy_diag *diag,
                       const char *text, size_t bytes, struct muster_err *err)
{
    int r = fy_parser_set_string(parser, text, bytes) == 0 ? 0 : MUSTER_ENOMEM;
    while (r == 0) {
        struct fy_event *event = fy_parser_parse(parser);
        if (!event) {
            break;
        }
        r = take_event(loader, event, err);
        if (r == MUSTER_ETOOBIG) {
            r = muster_wrap(err, "line %d", loader->last.line);
        }
        if (r == 0 && loader->in_document && loader->tree.fault) {
            r = add_tree_fault(loader);
        }
        fy_parser_event_free(parser, event);
    }
    if (r == 0 && fy_parser_get_stream_error(parser)) {
        r = add_syntax_error(loader, diag, text, bytes);
    }
    if (r == 0 && loader->in_document) {
        r = close_document(loader);
    }
    return r;
}

static int parse(struct loader *loader, const char *text, size_t bytes, struct muster_err *err)
{
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (!diag) {
        return MUSTER_ENOMEM;
    }
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg cfg = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_1 | FYPCF_JSON_NONE |
                 FYPCF_ALLOW_DUPLICATE_KEYS | FYPCF_SLOPPY_FLOW_INDENTATION,
        .diag = diag,
    };
    struct fy_parser *parser = fy_parser_create(&cfg);
    int r = parser ? read_events(loader, parser, diag, text, bytes, err) : MUSTER_ENOMEM;
    if (parser) {
        fy_parser_destroy(parser);
    }
    fy_diag_destroy(diag);
    return r;
}

int yaml_load(const char *text, size_t bytes, const struct yaml_limits *limits,
              struct yaml_stream *ret, struct muster_err *err)
{
    if (bytes > limits->text_bytes_max) {
        return muster_fail(err, MUSTER_ETOOBIG, "%zu bytes of YAML are more than the %zu allowed",
                           bytes, limits->text_bytes_max);
    }
    if (yaml_text_open_max(text, bytes) > OPEN_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "more than %d brackets are open at once", OPEN_MAX);
    }
    struct loader loader = {
        .limits = limits,
        .budget = {limits->nodes_max, limits->nodes_max, limits->text_bytes_max, limits->depth_max},
    };
    struct yaml_fault fault = {.fatal = true};
    const char *hint = NULL;
    fault.message = (char *)yaml_text_fault(text, bytes, &fault.place, &hint);
    fault.hint = (char *)hint;
    int r = fault.message ? add_fault(&loader.stream, &fault) : parse(&loader, text, bytes, err);
    if (loader.in_document) {
        yaml_tree_done(&loader.tree);
    }
    if (r != 0) {
        yaml_done(&loader.stream);
        return r == MUSTER_ENOMEM ? err_no_memory(err) : r;
    }
    *ret = loader.stream;
    return 0;
}

void yaml_done(struct yaml_stream *stream)
{
    for (size_t i = 0; i < stream->document_count; i++) {
        json_decref(stream->documents[i].doc);
        yaml_places_free(stream->documents[i].places);
    }
    for (size_t i = 0; i < stream->fault_count; i++) {
        free(stream->faults[i].message);
        free(stream->faults[i].hint);
        free(stream->faults[i].path);
    }
    free(stream->documents);
    free(stream->faults);
    *stream = (struct yaml_stream){0};
}
