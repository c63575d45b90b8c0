/* Makes the output of `describe` from objects. Layer: cli; pure. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdint.h>

/* Prints any object, as kubectl prints a custom resource: Name, Namespace, Labels, Annotations, API
 * Version, Kind, Metadata, then every other section with its fields sorted, then Events. */
void describe_object(const json_t *object, const json_t *events, int64_t now_unix_ms,
                     struct buf *out);

/* Prints a pod: its containers with state, last state, restarts, environment and mounts; its
 * events. */
void describe_pod(const json_t *pod, const json_t *events, int64_t now_unix_ms, struct buf *out);

/* Makes a label from a key: "pytorchReplicaSpecs" -> "Pytorch Replica Specs", "uid" -> "UID". */
void describe_label(const char *key, char *ret, size_t size);
