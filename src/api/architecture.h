/* The processor's architecture under the name that Kubernetes has for it: amd64, arm64 … (Go's
 * GOARCH).
 *
 * Layer: services, pure but for uname. Thread: any.
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { ARCHITECTURE_BYTES = 65 };

static inline void architecture_name(char ret[ARCHITECTURE_BYTES])
{
    static const char *const names[][2] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}};
    struct utsname machine = {0};
    (void)uname(&machine);
    const char *name = machine.machine;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        name = strcmp(name, names[i][0]) == 0 ? names[i][1] : name;
    }
    (void)snprintf(ret, ARCHITECTURE_BYTES, "%s", name);
}
