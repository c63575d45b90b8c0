/* See zoo.h. */
#include "cli/elasticdl/zoo.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 10, WORDS_MAX = 8, NOT_FOUND = 127 };

/* The example of the tutorial: docs/elasticdl.md. */
static const char example[] =
    "\"\"\"A linear model, trained by however many workers there are.\n"
    "\n"
    "    elasticdl train --job_name=example --num_workers=2 --job_command='python -m %s.example'\n"
    "\"\"\"\n"
    "import sys\n"
    "\n"
    "import torch\n"
    "from elasticai_api.common.data_shard_service import RecordIndexService\n"
    "from elasticai_api.pytorch.controller import PyTorchAllReduceController\n"
    "from torch.utils.data import DataLoader, Dataset\n"
    "\n"
    "RECORDS, BATCH = 6400, 64\n"
    "\n"
    "\n"
    "class Points(Dataset):\n"
    "    \"\"\"Record i; which one comes next the coordinator says.\"\"\"\n"
    "\n"
    "    def __init__(self, service):\n"
    "        self.service = service\n"
    "        self.x = torch.randn(RECORDS, 3, generator=torch.Generator().manual_seed(1))\n"
    "        self.y = self.x @ torch.tensor([1.0, -2.0, 3.0])\n"
    "\n"
    "    def __len__(self):\n"
    "        return sys.maxsize\n"
    "\n"
    "    def __getitem__(self, _):\n"
    "        i = self.service.fetch_record_index()\n"
    "        return self.x[i], self.y[i]\n"
    "\n"
    "\n"
    "def train_one_batch(model, optimizer, x, y):\n"
    "    optimizer.zero_grad()\n"
    "    loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    return loss\n"
    "\n"
    "\n"
    "if __name__ == '__main__':\n"
    "    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=2, "
    "shuffle=True,\n"
    "                                 dataset_name='points')\n"
    "    model = torch.nn.Linear(3, 1)\n"
    "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "    controller = PyTorchAllReduceController(service)\n"
    "    controller.set_broadcast_model(model)\n"
    "    controller.set_broadcast_optimizer(optimizer)\n"
    "    elastic_train = controller.elastic_run(train_one_batch)\n"
    "    with controller.scope():\n"
    "        for x, y in DataLoader(Points(service), batch_size=BATCH):\n"
    "            loss = elastic_train(model, optimizer, x, y)\n"
    "    print('weights', model.weight.data.tolist())\n";

/* --- init --- */

/* Checks that each value is one word of a Dockerfile, which does not end its line. */
static int check_words(struct cli *cli)
{
    static const char *const flags[] = {"base_image", "model_zoo", "extra_pypi_index",
                                        "local_pkg_dir", "cluster_spec"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const char *value = args_text(&cli->args, flags[i]);
        for (const char *c = value; c && *c; c++) {
            if ((unsigned char)*c <= ' ' || strchr("\\\"'$`", *c)) {
                return muster_fail(&cli->err, MUSTER_EINVAL,
                                   "zoo init: --%s must be one word without quotes, $ and \\",
                                   flags[i]);
            }
        }
        bool folder = i == 1 || i == 3;
        if (folder && value && (*value == '/' || strncmp(value, "..", 2) == 0)) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "zoo init: --%s must lie below this folder, of which the image is "
                               "built",
                               flags[i]);
        }
    }
    return 0;
}

static void add_packages(const struct cli *cli, struct buf *out)
{
    const char *folder = args_text(&cli->args, "local_pkg_dir");
    const char *index = args_text(&cli->args, "extra_pypi_index");
    const char *extra = index ? " --extra-index-url=" : "";
    index = index ? index : "";
    if (folder) { /* first, because ElasticDL has an elasticdl_api of its own, too */
        buf_format(out, "COPY %s /packages\nRUN pip install%s%s /packages/*.whl\n", folder, extra,
                   index);
    }
    buf_format(out, "RUN pip install%s%s torch\n", extra, index);
}

/* Copies the file here. If a file of that name exists here, it must have the same content. */
static int copy_here(struct cli *cli, const char *path, const char *name)
{
    muster_auto(free) char *text = NULL;
    muster_auto(free) char *there = NULL;
    size_t bytes = 0, there_bytes = 0;
    int r = file_read(path, FILE_BYTES_MAX, &text, &bytes, &cli->err);
    if (r < 0 || !file_exists(name)) {
        return r < 0 ? r : file_put(name, text, bytes, 0644, &cli->err);
    }
    r = file_read(name, FILE_BYTES_MAX, &there, &there_bytes, &cli->err);
    return r < 0 || (bytes == there_bytes && memcmp(text, there, bytes) == 0)
               ? r
               : muster_fail(&cli->err, MUSTER_EEXIST,
                             "zoo init: there is another %s here than --cluster_spec %s", name,
                             path);
}

/* Copies a file from elsewhere into this folder, as ElasticDL does, because an image is built from
 * this folder only. *ret is its path here, or NULL. */
static int bring_spec(struct cli *cli, const char **ret)
{
    const char *path = args_text(&cli->args, "cluster_spec");
    *ret = path;
    if (path && !file_exists(path)) {
        return muster_fail(&cli->err, MUSTER_ENOENT, "zoo init: there is no --cluster_spec %s",
                           path);
    }
    if (!path || (*path != '/' && strncmp(path, "../", 3) != 0)) {
        return 0;
    }
    *ret = strrchr(path, '/') + 1;
    return copy_here(cli, path, *ret);
}

static int write_dockerfile(struct cli *cli)
{
    struct buf out;
    const char *spec = NULL;
    int r = bring_spec(cli, &spec);
    if (r < 0) {
        return r;
    }
    buf_init(&out, FILE_BYTES_MAX);
    buf_format(&out, "FROM %s\n", args_value(&cli->args, "base_image"));
    add_packages(cli, &out);
    buf_format(&out, "COPY %s %s\n", args_value(&cli->args, "model_zoo"),
               args_value(&cli->args, "model_zoo"));
    if (spec) {
        buf_format(&out, "COPY %s /cluster_spec/\n", spec);
    }
    buf_text(&out, "ENV PYTHONUNBUFFERED=1\n");
    r = buf_failed(&out) ? err_no_memory(&cli->err)
                         : file_put("Dockerfile", out.data, out.used, 0644, &cli->err);
    buf_done(&out);
    return r;
}

static int write_example(struct cli *cli)
{
    const char *folder = args_value(&cli->args, "model_zoo");
    if (file_exists(folder)) {
        return 0;
    }
    muster_auto(free) char *module = strdup(folder);
    muster_auto(free) char *path = file_join(folder, "example.py");
    char *text = NULL;
    for (char *c = module; c && *c; c++) {
        *c = *c == '/' ? '.' : *c;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (!module || !path || asprintf(&text, example, module) < 0) {
#pragma GCC diagnostic pop
        return err_no_memory(&cli->err);
    }
    int r = file_mkdir(folder, 0777, &cli->err);
    r = r < 0 ? r : file_put(path, text, strlen(text), 0666, &cli->err);
    free(text);
    if (r == 0) {
        printf("%s: a model to begin with\n", path);
    }
    return r;
}

int zoo_init(struct cli *cli)
{
    int r = check_words(cli);
    if (r == 0 && file_exists("Dockerfile")) {
        r = muster_fail(&cli->err, MUSTER_EEXIST,
                        "zoo init: there is a Dockerfile here already; remove it, or go elsewhere");
    }
    r = r < 0 ? r : write_dockerfile(cli);
    r = r < 0 ? r : write_example(cli);
    if (r == 0) {
        printf("Dockerfile: elasticdl zoo build . --image=IMAGE builds it\n");
    }
    return r;
}

/* --- build, push --- */

static int call(struct cli *cli, const char *program, const char *const *words, bool *ret_found)
{
    const char *argv[WORDS_MAX] = {program};
    for (size_t i = 0; words[i] && i + 2 < WORDS_MAX; i++) {
        argv[i + 1] = words[i];
    }
    pid_t child = fork();
    if (child == 0) {
        execvp(program, (char *const *)(uintptr_t)argv);
        _exit(NOT_FOUND);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0) {
        return muster_fail(&cli->err, MUSTER_EOS, "cannot start %s: %s", program, strerror(errno));
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    *ret_found = code != NOT_FOUND;
    return code;
}

static int call_any(struct cli *cli, const char *const *words)
{
    static const char *const programs[] = {"docker", "podman"};
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        bool found = true;
        int r = call(cli, programs[i], words, &found);
        if (found) {
            return r;
        }
    }
    return muster_fail(&cli->err, MUSTER_ENOENT,
                       "zoo %s needs docker or podman, and neither is on PATH; a job of this "
                       "machine needs no image",
                       words[0]);
}

static int check_image(struct cli *cli, const char *image)
{
    return image && *image && *image != '-'
               ? 0
               : muster_fail(&cli->err, MUSTER_EINVAL, "zoo: '%s' is no name of an image",
                             image ? image : "");
}

int zoo_build(struct cli *cli, const char *folder, const char *image)
{
    muster_auto(free) char *dockerfile = file_join(folder, "Dockerfile");
    int r = dockerfile ? check_image(cli, image) : err_no_memory(&cli->err);
    if (r == 0 && !file_exists(dockerfile)) {
        r = muster_fail(&cli->err, MUSTER_ENOENT,
                        "zoo build: there is no %s; elasticdl zoo init writes one", dockerfile);
    }
    return r < 0 ? r
                 : call_any(cli, (const char *const[]){"build", "-t", image, "--", folder, NULL});
}

int zoo_push(struct cli *cli, const char *image)
{
    int r = check_image(cli, image);
    return r < 0 ? r : call_any(cli, (const char *const[]){"push", image, NULL});
}
