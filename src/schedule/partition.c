/* Divides a vector into chunks and parts. Layer: pure. */
#include "schedule/partition.h"

#include "core/size.h"

size_t partition_chunks(size_t count, int size, size_t part)
{
    size_t chunk = part * (size_t)size;
    return count / chunk + (count % chunk != 0);
}

struct partition partition_part(size_t count, int size, size_t part, size_t chunk, int rank)
{
    size_t whole = part * (size_t)size;
    size_t start = chunk * whole;
    if (count - start >= whole) {
        return (struct partition){start + (size_t)rank * part, part};
    }
    size_t length = count - start;
    size_t per = (length + (size_t)size - 1) / (size_t)size;
    per = size_min(part, (per + PARTITION_GRAIN - 1) / PARTITION_GRAIN * PARTITION_GRAIN);
    size_t first = size_min((size_t)rank * per, length);
    size_t end = rank == size - 1 ? length : size_min(first + per, length);
    return (struct partition){start + first, end - first};
}
