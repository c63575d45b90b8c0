/* YAML (and JSON, its subset) to documents, with the place of every value, for messages that name
 * line and column.
 *
 * The tree is built from libfyaml's events, so what stands before a syntax error is still known.
 * Scalars are resolved as Kubernetes does (YAML 1.1: yes/no/on/off, 012 octal). Nulls stay JSON
 * nulls: an API server drops them, job/check/check.h warns. Duplicate keys: the first wins and a
 * fault is recorded. Aliases are expanded here, within a budget.
 *
 * Layer: base; pure (no I/O). Ownership: init by yaml_load, freed by yaml_done.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>

/* Both count from 1; 0 means unknown. */
struct yaml_place {
    int line;
    int column;
};

/* A fault of the text itself. `hint` may be NULL. */
struct yaml_fault {
    struct yaml_place place;
    bool fatal; /* the document ends here */
    char *message;
    char *hint;
    char *path; /* dotted field path where known, else NULL */
};

/* One document of a stream. */
struct yaml_document {
    json_t *doc;                /* what could be read; NULL for an empty document */
    struct yaml_places *places; /* opaque */
    int root;                   /* the document's own place in `places`; 0 unless this is a part */
};

struct yaml_stream {
    struct yaml_document *documents;
    size_t document_count;
    struct yaml_fault *faults;
    size_t fault_count;
};

struct yaml_limits {
    size_t text_bytes_max; /* bytes of the input */
    size_t nodes_max;      /* number of nodes after alias expansion, of all documents together */
    int depth_max;
    size_t documents_max;
};

extern const struct yaml_limits
    yaml_limits_default; /* 8 MiB, 200,000 nodes, depth 64, 256 documents */

/* Returns 0 if the text could be read as far as `ret` says (check its faults); negative only for
 * limits and memory. */
int yaml_load(const char *text, size_t bytes, const struct yaml_limits *limits,
              struct yaml_stream *ret, struct muster_err *err);
void yaml_done(struct yaml_stream *stream);

/* Returns the place where the value at a field path ("spec.containers[0].image", as in messages)
 * starts; for a mapping entry, the place of its key. For a path that does not exist, returns the
 * place of its nearest ancestor. */
struct yaml_place yaml_place_of(const struct yaml_document *document, const char *path);

/* Returns the part of a document at `path`; paths for its places start there. Borrows all. */
struct yaml_document yaml_part(const struct yaml_document *document, json_t *part,
                               const char *path);

/* Adds one step to a field path: "spec", then "spec.containers", then "spec.containers[0]". A key
 * that is not a plain word is put in brackets, as in "limits[nvidia.com/gpu]". */
void yaml_path_key(struct buf *path, const char *key);
void yaml_path_index(struct buf *path, size_t index);

/* Prints a document as YAML: block style, keys in order, quoted only where needed; the caller
 * frees. */
char *yaml_print(const json_t *doc);
