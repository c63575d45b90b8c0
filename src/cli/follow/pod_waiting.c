/* See pod_waiting.h. */
#include "cli/follow/pod_waiting.h"

#include "base/doc.h"
#include "cli/follow/hints.h"
#include "cli/follow/image_waiting.h"

#include <stdio.h>
#include <string.h>

static const char *const status_lists[] = {"status.initContainerStatuses",
                                           "status.containerStatuses"};
enum { STATUS_LISTS = 2 };

/* Reasons every pod passes through; they explain nothing. */
static bool is_usual(const char *reason)
{
    return !*reason || strcmp(reason, "ContainerCreating") == 0 ||
           strcmp(reason, "PodInitializing") == 0;
}

/* Makes one line of the message. */
static void join_lines(struct pod_waiting *w)
{
    for (char *at = w->why; (at = strchr(at, '\n'));) {
        *at = ' ';
    }
}

static void set_why(struct pod_waiting *w, const char *reason, const char *message)
{
    snprintf(w->why, sizeof w->why, "%.1024s%s%.200s%s", *message ? message : reason,
             *message ? " (" : "", *message ? reason : "", *message ? ")" : "");
    join_lines(w);
}

static void take_image(const struct image_waiting *image, struct pod_waiting *ret)
{
    snprintf(ret->why, sizeof ret->why, "%s", image->why);
    snprintf(ret->command, sizeof ret->command, "%s", image->command);
    ret->missing = image->missing;
    join_lines(ret);
}

static void take_container(const json_t *pod, const json_t *status, struct pod_waiting *ret)
{
    const char *reason = doc_text(status, "state.waiting.reason", "");
    const char *message = doc_text(status, "state.waiting.message", "");
    struct image_waiting image;
    if (image_waiting_of(pod, status, &image)) {
        take_image(&image, ret);
        return;
    }
    set_why(ret, reason, message);
    ret->missing = strcmp(reason, "CreateContainerConfigError") == 0;
    ret->hopeless =
        ret->missing && (strstr(message, ": hostPath /") || strstr(message, ": subPath "));
    if (ret->missing) {
        hint_of_waiting(message, doc_text(pod, "metadata.namespace", "default"), ret->command,
                        sizeof ret->command);
    }
}

void pod_waiting_of(const json_t *pod, struct pod_waiting *ret)
{
    size_t i;
    json_t *each;
    *ret = (struct pod_waiting){0};
    json_array_foreach (doc_at(pod, "status.conditions"), i, each) {
        if (strcmp(doc_text(each, "type", ""), "PodScheduled") == 0 &&
            strcmp(doc_text(each, "status", ""), "False") == 0) {
            set_why(ret, doc_text(each, "reason", ""), doc_text(each, "message", ""));
            return;
        }
    }
    for (int l = 0; l < STATUS_LISTS; l++) {
        json_array_foreach (doc_at(pod, status_lists[l]), i, each) {
            if (!is_usual(doc_text(each, "state.waiting.reason", ""))) {
                take_container(pod, each, ret);
                return;
            }
        }
    }
}
