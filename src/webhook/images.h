/* Which images may be run: a list of patterns that an administrator writes.
 *
 *     registry.example/team/           all below that path, at any depth; a '*' may follow
 *     registry.example/team/trainer    that repository, with any tag or digest
 *     registry.example/team/trainer:1  that tag alone; likewise @sha256:…
 *     python                           docker.io/library/python, as a container runtime reads it
 *     *                                every image
 *
 * Patterns and images are compared part by part after the runtime's own rules filled in what was
 * left out, so that "registry.example.evil/team/trainer" does not pass for "registry.example/team".
 *
 * Layer: pure. Ownership: read/done, the caller's struct. Thread: any.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>

enum { IMAGES_PATTERNS_MAX = 1000, IMAGES_NAME_BYTES_MAX = 1024 };

struct images_pattern;

/* All zero, it allows every image. */
struct images {
    struct images_pattern *patterns;
    size_t count;
    bool listed; /* there is a list, even if it has no pattern */
};

/* Reads patterns separated by commas, blanks or newlines; a comment is from '#' to the end of the
 * line. The error of MUSTER_EDATA names the text that is not a pattern; then nothing was read. */
int images_read(struct images *images, const char *text, struct muster_err *err);
void images_done(struct images *images);

/* Whether the image may be used. An image whose name cannot be read is allowed only if every image
 * is. */
bool images_allow(const struct images *images, const char *image);
