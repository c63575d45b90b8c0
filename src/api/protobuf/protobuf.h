/* Kubernetes' protobuf bodies, which clients in Go send of the kinds that Kubernetes itself
 * defines: typed clients of client-go, controller-runtime, and kubectl here and there. Answers stay
 * JSON, which all of them take.
 *
 * Layer: services, pure. Source: k8s.io/apimachinery runtime/serializer/protobuf.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

#define PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/* Puts a new object into *ret. Returns MUSTER_EUNSUPPORTED for an unknown kind, MUSTER_EINVAL for
 * malformed bytes. */
int protobuf_read(const char *bytes, size_t count, json_t **ret, struct muster_err *err);
