/* muster's public C API. Link with `pkg-config --cflags --libs muster`. */
#pragma once

#include <muster/comm.h>
#include <muster/elastic.h>
#include <muster/err.h>
#include <muster/shards.h>
#include <muster/version.h>
