/* See name.h. */
#include "client/checkpoint/name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void checkpoint_name_write(const struct checkpoint_name *name, char ret[CHECKPOINT_NAME_BYTES])
{
    (void)snprintf(ret, CHECKPOINT_NAME_BYTES,
                   "%016" PRIx64 "-%012" PRIu64 "-%016" PRIx64 ".checkpoint", name->lineage,
                   name->version, name->checksum);
}

void checkpoint_name_write_part(const struct checkpoint_name *name, uint64_t writer,
                                char ret[CHECKPOINT_NAME_BYTES])
{
    char whole[CHECKPOINT_NAME_BYTES];
    checkpoint_name_write(name, whole);
    (void)snprintf(ret, CHECKPOINT_NAME_BYTES, "%.69s.%016" PRIx64 ".part", whole, writer);
}

/* A name is valid only if writing it again gives the same text. */
bool checkpoint_name_read(const char *text, struct checkpoint_name *ret, bool *ret_part)
{
    char again[CHECKPOINT_NAME_BYTES];
    struct checkpoint_name name;
    uint64_t writer;
    if (sscanf(text, "%16" SCNx64 "-%20" SCNu64 "-%16" SCNx64, &name.lineage, &name.version,
               &name.checksum) != 3) {
        return false;
    }
    *ret = name;
    *ret_part = false;
    checkpoint_name_write(&name, again);
    if (strcmp(text, again) == 0) {
        return true;
    }
    size_t length = strlen(again);
    if (strncmp(text, again, length) != 0 || sscanf(text + length, ".%16" SCNx64, &writer) != 1) {
        return false;
    }
    *ret_part = true;
    checkpoint_name_write_part(&name, writer, again);
    return strcmp(text, again) == 0;
}
