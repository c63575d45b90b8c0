/* Which function codes which message; the table of all is in codec.c.
 *
 * Internal to src/wire. Layer: pure.
 */
#pragma once

#include "wire/coder.h"

void code_ranges(struct coder *c, struct wire_ranges *ranges);
void code_dataset_fields(struct coder *c, struct wire_dataset *dataset);

/* ---- Members, generations and steps (messages.c) ---- */

void code_hello(struct coder *c, struct wire_message *m);
void code_join(struct coder *c, struct wire_message *m);
void code_leave(struct coder *c, struct wire_message *m);
void code_report(struct coder *c, struct wire_message *m);
void code_commits(struct coder *c, struct wire_message *m);
void code_ask(struct coder *c, struct wire_message *m);
void code_progress(struct coder *c, struct wire_message *m);
void code_checkpoint(struct coder *c, struct wire_message *m);
void code_pass(struct coder *c, struct wire_message *m);
void code_fail(struct coder *c, struct wire_message *m);
void code_healed(struct coder *c, struct wire_message *m);
void code_silent(struct coder *c, struct wire_message *m);
void code_welcome(struct coder *c, struct wire_message *m);
void code_refused(struct coder *c, struct wire_message *m);
void code_open(struct coder *c, struct wire_message *m);
void code_close(struct coder *c, struct wire_message *m);
void code_ack(struct coder *c, struct wire_message *m);
void code_grant(struct coder *c, struct wire_message *m);
void code_expelled(struct coder *c, struct wire_message *m);
void code_dataset(struct coder *c, struct wire_message *m);
void code_checkpoint_failed(struct coder *c, struct wire_message *m);

/* ---- Leases (leases.c) ---- */

void code_enroll(struct coder *c, struct wire_message *m);
void code_fetch(struct coder *c, struct wire_message *m);
void code_done(struct coder *c, struct wire_message *m);
void code_leased(struct coder *c, struct wire_message *m);
void code_receipt(struct coder *c, struct wire_message *m);
void code_to_do(struct coder *c, struct wire_message *m);
