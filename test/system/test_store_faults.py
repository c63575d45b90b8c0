"""An object that the store cannot read is not taken for a missing one: a disk that fails for a moment ends nothing that runs."""
import subprocess

from conftest import Api, job, shell, wait_for

# Fails the store's reads of one pod from the first commit after FAULT appears, until FAULT is gone.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *sqlite3_sql(void *);

static int armed;
static void *reads_pod;

static int faulty(void) { return access(getenv("TEST_FAULT"), F_OK) == 0; }

int sqlite3_bind_text(void *statement, int at, const char *text, int bytes, void (*free_text)(void *))
{
    int (*real)(void *, int, const char *, int, void (*)(void *)) = dlsym(RTLD_NEXT, "sqlite3_bind_text");
    if (at == 1 && text) {
        reads_pod = strncmp(text, "pods", 5) == 0 ? statement : NULL;
    }
    return real(statement, at, text, bytes, free_text);
}

int sqlite3_step(void *statement)
{
    int (*real)(void *) = dlsym(RTLD_NEXT, "sqlite3_step");
    const char *sql = sqlite3_sql(statement);
    if (!faulty()) {
        armed = 0;
    } else if (strncasecmp(sql, "COMMIT", 6) == 0) {
        armed = 1;
    } else if (armed && statement == reads_pod && strncmp(sql, "SELECT id, object", 17) == 0) {
        close(creat(getenv("TEST_HIT"), 0600));
        return 10; /* SQLITE_IOERR */
    }
    return real(statement);
}
"""


def test_ranks_outlive_a_store_that_cannot_be_read(muster):
    source, shim, fault, hit = (muster.folder / name for name in ('shim.c', 'shim.so', 'fault', 'hit'))
    source.write_text(SHIM)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source, '-ldl'], check=True)
    muster.run('up', env={'LD_PRELOAD': str(shim), 'TEST_FAULT': str(fault), 'TEST_HIT': str(hit)})
    go = muster.work / 'go'
    path = muster.write('job.yaml', job('healthy', shell(f'until [ -e {go} ]; do echo beat; sleep 0.05; done')))
    muster.run('create', path)

    def beats():
        return muster.run('logs', 'healthy', code=None).stdout.count('beat')

    wait_for(beats, 'the rank is up')
    label = {'metadata': {'labels': {'looked': 'at'}}}
    pod = '/api/v1/namespaces/default/pods/healthy-master-0'
    uid = muster.get('pod', 'healthy-master-0')['metadata']['uid']
    fault.touch()
    try:
        assert Api(muster, start=False).call('PATCH', pod, label, 'application/merge-patch+json')[0] == 200
        wait_for(hit.exists, 'a read that failed')
    finally:
        fault.unlink()
    enough = beats() + 40
    wait_for(lambda: beats() >= enough, 'the rank runs on')
    go.touch()
    muster.wait_condition('healthy', 'Succeeded')
    assert muster.get('pod', 'healthy-master-0')['metadata']['uid'] == uid
