/* See shell_variables.h. */
#include "job/shell_variables.h"

#include <stddef.h>
#include <string.h>

/* Sources for launchers: torch.distributed.elastic's agent, Open MPI (PRRTE), MPICH's Hydra, Intel
 * MPI, Slurm, Flux, PALS, JSM. For muster: control/content/environment.c,
 * daemon/machine/launch.c. */
const struct shell_variable shell_variables[] = {
    {"PATH", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"HOME", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"USER", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"LOGNAME", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"SHELL", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"LANG", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"LANGUAGE", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"LC_*", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"TZ", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"TMPDIR", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"TERM", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"LD_LIBRARY_PATH", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"PYTHONPATH", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"PYTHONHOME", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"PYTHONUSERBASE", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"PYENV_*", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"VIRTUAL_ENV", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"CONDA_*", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"MAMBA_*", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"CUDA_HOME", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"CUDA_PATH", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"CUDA_VISIBLE_DEVICES", VARIABLE_LISTED},
    {"XDG_*", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"HF_HOME", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"TORCH_HOME", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"SSL_CERT_FILE", VARIABLE_LISTED | VARIABLE_LOCAL},
    {"SSL_CERT_DIR", VARIABLE_LISTED | VARIABLE_LOCAL},

    {"RANK", VARIABLE_LAUNCHER | VARIABLE_OURS | VARIABLE_OPERATOR},
    {"WORLD_SIZE", VARIABLE_LAUNCHER | VARIABLE_OURS | VARIABLE_OPERATOR},
    {"MASTER_ADDR", VARIABLE_LAUNCHER | VARIABLE_OURS | VARIABLE_OPERATOR},
    {"MASTER_PORT", VARIABLE_LAUNCHER | VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_MASTER_ADDR", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_MASTER_PORT", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_NODE_RANK", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_NNODES", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_NPROC_PER_NODE", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_RDZV_*", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_MAX_RESTARTS", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PET_STANDALONE", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"TORCHELASTIC_RESTART_COUNT", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"TORCHELASTIC_MAX_RESTARTS", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"MUSTER_RESTART_COUNT", VARIABLE_OURS | VARIABLE_OPERATOR},
    {"PYTHONUNBUFFERED", VARIABLE_OPERATOR},
    {"MUSTER_ATTEMPT", VARIABLE_OURS},
    {"MUSTER_JOB", VARIABLE_OURS},
    {"MUSTER_JOB_UID", VARIABLE_OURS},
    {"MUSTER_POD", VARIABLE_OURS},
    {"LOCAL_RANK", VARIABLE_LAUNCHER},
    {"LOCAL_WORLD_SIZE", VARIABLE_LAUNCHER},
    {"GROUP_RANK", VARIABLE_LAUNCHER},
    {"GROUP_WORLD_SIZE", VARIABLE_LAUNCHER},
    {"ROLE_RANK", VARIABLE_LAUNCHER},
    {"ROLE_NAME", VARIABLE_LAUNCHER},
    {"ROLE_WORLD_SIZE", VARIABLE_LAUNCHER},
    {"NODE_RANK", VARIABLE_LAUNCHER},
    {"TORCHELASTIC_*", VARIABLE_LAUNCHER},
    {"PET_*", VARIABLE_LAUNCHER},
    {"OMPI_*", VARIABLE_LAUNCHER},
    {"PMIX_*", VARIABLE_LAUNCHER},
    {"PRTE_*", VARIABLE_LAUNCHER},
    {"PMI_*", VARIABLE_LAUNCHER},
    {"HYDI_*", VARIABLE_LAUNCHER},
    {"HYDRA_*", VARIABLE_LAUNCHER},
    {"MPI_LOCALRANKID", VARIABLE_LAUNCHER},
    {"MPI_LOCALNRANKS", VARIABLE_LAUNCHER},
    {"MV2_COMM_WORLD_*", VARIABLE_LAUNCHER},
    {"SLURM_*", VARIABLE_LAUNCHER},
    {"FLUX_*", VARIABLE_LAUNCHER},
    {"PALS_*", VARIABLE_LAUNCHER},
    {"JSM_*", VARIABLE_LAUNCHER},
    {"MUSTER_*", VARIABLE_LAUNCHER},

    {"PWD", VARIABLE_LOCAL},
    {"OLDPWD", VARIABLE_LOCAL},
    {"HOSTNAME", VARIABLE_LOCAL},
    {"SHLVL", VARIABLE_LOCAL},
    {"_", VARIABLE_LOCAL},
    {"LD_*", VARIABLE_LOCAL},
    {"PYTHON*", VARIABLE_LOCAL},
    {"DBUS_*", VARIABLE_LOCAL},
    {"SSH_*", VARIABLE_LOCAL},
    {"CONTAINER*", VARIABLE_LOCAL},
};
const size_t shell_variable_count = sizeof shell_variables / sizeof shell_variables[0];

static bool fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*') {
        return strlen(name) >= n && strncmp(pattern, name, n - 1) == 0;
    }
    return strcmp(pattern, name) == 0;
}

bool shell_variable_is(enum shell_variable_kind kind, const char *name)
{
    for (size_t i = 0; i < shell_variable_count; i++) {
        if ((shell_variables[i].kinds & kind) && fits(shell_variables[i].pattern, name)) {
            return true;
        }
    }
    return false;
}

json_t *shell_variables_capture(char *const *environment)
{
    json_t *captured = json_object();
    for (char *const *entry = environment; captured && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        char name[256];
        size_t length = equals ? (size_t)(equals - *entry) : sizeof name;
        if (length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            if (shell_variable_is(VARIABLE_LISTED, name)) {
                json_object_set_new(captured, name, json_string(equals + 1));
            }
        }
    }
    return captured;
}
