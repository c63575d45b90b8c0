/* $(NAME) in env, command and args, as the kubelet expands it (k8s.io/kubernetes,
 * third_party/forked/golang/expansion: behaviour, not code). See resolve_env.h. */
#include "pod/resolve_env.h"

#include <string.h>

/* Expands the reference that starts at `dollar`: appends its value, or the reference itself if the
 * name is unknown or the parenthesis is not closed. Returns the text after it. */
static const char *expand_reference(const char *dollar, const json_t *env, struct buf *out)
{
    const char *end = strchr(dollar, ')');
    if (!end) {
        buf_add(out, dollar, 2);
        return dollar + 2;
    }
    size_t length = (size_t)(end - (dollar + 2));
    const json_t *value = json_object_getn(env, dollar + 2, length);
    if (value) {
        buf_text(out, json_string_value(value));
    } else {
        buf_add(out, dollar, length + 3);
    }
    return end + 1;
}

void pod_expand(const char *text, const json_t *env, struct buf *out)
{
    while (*text) {
        const char *dollar = strchrnul(text, '$');
        buf_add(out, text, (size_t)(dollar - text));
        text = dollar;
        if (dollar[0] == '\0') {
            break;
        }
        if (dollar[1] == '$') {
            buf_add(out, "$", 1);
            text = dollar + 2;
        } else if (dollar[1] == '(') {
            text = expand_reference(dollar, env, out);
        } else {
            buf_add(out, "$", 1);
            text = dollar + 1;
        }
    }
}
