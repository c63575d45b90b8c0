/* See image_waiting.h. The words are those of containerd, CRI-O and Docker. */
#include "cli/follow/image_waiting.h"

#include "base/doc.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const pull_reasons[] = {"ErrImagePull", "ImagePullBackOff"};
static const char *const refusals[] = {"401 Unauthorized",
                                       "403 Forbidden",
                                       "unauthorized",
                                       "authentication required",
                                       "authorization failed",
                                       "no basic auth credentials",
                                       "denied"};
static const char *const absences[] = {": not found", "manifest unknown", "name unknown"};
#define COUNT(words) (sizeof(words) / sizeof(words)[0])

static bool holds(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(text, words[i])) {
            return true;
        }
    }
    return false;
}

/* Reads HOST[:PORT] from an image's name by Docker's rule: the first part is a host if it has a dot
 * or a port, or is localhost. */
static void read_registry(const char *image, char *ret, size_t size)
{
    size_t length = strcspn(image, "/");
    bool named =
        image[length] == '/' && (memchr(image, '.', length) || memchr(image, ':', length) ||
                                 strncmp(image, "localhost/", 10) == 0);
    snprintf(ret, size, "%.*s", named ? (int)length : 9, named ? image : "docker.io");
}

/* The part of the message after the kubelet's own words and the image's name, which the line has
 * already. */
static const char *cause_of(const char *message)
{
    const char *last = strstr(message, "failed to resolve image: ");
    return last ? last + strlen("failed to resolve image: ") : message;
}

static void set_refused(const json_t *pod, const char *image, struct image_waiting *ret)
{
    char registry[254];
    const char *secret = doc_text(pod, "spec.imagePullSecrets.0.name", NULL);
    const char *namespace = doc_text(pod, "metadata.namespace", "default");
    bool is_default = strcmp(namespace, "default") == 0;
    read_registry(image, registry, sizeof registry);
    snprintf(ret->why, sizeof ret->why, "the registry %s does not give the image %.400s: %s%.253s",
             registry, image,
             secret ? "it takes no password that is in imagePullSecrets: "
                    : "it wants a password, and the pod has no imagePullSecrets",
             secret ? secret : "");
    snprintf(ret->command, sizeof ret->command,
             "kubectl create secret docker-registry %.100s%s%.63s --docker-server=%.100s "
             "--docker-username=USER --docker-password=PASSWORD --dry-run=client -o yaml | kubectl "
             "apply -f -",
             secret ? secret : "SECRET", is_default ? "" : " -n ", is_default ? "" : namespace,
             registry);
}

bool image_waiting_of(const json_t *pod, const json_t *status, struct image_waiting *ret)
{
    const char *reason = doc_text(status, "state.waiting.reason", "");
    const char *message = doc_text(status, "state.waiting.message", "");
    const char *name = doc_text(status, "name", "");
    const json_t *spec = doc_find(doc_at(pod, "spec.containers"), "name", name);
    spec = spec ? spec : doc_find(doc_at(pod, "spec.initContainers"), "name", name);
    const char *image = doc_text(spec, "image", doc_text(status, "image", ""));
    *ret = (struct image_waiting){0};
    if (!holds(reason, pull_reasons, COUNT(pull_reasons)) || !*message) {
        return false;
    }
    if (holds(message, refusals, COUNT(refusals))) {
        set_refused(pod, image, ret);
    } else if (holds(message, absences, COUNT(absences))) {
        snprintf(ret->why, sizeof ret->why, "there is no image %.500s in its registry", image);
    } else {
        snprintf(ret->why, sizeof ret->why, "the image %.400s cannot be pulled: %.500s", image,
                 cause_of(message));
    }
    ret->missing =
        holds(message, refusals, COUNT(refusals)) || holds(message, absences, COUNT(absences));
    return true;
}
