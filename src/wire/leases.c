/* Messages of workers by leases. See codec.h. */
#include "wire/codec.h"

static void code_sums(struct coder *c, struct wire_sums *sums)
{
    void *list = (void *)sums->list;
    coder_array(c, &sums->count, sizeof *sums->list, sizeof *sums->list, &list);
    if (!c->writes) {
        sums->list = list;
    }
    if (sums->count > WIRE_SUMS_MAX) {
        coder_fail(c, "it has too many sums");
    }
    for (uint32_t i = 0; i < sums->count && !c->wrong; i++) {
        coder_u64(c, (uint64_t *)list + i);
    }
}

void code_enroll(struct coder *c, struct wire_message *m)
{
    struct wire_enroll *enroll = &m->enroll;
    code_dataset_fields(c, &enroll->dataset);
    coder_text(c, &enroll->sums);
    coder_text(c, &enroll->name);
    coder_bool(c, &enroll->again);
    code_ranges(c, &enroll->held);
    coder_bytes(c, enroll->address, sizeof enroll->address);
    if (enroll->sums.count > WIRE_SUM_NAMES_MAX) {
        coder_fail(c, "the names of its sums are too long");
    }
}

void code_fetch(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->fetch.records);
    if (m->fetch.records == 0) {
        coder_fail(c, "it asks for no records");
    }
}

void code_done(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->done.sequence);
    code_ranges(c, &m->done.done);
    code_ranges(c, &m->done.failed);
    code_sums(c, &m->done.sums);
}

void code_leased(struct coder *c, struct wire_message *m)
{
    coder_bool(c, &m->leased.ended);
    coder_bool(c, &m->leased.all);
    coder_u64(c, &m->leased.sequence);
    code_ranges(c, &m->leased.ranges);
    code_sums(c, &m->leased.sums);
    coder_u64(c, &m->leased.left_out);
}

void code_receipt(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->receipt.sequence);
}

void code_to_do(struct coder *c, struct wire_message *m)
{
    coder_bool(c, &m->to_do.begin);
    coder_u32(c, &m->to_do.epoch);
    code_ranges(c, &m->to_do.ranges);
    code_ranges(c, &m->to_do.held);
}
