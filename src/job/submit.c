/* See submit.h. */
#include "job/submit.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A '*' at the end allows every name that starts so. */
static const char *const allowed[] = {
    "PATH",          "HOME",         "USER",
    "LOGNAME",       "SHELL",        "LANG",
    "LANGUAGE",      "LC_*",         "TZ",
    "TMPDIR",        "TERM",         "LD_LIBRARY_PATH",
    "PYTHONPATH",    "PYTHONHOME",   "PYTHONUSERBASE",
    "PYENV_*",       "VIRTUAL_ENV",  "CONDA_*",
    "MAMBA_*",       "CUDA_HOME",    "CUDA_PATH",
    "XDG_*",         "HF_HOME",      "TORCH_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
};

static bool fits(const char *pattern, const char *name, size_t length)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*') {
        return length >= n && strncmp(pattern, name, n - 1) == 0;
    }
    return n == length && strncmp(pattern, name, n) == 0;
}

static bool allows(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        if (fits(allowed[i], name, length)) {
            return true;
        }
    }
    return false;
}

json_t *submit_capture(char *const *environment)
{
    json_t *captured = json_object();
    for (char *const *entry = environment; captured && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        if (equals && allows(*entry, (size_t)(equals - *entry))) {
            char name[256];
            size_t length = (size_t)(equals - *entry);
            if (length < sizeof name) {
                memcpy(name, *entry, length);
                name[length] = '\0';
                json_object_set_new(captured, name, json_string(equals + 1));
            }
        }
    }
    return captured;
}
