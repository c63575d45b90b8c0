/* See torchrun.h. */
#include "cli/command/torchrun.h"

#include "base/buf.h"
#include "base/shell_words.h"
#include "base/text.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES_MAX = 1 << 16 };

#define RENDEZVOUS                                                                                 \
    "muster chooses MASTER_ADDR and MASTER_PORT and gives them to every rank; leave it out"
#define ONE_MACHINE "all ranks run on this machine; leave it out"
#define LOGS                                                                                       \
    "the output of every rank is shown with its rank and kept (muster logs JOB; --results DIR "    \
    "copies it); leave it out"
#define WORDS "write the command as it is behind --: muster run -n N -- python3 -m MODULE"

static const struct {
    const char *name;
    char letter;
    const char *text;
} options[] = {
    {"nnodes", 0, "torchrun's --nnodes: " ONE_MACHINE},
    {"node-rank", 0, "torchrun's --node-rank: " ONE_MACHINE},
    {"standalone", 0, "torchrun's --standalone: " RENDEZVOUS},
    {"master-addr", 0, "torchrun's --master-addr: " RENDEZVOUS},
    {"master-port", 0, "torchrun's --master-port: " RENDEZVOUS},
    {"local-addr", 0, "torchrun's --local-addr: " RENDEZVOUS},
    {"rdzv-backend", 0, "torchrun's --rdzv-backend: " RENDEZVOUS},
    {"rdzv-endpoint", 0, "torchrun's --rdzv-endpoint: " RENDEZVOUS},
    {"rdzv-id", 0, "torchrun's --rdzv-id: " RENDEZVOUS},
    {"rdzv-conf", 0, "torchrun's --rdzv-conf: " RENDEZVOUS},
    {"monitor-interval", 0,
     "torchrun's --monitor-interval: muster sees the end of a rank at once; leave it out"},
    {"start-method", 0,
     "torchrun's --start-method: every rank is a process of its own; leave it out"},
    {"role", 0, "torchrun's --role: there is one role; leave it out (--name names the job)"},
    {"log-dir", 0, "torchrun's --log-dir: " LOGS},
    {"redirects", 0, "torchrun's --redirects: " LOGS},
    {"tee", 't', "torchrun's --tee: " LOGS},
    {"local-ranks-filter", 0, "torchrun's --local-ranks-filter: " LOGS},
    {"module", 'm', "torchrun's --module: " WORDS},
    {"no-python", 0, "torchrun's --no-python: " WORDS},
    {"run-path", 0, "torchrun's --run-path: " WORDS},
    {"np", 0, "mpirun's --np: the number of ranks is -n N"},
    {"host", 'H', "mpirun's --host: " ONE_MACHINE},
    {"hostfile", 0, "mpirun's --hostfile: " ONE_MACHINE},
    {"oversubscribe", 0,
     "mpirun's --oversubscribe: ranks may outnumber the processors in any case; leave it out"},
    {"allow-run-as-root", 0, "mpirun's --allow-run-as-root: root may run jobs; leave it out"},
    {"bind-to", 0, "mpirun's --bind-to: ranks are not bound; --cpu N bounds what each uses"},
    {"map-by", 0, "mpirun's --map-by: ranks are not bound; --cpu N bounds what each uses"},
    {NULL, 'x', "mpirun's -x: a variable of every rank is -e NAME=VALUE"},
};

const char *torchrun_option(const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].name && strcmp(options[i].name, name) == 0) {
            return options[i].text;
        }
    }
    return NULL;
}

const char *torchrun_letter(char letter)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].letter == letter) {
            return options[i].text;
        }
    }
    return NULL;
}

bool torchrun_is_script(const char *word)
{
    return text_ends_with(word, ".py") || text_ends_with(word, ".sh");
}

bool torchrun_is_launcher(const char *word)
{
    static const char *const names[] = {"python",    "python3", "torchrun", "mpirun", "mpiexec",
                                        "deepspeed", "bash",    "sh",       "env"};
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    return strncmp(name, "python3.", strlen("python3.")) == 0 ||
           text_is_any_of(name, names, sizeof names / sizeof names[0]);
}

void torchrun_quote(const char *word, char *ret, unsigned ret_bytes)
{
    struct buf quoted;
    buf_init(&quoted, WORD_BYTES_MAX);
    shell_quote(word, &quoted);
    snprintf(ret, ret_bytes, "%s", buf_str(&quoted));
    buf_done(&quoted);
}

void torchrun_command(const char *word, char *ret, unsigned ret_bytes)
{
    char quoted[1024];
    torchrun_quote(word, quoted, sizeof quoted);
    const char *program = text_ends_with(word, ".py")   ? "python3 "
                          : text_ends_with(word, ".sh") ? "sh "
                                                        : "";
    snprintf(ret, ret_bytes, "%s%s", program, quoted);
}
