/* The fold kernels for any processor. Layer: comm. */
#define REDUCE_TABLE reduce_plain
#define REDUCE_TWINS reduce_twins_plain
#include "comm/reduce_kernels.h"
