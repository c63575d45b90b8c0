/* See submit.h. */
#include "job/submit.h"

#include <stddef.h>
#include <string.h>

/* Source for launchers: torch.distributed.elastic's agent, Open MPI (PRRTE), MPICH's Hydra, Intel
 * MPI, Slurm, Flux, PALS, JSM. For us: control/environment.c, daemon/machine/launch.c. */
const struct submit_rule submit_rules[] = {
    {"PATH", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"HOME", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"USER", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"LOGNAME", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"SHELL", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"LANG", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"LANGUAGE", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"LC_*", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"TZ", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"TMPDIR", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"TERM", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"LD_LIBRARY_PATH", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"PYTHONPATH", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"PYTHONHOME", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"PYTHONUSERBASE", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"PYENV_*", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"VIRTUAL_ENV", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"CONDA_*", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"MAMBA_*", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"CUDA_HOME", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"CUDA_PATH", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"CUDA_VISIBLE_DEVICES", SUBMIT_LISTED},
    {"XDG_*", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"HF_HOME", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"TORCH_HOME", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"SSL_CERT_FILE", SUBMIT_LISTED | SUBMIT_LOCAL},
    {"SSL_CERT_DIR", SUBMIT_LISTED | SUBMIT_LOCAL},

    {"RANK", SUBMIT_LAUNCHER | SUBMIT_OURS},
    {"WORLD_SIZE", SUBMIT_LAUNCHER | SUBMIT_OURS},
    {"MASTER_ADDR", SUBMIT_LAUNCHER | SUBMIT_OURS},
    {"MASTER_PORT", SUBMIT_LAUNCHER | SUBMIT_OURS},
    {"PET_MASTER_ADDR", SUBMIT_OURS},
    {"PET_MASTER_PORT", SUBMIT_OURS},
    {"PET_NODE_RANK", SUBMIT_OURS},
    {"PET_NNODES", SUBMIT_OURS},
    {"PET_NPROC_PER_NODE", SUBMIT_OURS},
    {"PET_RDZV_*", SUBMIT_OURS},
    {"PET_MAX_RESTARTS", SUBMIT_OURS},
    {"PET_STANDALONE", SUBMIT_OURS},
    {"MUSTER_ATTEMPT", SUBMIT_OURS},
    {"MUSTER_JOB", SUBMIT_OURS},
    {"MUSTER_JOB_UID", SUBMIT_OURS},
    {"MUSTER_POD", SUBMIT_OURS},
    {"LOCAL_RANK", SUBMIT_LAUNCHER},
    {"LOCAL_WORLD_SIZE", SUBMIT_LAUNCHER},
    {"GROUP_RANK", SUBMIT_LAUNCHER},
    {"GROUP_WORLD_SIZE", SUBMIT_LAUNCHER},
    {"ROLE_RANK", SUBMIT_LAUNCHER},
    {"ROLE_NAME", SUBMIT_LAUNCHER},
    {"ROLE_WORLD_SIZE", SUBMIT_LAUNCHER},
    {"NODE_RANK", SUBMIT_LAUNCHER},
    {"TORCHELASTIC_*", SUBMIT_LAUNCHER},
    {"PET_*", SUBMIT_LAUNCHER},
    {"OMPI_*", SUBMIT_LAUNCHER},
    {"PMIX_*", SUBMIT_LAUNCHER},
    {"PRTE_*", SUBMIT_LAUNCHER},
    {"PMI_*", SUBMIT_LAUNCHER},
    {"HYDI_*", SUBMIT_LAUNCHER},
    {"HYDRA_*", SUBMIT_LAUNCHER},
    {"MPI_LOCALRANKID", SUBMIT_LAUNCHER},
    {"MPI_LOCALNRANKS", SUBMIT_LAUNCHER},
    {"MV2_COMM_WORLD_*", SUBMIT_LAUNCHER},
    {"SLURM_*", SUBMIT_LAUNCHER},
    {"FLUX_*", SUBMIT_LAUNCHER},
    {"PALS_*", SUBMIT_LAUNCHER},
    {"JSM_*", SUBMIT_LAUNCHER},
    {"MUSTER_*", SUBMIT_LAUNCHER},

    {"PWD", SUBMIT_LOCAL},
    {"OLDPWD", SUBMIT_LOCAL},
    {"HOSTNAME", SUBMIT_LOCAL},
    {"SHLVL", SUBMIT_LOCAL},
    {"_", SUBMIT_LOCAL},
    {"LD_*", SUBMIT_LOCAL},
    {"PYTHON*", SUBMIT_LOCAL},
    {"DBUS_*", SUBMIT_LOCAL},
    {"SSH_*", SUBMIT_LOCAL},
    {"CONTAINER*", SUBMIT_LOCAL},
};
const size_t submit_rule_count = sizeof submit_rules / sizeof submit_rules[0];

static bool fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*') {
        return strlen(name) >= n && strncmp(pattern, name, n - 1) == 0;
    }
    return strcmp(pattern, name) == 0;
}

bool submit_is(enum submit_kind kind, const char *name)
{
    for (size_t i = 0; i < submit_rule_count; i++) {
        if ((submit_rules[i].kinds & kind) && fits(submit_rules[i].pattern, name)) {
            return true;
        }
    }
    return false;
}

json_t *submit_capture(char *const *environment)
{
    json_t *captured = json_object();
    for (char *const *entry = environment; captured && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        char name[256];
        size_t length = equals ? (size_t)(equals - *entry) : sizeof name;
        if (length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            if (submit_is(SUBMIT_LISTED, name)) {
                json_object_set_new(captured, name, json_string(equals + 1));
            }
        }
    }
    return captured;
}
