/* Decides what is to be deleted, made and waited for in the state that the rules have reached.
 *
 * Layer: pure.
 */
#pragma once

#include "control/rules.h"

void control_act(const struct control_step *step, enum control_state state,
                 struct control_effects *fx);
