/* Elastic jobs' arguments and results as Python values: options from keywords, passes and infos as
 * dicts. Layer: Python glue; see native.h.
 */
#include "native.h"

/* In the order in which the format reads them. */
static char *option_names[] = {"records",
                               "batch",
                               "epochs",
                               "micro_batches",
                               "dataset",
                               "seed",
                               "shuffle",
                               "coordinator",
                               "token",
                               "host",
                               "name",
                               "environment",
                               "extra_bytes",
                               "connect_ms",
                               "peer_ms",
                               "checkpoint",
                               "checkpoint_steps",
                               "checkpoint_seconds",
                               "checkpoint_keep",
                               "whole_passes",
                               "digest_steps",
                               "digest_skip",
                               "set_aside",
                               "micro_batches_per_worker",
                               NULL};

int native_elastic_options(PyObject *args, PyObject *kwargs, struct muster_elastic_options *o)
{
    unsigned long long records, seed = 0, environment = 0, extra_bytes = 0;
    unsigned int batch, epochs = 1, micro_batches = 0, shuffle = 0;
    long long connect_ms = o->connect_ms, peer_ms = o->peer_ms;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "KI|IIzKIzzzzKKLLzIIIIIIII", option_names, &records, &batch, &epochs,
            &micro_batches, &o->dataset, &seed, &shuffle, &o->coordinator, &o->token, &o->host,
            &o->name, &environment, &extra_bytes, &connect_ms, &peer_ms, &o->checkpoint,
            &o->checkpoint_steps, &o->checkpoint_seconds, &o->checkpoint_keep, &o->whole_passes,
            &o->digest_steps, &o->digest_skip, &o->set_aside, &o->micro_batches_per_worker)) {
        return -1;
    }
    o->records = records;
    o->batch = batch;
    o->epochs = epochs;
    o->micro_batches = micro_batches;
    o->seed = seed;
    o->shuffle = shuffle;
    o->environment = environment;
    o->extra_bytes = (size_t)extra_bytes;
    o->connect_ms = connect_ms;
    o->peer_ms = peer_ms;
    return 0;
}

static PyObject *list_of(const uint64_t *records, size_t num)
{
    PyObject *list = PyList_New((Py_ssize_t)num);
    for (size_t i = 0; list && i < num; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(records[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyObject *native_elastic_pass(const struct muster_elastic_pass *pass)
{
    PyObject *records = list_of(pass->records, pass->record_count);
    if (!records) {
        return NULL;
    }
    return Py_BuildValue(
        "{sKsKsIsIsNsdsKsisisIsIsI}", "version", (unsigned long long)pass->version, "epoch",
        (unsigned long long)pass->epoch, "micro_batch", (unsigned int)pass->micro_batch,
        "micro_batches", (unsigned int)pass->micro_batches, "records", records, "share",
        pass->share, "generation", (unsigned long long)pass->generation, "rank", pass->rank, "size",
        pass->size, "passes_left", (unsigned int)pass->passes_left, "micro_batch_records",
        (unsigned int)pass->micro_batch_records, "step_records", (unsigned int)pass->step_records);
}

PyObject *native_elastic_lists(const uint64_t *records, size_t num, const size_t *counts,
                               size_t passes)
{
    PyObject *lists = PyList_New(0);
    for (size_t i = 0, at = 0; lists && i < passes && counts[i] <= num - at; at += counts[i++]) {
        PyObject *list = list_of(records + at, counts[i]);
        if (!list || PyList_Append(lists, list) < 0) {
            Py_CLEAR(lists);
        }
        Py_XDECREF(list);
    }
    return lists;
}

PyObject *native_elastic_info(const struct muster_elastic_info *i)
{
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsLsLsisisOsOsKsKsKsKsi}", "generation", (unsigned long long)i->generation,
        "version", (unsigned long long)i->version, "epoch", (unsigned long long)i->epoch,
        "records_done", (unsigned long long)i->records_done, "records_all",
        (unsigned long long)i->records_all, "incarnation", (unsigned long long)i->incarnation,
        "recoveries", (unsigned long long)i->recoveries, "recovery_ns", (long long)i->recovery_ns,
        "commit_ns", (long long)i->commit_ns, "rank", i->rank, "size", i->size, "finished",
        i->finished ? Py_True : Py_False, "left", i->left ? Py_True : Py_False, "checkpoint",
        (unsigned long long)i->checkpoint, "restored", (unsigned long long)i->restored, "diverged",
        (unsigned long long)i->diverged, "diverged_version",
        (unsigned long long)i->diverged_version, "diverged_rank", i->diverged_rank);
}
