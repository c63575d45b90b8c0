/* See aside.h. */
#include "coordinator/arbiter/aside.h"

#include "coordinator/arbiter/entry.h"

/* The numbers are data set, epoch, record and deaths. */
enum { NUMBERS = 4, NUMBER_BYTES = 8 };

bool asides_have(const struct asides *asides, uint32_t dataset, uint64_t record)
{
    for (uint32_t i = 0; i < asides->count; i++) {
        if (asides->list[i].dataset == dataset && asides->list[i].record == record) {
            return true;
        }
    }
    return false;
}

bool asides_add(struct asides *asides, const struct aside *aside)
{
    bool fits =
        asides->count < WIRE_ASIDE_MAX && !asides_have(asides, aside->dataset, aside->record);
    if (fits) {
        asides->list[asides->count++] = *aside;
    }
    return fits;
}

uint32_t asides_list(const struct asides *asides, uint32_t count, struct shard_range *ret)
{
    uint32_t listed = count < asides->count ? count : asides->count;
    for (uint32_t i = 0; i < listed; i++) {
        const struct aside *each = &asides->list[i];
        ret[i] = (struct shard_range){.dataset = each->dataset, .first = each->record, .count = 1};
    }
    return listed;
}

void asides_write(const struct asides *asides, uint32_t i, struct buf *ret)
{
    const struct aside *aside = &asides->list[i];
    entry_write_number(aside->dataset, ret);
    entry_write_number(aside->epoch, ret);
    entry_write_number(aside->record, ret);
    entry_write_number(aside->deaths, ret);
}

int asides_read(struct asides *asides, const uint8_t *bytes, size_t count, struct muster_err *err)
{
    uint64_t numbers[NUMBERS] = {0};
    for (size_t i = 0; i < NUMBERS && count == NUMBERS * NUMBER_BYTES; i++) {
        numbers[i] = entry_read_number(bytes + i * NUMBER_BYTES);
    }
    const struct aside aside = {.dataset = (uint32_t)numbers[0],
                                .epoch = (uint32_t)numbers[1],
                                .record = numbers[2],
                                .deaths = (uint32_t)numbers[3]};
    bool good = numbers[0] < SHARD_DATASETS_MAX && numbers[1] < UINT32_MAX &&
                numbers[2] < SHARD_SIZE_MAX && numbers[3] > 0 && numbers[3] <= UINT32_MAX;
    if (!good || !asides_add(asides, &aside)) {
        return muster_fail(err, MUSTER_EDATA, "a record of the journal sets no record aside");
    }
    return 0;
}
