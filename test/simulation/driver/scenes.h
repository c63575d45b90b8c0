/* Each function is one way in which a cluster misbehaves. It returns NULL, or what is wrong, as
 * static text.
 *
 * Tests only.
 */
#pragma once

#include "chaos.h"

const char *scene_calm(void);
const char *scene_slow_watches(void);
const char *scene_suspended(void);
const char *scene_lost_answers(void);
const char *scene_counted_once(void);
const char *scene_refused(void);
const char *scene_taken_name(void);
const char *scene_name_passed_on(void);
const char *scene_two_drivers(void);
const char *scene_lost_node(void);
const char *scene_node_back(void);
const char *scene_autoscaler(void);
const char *scene_gang(void);
const char *scene_unreadable(void);
