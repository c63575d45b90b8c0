/* Takes the place of libFuzzer where it is not linked: runs a fuzzer on the empty input, and on
 * each file of the given folder, once.
 *
 * So each build compiles the fuzzers, and an input that was a fault once is a test from then on. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* The input has a block of its own size, so that a sanitizer sees a read behind its end. */
static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fail(path);
    }
    long size = ftell(file);
    rewind(file);
    uint8_t *data = size < 0 ? NULL : malloc((size_t)size);
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) {
        fail(path);
    }
    fclose(file);
    (void)printf("%s\n", path);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* names the input that ends this process */
    (void)LLVMFuzzerTestOneInput((const uint8_t[1]){0}, 0);
    if (argc < 2) {
        return EXIT_SUCCESS;
    }
    struct dirent **inputs;
    int count = scandir(argv[1], &inputs, is_input, alphasort);
    if (count < 0) {
        fail(argv[1]);
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], inputs[i]->d_name);
        replay(path);
        free(inputs[i]);
    }
    free(inputs);
    return EXIT_SUCCESS;
}
