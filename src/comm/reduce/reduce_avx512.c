/* The reduce kernels for avx512. Layer: comm; compiled with that instruction set (CMakeLists.txt).
 */
#define REDUCE_TABLE reduce_avx512
#include "comm/reduce/reduce_kernels.h"
