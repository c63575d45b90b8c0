/* Messages that are described in several files. See codec.c.
 *
 * Internal to src/wire. Layer: pure.
 */
#pragma once

#include "wire/coder.h"

void code_ranges(struct coder *c, struct wire_ranges *ranges);
void code_dataset_fields(struct coder *c, struct wire_dataset *dataset);

/* ---- Leases (leases.c) ---- */

void code_enroll(struct coder *c, struct wire_message *m);
void code_fetch(struct coder *c, struct wire_message *m);
void code_done(struct coder *c, struct wire_message *m);
void code_leased(struct coder *c, struct wire_message *m);
void code_receipt(struct coder *c, struct wire_message *m);
void code_to_do(struct coder *c, struct wire_message *m);
