/* See images.h. Source of the rules for short names: the reference grammar of the distribution
 * project, which Docker and containerd follow. */
#include "webhook/images.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name of an image, complete and split into its parts. */
struct reference {
    char registry[IMAGES_NAME_BYTES_MAX + sizeof "docker.io/library/"]; /* the text of all parts */
    char *path;
    char *tag;    /* NULL: none */
    char *digest; /* NULL: none */
};

struct images_pattern {
    char *registry; /* "": every image */
    char *path;
    char *tag;
    char *digest;
    bool below; /* all images below `path`; "" for the whole registry */
};

/* ---- A name ---- */

/* Whether the first part names a registry: it has a dot or a port, or is localhost. */
static bool names_registry(const char *name, size_t length)
{
    return memchr(name, '.', length) || memchr(name, ':', length) ||
           (length == strlen("localhost") && strncmp(name, "localhost", length) == 0);
}

static bool is_path(const char *path)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
    size_t length = strlen(path);
    return length > 0 && strspn(path, allowed) == length && path[0] != '/' &&
           path[length - 1] != '/' && !strstr(path, "//") && !strstr(path, "..");
}

static bool is_tag(const char *tag)
{
    return *tag &&
           strspn(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               strlen(tag);
}

static bool is_digest(const char *digest)
{
    const char *colon = strchr(digest, ':');
    return colon && colon > digest && colon[1] && is_tag(colon + 1);
}

/* Ends the text before that separator; returns the part after it, or NULL if there is none. */
static char *cut(char *text, char separator)
{
    char *at = strchr(text, separator);
    if (at) {
        *at++ = '\0';
    }
    return at;
}

/* Returns false if it is not a name of an image. */
static bool read_reference(const char *name, struct reference *ret)
{
    const char *slash = strchr(name, '/');
    bool whole = slash && names_registry(name, (size_t)(slash - name));
    if (strlen(name) > IMAGES_NAME_BYTES_MAX) {
        return false;
    }
    snprintf(ret->registry, sizeof ret->registry, "%s%s",
             whole   ? ""
             : slash ? "docker.io/"
                     : "docker.io/library/",
             name);
    ret->path = cut(ret->registry, '/');
    ret->digest = cut(ret->path, '@');
    ret->tag = cut(ret->path, ':');
    for (char *c = ret->registry; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    if (strcmp(ret->registry, "index.docker.io") == 0) {
        memcpy(ret->registry, "docker.io", sizeof "docker.io");
    }
    return ret->registry[0] && is_path(ret->path) && (!ret->tag || is_tag(ret->tag)) &&
           (!ret->digest || is_digest(ret->digest));
}

/* ---- The list ---- */

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void pattern_done(struct images_pattern *pattern)
{
    free(pattern->registry);
    free(pattern->path);
    free(pattern->tag);
    free(pattern->digest);
}

/* Reads a pattern; "PATH/" is read as an image "PATH/x", and the last part is removed again. */
static int read_pattern(const char *word, struct images_pattern *ret)
{
    struct reference reference = {.registry = "", .path = reference.registry};
    char name[IMAGES_NAME_BYTES_MAX + 2];
    size_t length = strlen(word);
    bool every = strcmp(word, "*") == 0;
    if (length > IMAGES_NAME_BYTES_MAX) {
        return MUSTER_EDATA;
    }
    length -= length > 2 && strcmp(word + length - 2, "/*") == 0;
    bool below = length > 1 && word[length - 1] == '/';
    snprintf(name, sizeof name, "%.*s%s", (int)length, word, below ? "x" : "");
    if (!every && !read_reference(name, &reference)) {
        return MUSTER_EDATA;
    }
    if (below) {
        char *last = strrchr(reference.path, '/');
        *(last ? last : reference.path) = '\0';
    }
    *ret = (struct images_pattern){.registry = copy(reference.registry),
                                   .path = copy(reference.path),
                                   .tag = copy(reference.tag),
                                   .digest = copy(reference.digest),
                                   .below = below};
    bool whole = ret->registry && ret->path && !ret->tag == !reference.tag &&
                 !ret->digest == !reference.digest;
    return whole ? 0 : MUSTER_ENOMEM;
}

static int add_pattern(struct images *images, const char *word, struct muster_err *err)
{
    if (images->count == IMAGES_PATTERNS_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "more than %d patterns of images",
                           IMAGES_PATTERNS_MAX);
    }
    struct images_pattern *longer = realloc(images->patterns, (images->count + 1) * sizeof *longer);
    if (!longer) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    images->patterns = longer;
    longer[images->count] = (struct images_pattern){0};
    int r = read_pattern(word, &longer[images->count]);
    if (r == MUSTER_EDATA) {
        return muster_fail(err, r,
                           "'%.200s' is no pattern of images: write registry/path, "
                           "registry/path:tag or registry/path/",
                           word);
    }
    images->count++;
    return r == 0 ? 0 : muster_fail(err, r, "out of memory");
}

/* Replaces comments by blanks. */
static void blank_comments(char *text)
{
    bool comment = false;
    for (char *c = text; *c; c++) {
        comment = *c == '#' || (comment && *c != '\n');
        *c = comment ? ' ' : *c;
    }
}

int images_read(struct images *images, const char *text, struct muster_err *err)
{
    *images = (struct images){.listed = true};
    muster_auto(free) char *words = strdup(text);
    if (!words) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    blank_comments(words);
    int r = 0;
    char *rest = NULL;
    for (char *word = strtok_r(words, ", \t\r\n", &rest); word && r == 0;
         word = strtok_r(NULL, ", \t\r\n", &rest)) {
        r = add_pattern(images, word, err);
    }
    if (r != 0) {
        images_done(images);
    }
    return r;
}

void images_done(struct images *images)
{
    for (size_t i = 0; i < images->count; i++) {
        pattern_done(&images->patterns[i]);
    }
    free(images->patterns);
    *images = (struct images){0};
}

/* ---- An image ---- */

static bool path_fits(const struct images_pattern *pattern, const char *path)
{
    size_t length = strlen(pattern->path);
    if (!pattern->below) {
        return strcmp(path, pattern->path) == 0;
    }
    return length == 0 || (strncmp(path, pattern->path, length) == 0 && path[length] == '/');
}

/* Whether tag and digest fit. A pattern without them accepts all; a digest decides what is pulled,
 * whatever the tag. */
static bool version_fits(const struct images_pattern *pattern, const struct reference *image)
{
    if (pattern->digest) {
        return image->digest && strcmp(image->digest, pattern->digest) == 0;
    }
    const char *tag = image->tag ? image->tag : "latest";
    return !pattern->tag || (!image->digest && strcmp(tag, pattern->tag) == 0);
}

static bool fits(const struct images_pattern *pattern, const struct reference *image)
{
    return !pattern->registry[0] ||
           (strcmp(pattern->registry, image->registry) == 0 && path_fits(pattern, image->path) &&
            version_fits(pattern, image));
}

bool images_allow(const struct images *images, const char *image)
{
    struct reference reference;
    if (!images->listed) {
        return true;
    }
    if (!read_reference(image, &reference)) {
        return false;
    }
    for (size_t i = 0; i < images->count; i++) {
        if (fits(&images->patterns[i], &reference)) {
            return true;
        }
    }
    return false;
}
