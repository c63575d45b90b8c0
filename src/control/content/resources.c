/* See resources.h. */
#include "control/content/resources.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/quantity.h"

#include <stdio.h>
#include <string.h>

enum { QUANTITY_BYTES = 64 };

struct sum {
    struct build b;
    json_t *milli;  /* by resource: the sum in thousandths */
    json_t *binary; /* by resource: whether a quantity has a suffix such as Mi */
};

static const char *text_of(const json_t *value, char buffer[QUANTITY_BYTES])
{
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    snprintf(buffer, QUANTITY_BYTES, "%.15g", json_number_value(value));
    return buffer;
}

static int64_t times(int64_t milli, int32_t pods)
{
    int64_t product;
    return __builtin_mul_overflow(milli, pods, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t one, int64_t other)
{
    int64_t both;
    return __builtin_add_overflow(one, other, &both) ? INT64_MAX : both;
}

static void add(struct sum *s, const char *resource, const json_t *value, int32_t pods)
{
    char buffer[QUANTITY_BYTES];
    const char *text = text_of(value, buffer);
    int64_t milli = quantity_milli(text);
    if (milli < 0) {
        return;
    }
    int64_t before = json_integer_value(json_object_get(s->milli, resource));
    build_int(&s->b, s->milli, resource, plus(before, times(milli, pods)));
    if (*text && text[strlen(text) - 1] == 'i') {
        build_set(&s->b, s->binary, resource, json_true());
    }
}

static void add_container(struct sum *s, const json_t *container, int32_t pods)
{
    const json_t *requests = doc_at(container, "resources.requests");
    const json_t *limits = doc_at(container, "resources.limits");
    const char *resource;
    json_t *value;
    json_object_foreach ((json_t *)requests, resource, value) {
        add(s, resource, value, pods);
    }
    json_object_foreach ((json_t *)limits, resource, value) {
        if (!json_object_get(requests, resource)) {
            add(s, resource, value, pods);
        }
    }
}

/* Writes the sum as "1500m", "3" or "512Mi". */
static void print(int64_t milli, bool binary, char ret[QUANTITY_BYTES])
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    size_t suffix = 0;
    int64_t number = milli / 1000;
    if (milli % 1000 != 0) {
        snprintf(ret, QUANTITY_BYTES, "%lldm", (long long)milli);
        return;
    }
    while (binary && number > 0 && number % 1024 == 0 && suffix < 5) {
        number /= 1024;
        suffix++;
    }
    snprintf(ret, QUANTITY_BYTES, "%lld%s", (long long)number, suffixes[suffix]);
}

static json_t *print_all(struct sum *s)
{
    json_t *made = build_value(&s->b, json_object());
    const char *resource;
    json_t *milli;
    json_object_foreach (s->milli, resource, milli) {
        char text[QUANTITY_BYTES];
        print(json_integer_value(milli), json_object_get(s->binary, resource), text);
        build_text(&s->b, made, resource, text);
    }
    return build_end(&s->b, made);
}

json_t *control_resources_of(const struct job *job, int32_t pods)
{
    struct sum s = {0};
    s.milli = build_value(&s.b, json_object());
    s.binary = build_value(&s.b, json_object());
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        const struct job_replica *replica = &job->replica[role];
        int32_t some = replica->replicas < pods ? replica->replicas : pods;
        if (!replica->present || some <= 0) {
            continue;
        }
        size_t index;
        json_t *container;
        json_array_foreach (doc_at(replica->template, "spec.containers"), index, container) {
            add_container(&s, container, some);
        }
        pods -= some;
    }
    json_t *made = print_all(&s);
    json_decref(s.milli);
    json_decref(s.binary);
    return made;
}
