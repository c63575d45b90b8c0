/* Finds checkpoints in the output of a training: paths that end in .pt, .pth, .ckpt, .safetensors
 * or .bin, or in a folder checkpoint-N.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CHECKPOINT_PATH_BYTES = 4096 };

/* Whether the last part of the path is a checkpoint's name. */
bool checkpoint_is_name(const char *path);

/* Finds the next path in the text that may be a checkpoint, and moves *at behind it. In quotes a
 * path may have spaces; of NAME=PATH the PATH is found, too; a path without quotes is taken as it
 * is. */
bool checkpoint_next(const char **at, const char *end, char ret[CHECKPOINT_PATH_BYTES]);
