/* Kubernetes' protobuf bodies, for the few kinds that kubectl insists on sending so: `kubectl
 * create configmap`, `secret` and `namespace`. All other requests are JSON.
 *
 * Layer: services, pure. Source: k8s.io/apimachinery runtime/serializer/protobuf and
 * generated.proto.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

#define PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/* New object in *ret. MUSTER_EUNSUPPORTED for another kind, MUSTER_EINVAL for bytes that are not
 * what they should be. */
int protobuf_read(const char *bytes, size_t count, json_t **ret, struct muster_err *err);
