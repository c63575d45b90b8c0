/* Finds slow members, keeps them for the status file and reports them. See internal.h. */
#include "coordinator/server/internal.h"

struct slow_list {
    struct server *server;
    struct server_member *members[SLOW_COMPARED_MAX];
};

static void say_slow(void *data, size_t index)
{
    const struct slow_list *list = data;
    const struct server_member *member = list->members[index];
    struct server *s = list->server;
    if (s->report.progress) {
        report_say(&s->report,
                   "%s is slow: its computing takes %.1f times as long as the others', and each "
                   "step waits %.0f ms for it",
                   arbiter_name(s->arbiter, member->incarnation), member->slow.times,
                   member->slow.lag_ms);
    }
}

void server_update_slow(struct server *s)
{
    struct slow_list list = {.server = s};
    struct slow_worker *workers[SLOW_COMPARED_MAX];
    struct server_member *member;
    size_t count = 0;
    for (size_t at = 0;
         count < SLOW_COMPARED_MAX && (member = server_table_each(&s->members, &at));) {
        workers[count] = &member->slow;
        list.members[count++] = member;
    }
    slow_look(workers, count, arbiter_generation(s->arbiter), say_slow, &list);
    s->slow_count = 0;
    for (size_t i = 0; i < count && s->slow_count < SLOW_NAMED_MAX; i++) {
        if (list.members[i]->slow.named) {
            s->slow[s->slow_count].incarnation = list.members[i]->incarnation;
            s->slow[s->slow_count++].figures = list.members[i]->slow;
        }
    }
}
