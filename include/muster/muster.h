/* muster's public C API. Link with `pkg-config --cflags --libs muster`. */
#pragma once

#include <muster/err.h>
