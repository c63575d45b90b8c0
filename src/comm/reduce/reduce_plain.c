/* The reduce kernels for any processor. Layer: comm. */
#define REDUCE_TABLE reduce_plain
#include "comm/reduce/reduce_kernels.h"
