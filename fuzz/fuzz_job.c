/* Hostile bytes as a job file: read, checked, printed, read again.
 *
 * Besides crashes and leaks it checks two invariants: the output of yaml_print is read back as the
 * same document, and an object in which no error was found can be read into struct job. */
#include "base/buf.h"
#include "invariant.h"
#include "job/check/check.h"
#include "job/file/file.h"
#include "job/job.h"

#include <string.h>

static void check_printing(const json_t *doc)
{
    char *text = yaml_print(doc);
    struct yaml_stream stream = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    invariant(text != NULL, "a document can be printed", "");
    if (yaml_load(text, strlen(text), &yaml_limits_default, &stream, &err) == 0) {
        invariant(stream.fault_count == 0 && stream.document_count == 1 &&
                      json_equal(stream.documents[0].doc, (json_t *)doc),
                  "what is printed reads back as the same", text);
        yaml_done(&stream);
    } else {
        invariant(err.code == MUSTER_ETOOBIG, "what is printed is within the limits", text);
    }
    free(text);
}

static void check_reading(json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    struct job job = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (kind && strcmp(kind, "PyTorchJob") == 0) {
        int r = job_read(object, &job, &err);
        invariant(r == 0, "what was checked can be read", err.text);
        invariant(job_total_replicas(&job) >= 1, "a job has a replica", "");
        job_done(&job);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_file file = {0};
    struct job_problems problems;
    struct muster_err err = MUSTER_ERR_INIT;
    struct buf out;
    if (libfyaml_leaks(data, size)) {
        return 0;
    }
    job_problems_init(&problems, 50);
    problems.verbose = size % 2 != 0;
    problems.advice = size % 3 != 0;
    buf_init(&out, 1 << 20);
    int r = job_file_read((const char *)data, size, &file, &problems, &err);
    invariant(r == 0 || r == MUSTER_ETOOBIG, "only limits end the reading", err.text);
    job_problems_print(&problems, "fuzz.yaml", &out);
    for (size_t i = 0; i < file.object_count; i++) {
        check_printing(file.objects[i]);
        if (problems.errors == 0) {
            check_reading(file.objects[i]);
        }
        struct job_problems again;
        job_problems_init(&again, 50);
        job_check(file.objects[i], NULL, &again);
        job_check_update(file.objects[i], file.objects[0], &again);
        job_problems_done(&again);
    }
    buf_done(&out);
    job_problems_done(&problems);
    job_file_done(&file);
    return 0;
}
