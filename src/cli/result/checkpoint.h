/* Finds checkpoints in the output of a training: paths that end in .pt, .pth, .ckpt, .safetensors
 * or .bin, or in a folder checkpoint-N.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CHECKPOINT_PATH_BYTES = 4096 };

/* Judges by the last part of the path. */
bool checkpoint_is_name(const char *path);

/* The next path in the text that may be a checkpoint; *at moves behind it. In quotes a path may
 * have spaces; of NAME=PATH the PATH comes, too, and a bare path comes as it stands. */
bool checkpoint_next(const char **at, const char *end, char ret[CHECKPOINT_PATH_BYTES]);
