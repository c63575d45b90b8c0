/* The reduce kernels for avx2. Layer: comm; compiled with that instruction set (CMakeLists.txt). */
#define REDUCE_TABLE reduce_avx2
#include "comm/reduce/reduce_kernels.h"
