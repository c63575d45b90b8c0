/* muster deploy: the objects that a cluster needs so that muster runs there. */
#include "cli/command/verbs.h"

#include "base/buf.h"
#include "base/yaml/yaml.h"
#include "deploy/overlay.h"

#include <string.h>

enum { TEXT_BYTES_MAX = 16 << 20 };

static int print_yaml(const json_t *objects, struct muster_err *err)
{
    struct buf text;
    size_t i;
    json_t *object;
    buf_init(&text, TEXT_BYTES_MAX);
    json_array_foreach (objects, i, object) {
        muster_auto(free) char *one = yaml_print(object);
        buf_text(&text, i > 0 ? "---\n" : "");
        buf_text(&text, one ? one : "");
        if (!one || buf_failed(&text)) {
            buf_done(&text);
            return muster_fail(err, MUSTER_ENOMEM, "out of memory");
        }
    }
    int r = cli_print(buf_str(&text), err);
    buf_done(&text);
    return r;
}

static int print_json(const json_t *objects, struct muster_err *err)
{
    muster_auto(doc) json_t *list =
        json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", objects);
    return list ? cli_print_doc(list, "json", err)
                : muster_fail(err, MUSTER_ENOMEM, "out of memory");
}

int cli_deploy(struct cli *cli)
{
    muster_auto(doc) json_t *objects = NULL;
    struct overlay_choice choice = {.overlay = args_value(&cli->args, "overlay"),
                                    .namespace = args_value(&cli->args, "namespace"),
                                    .image = args_value(&cli->args, "image")};
    const char *format = args_value(&cli->args, "output");
    int r = cli_expect_operands(cli, 0, 0);
    if (r == 0 && !args_flag(&cli->args, "print")) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "deploy prints, and changes no cluster: muster deploy --print | kubectl "
                        "apply --server-side -f -");
    }
    r = r < 0 ? r : overlay_objects(&choice, &objects, &cli->err);
    if (r < 0) {
        return r;
    }
    return strcmp(format, "json") == 0 ? print_json(objects, &cli->err)
                                       : print_yaml(objects, &cli->err);
}
