/* The bash completion of a tool: verbs, options, kinds, and the names of objects by
 * `muster get -o name`, which runs only if there is a store: a completion creates no state folder.
 */
#include "cli/command/commands.h"
#include "cli/command/help.h"

#include "base/text.h"
#include "kube/kube.h"

#include <string.h>

static void put_verbs(FILE *out)
{
    fprintf(out, "    local verbs='");
    for (size_t i = 0; i < cli_tool->count; i++) {
        fprintf(out, "%s%s", i ? " " : "", cli_tool->commands[i].name);
    }
    fprintf(out, "'\n");
}

/* Writes `kinds`, which are offered, and `known`, which also has the other names of each kind, as
 * the user may have typed one of them. */
static void put_kinds(FILE *out)
{
    fprintf(out, "    local kinds='");
    for (size_t i = 0; i < kube_resource_count; i++) {
        if (kube_resource_find(kube_resources[i].plural) == &kube_resources[i]) {
            fprintf(out, "%s%s", i ? " " : "", kube_resources[i].plural);
        }
    }
    fprintf(out, "'\n    local known=\"$kinds");
    for (size_t i = 0; i < kube_resource_count; i++) {
        fprintf(out, " %s %s", kube_resources[i].singular, kube_resources[i].aliases);
    }
    fprintf(out, "\"\n");
}

static void put_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, "    %s)\n        options='--help", command->name);
    for (const struct cli_item *o = NULL; (o = cli_next(command, o, CLI_ITEM_OPTION));) {
        fprintf(out, " --%s", o->name);
    }
    fprintf(out, "'\n        operands='%s'\n        ;;\n", command->completes);
}

static const char *const files[] = {"FILE", "PATH"}, *const folders[] = {"DIR", "FOLDER"};

/* Writes how an option's argument completes: to the words that it lists, to files, or to folders.
 */
static void put_argument(FILE *out, const struct cli_command *command, const struct cli_item *o)
{
    char letter[16] = "";
    if (o->letter) {
        snprintf(letter, sizeof letter, "|%s:-%c", command->name, o->letter);
    }
    fprintf(out, "    %s:--%s%s) ", command->name, o->name, letter);
    if (strchr(o->argument, '|')) {
        fprintf(out, "words='");
        for (const char *at = o->argument; *at; at++) {
            fputc(*at == '|' ? ' ' : *at, out);
            at += *at == '=' ? strcspn(at + 1, "|") : 0; /* the user chooses the text after = */
        }
        fprintf(out, "'");
    } else if (text_is_any_of(o->argument, files, 2)) {
        fprintf(out, "files=-f");
    } else if (text_is_any_of(o->argument, folders, 2)) {
        fprintf(out, "files=-d");
    } else {
        fprintf(out, "words=' '");
    }
    fprintf(out, " ;;\n");
}

static const char completion_head[] =
    "# bash completion for %1$s, made from its command table: %1$s help --completion\n"
    "_muster_names() { # the names of the objects of a kind; nothing where there is no store\n"
    "    local home=${MUSTER_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/muster}\n"
    "    [ ! -e \"$home/store.db\" ] || muster get \"$1\" -o name 2>/dev/null | sed 's|.*/||'\n"
    "}\n"
    "_%1$s() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local verb=${COMP_WORDS[1]} options='' operands='' words='' files=''\n"
    "    COMPREPLY=()\n";

static const char completion_tail[] =
    "    if [ -n \"$words\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "        return\n"
    "    elif [ -n \"$files\" ]; then\n"
    "        COMPREPLY=($(compgen \"$files\" -- \"$cur\"))\n"
    "        return\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    local kind='' word names=''\n"
    "    for word in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
    "        [[ \" $known \" == *\" $word \"* ]] && kind=$word\n"
    "    done\n"
    "    if [[ $operands == *file* && $operands != *kind* ]]; then\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "        return\n"
    "    elif [[ $operands == *kind* && $cur == */* ]]; then\n"
    "        kind=${cur%%%%/*}\n"
    "        names=$(_muster_names \"$kind\")\n"
    "        COMPREPLY=($(compgen -P \"$kind/\" -W \"$names\" -- \"${cur#*/}\"))\n"
    "        return\n"
    "    elif [[ $operands == *kind* && -n $kind ]]; then\n"
    "        names=$(_muster_names \"$kind\")\n"
    "    else\n"
    "        [[ $operands == *kind* ]] && names=$kinds\n"
    "        [[ $operands == *pod* ]] && names+=\" $(_muster_names pods)\"\n"
    "        [[ $operands == *job* ]] && names+=\" $(_muster_names jobs)\"\n"
    "        [[ $operands == *verb* ]] && names+=\" $verbs\"\n"
    "        [[ $operands == =* ]] && names=${operands#=}\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$names\" -- \"$cur\"))\n"
    "}\n"
    "complete -o filenames -F _%1$s %1$s\n";

void help_completion(FILE *out)
{
    fprintf(out, completion_head, cli_tool->name);
    put_verbs(out);
    put_kinds(out);
    fprintf(out, "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                 "        COMPREPLY=($(compgen -W \"$verbs --help --version\" -- \"$cur\"))\n"
                 "        return\n    fi\n    case $verb in\n");
    for (size_t i = 0; i < cli_tool->count; i++) {
        put_command(out, &cli_tool->commands[i]);
    }
    fprintf(out, "    esac\n    case $verb:$prev in\n");
    for (size_t i = 0; i < cli_tool->count; i++) {
        const struct cli_command *c = &cli_tool->commands[i];
        for (const struct cli_item *o = NULL; (o = cli_next(c, o, CLI_ITEM_OPTION));) {
            if (o->argument) {
                put_argument(out, c, o);
            }
        }
    }
    fprintf(out, "    esac\n");
    fprintf(out, completion_tail, cli_tool->name);
}
