/* elasticdl zoo init, build and push. */
#include "cli/command/verbs.h"

#include "base/text.h"
#include "cli/elasticdl/zoo.h"

#include <string.h>

/* Checks the options: --image is for `build`, all others are for `init`. */
static int check_options(struct cli *cli, const char *what)
{
    bool init = strcmp(what, "init") == 0;
    for (size_t i = 0; i < cli->args.given_count; i++) {
        const char *name = cli->args.given[i].option->name;
        bool of_build = strcmp(name, "image") == 0;
        if (of_build ? strcmp(what, "build") != 0 : !init) {
            return muster_fail(&cli->err, MUSTER_EINVAL, "zoo %s: --%s goes with zoo %s", what,
                               name, of_build ? "build" : "init");
        }
    }
    return 0;
}

int elasticdl_zoo(struct cli *cli)
{
    static const char *const verbs[] = {"init", "build", "push"};
    const char *what = cli->args.operands[0] ? cli->args.operands[0] : "";
    size_t verb = 0;
    while (verb < 3 && strcmp(what, verbs[verb]) != 0) {
        verb++;
    }
    if (verb == 3) {
        const char *near = text_nearest(what, verbs, 3);
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "zoo: must be zoo init, zoo build PATH or zoo push IMAGE%s%s",
                           near ? "; did you mean " : "", near ? near : "");
    }
    size_t operands = verb == 0 ? 1 : 2;
    int r = check_options(cli, what);
    r = r < 0 ? r : cli_expect_operands(cli, operands, operands);
    if (r < 0) {
        return r;
    }
    const char *word = cli->args.operands[1];
    const char *image = args_value(&cli->args, "image");
    if (verb == 1 && !image) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "zoo build: --image is required: its name");
    }
    return verb == 0   ? zoo_init(cli)
           : verb == 1 ? zoo_build(cli, word, image)
                       : zoo_push(cli, word);
}
