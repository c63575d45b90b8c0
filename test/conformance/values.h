/* Elements of any type as numbers. Tests only. */
#pragma once

#include <stddef.h>

#include <muster/comm.h>

/* Rounded, or cut, to what the type has. */
void store_value(enum muster_type type, void *buffer, size_t i, double value);
double load_value(enum muster_type type, const void *buffer, size_t i);
