"""The controller's loop never waits for the disk: another thread syncs, and removes folders."""
import subprocess

from conftest import Api, job, shell, wait_for

SECRETS = '/api/v1/namespaces/default/secrets'
# Records each sync, and each folder that is walked for its removal: the call, whether the first thread made it, and the file.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_controller(void)
{
    char words[64] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t count = file ? fread(words, 1, sizeof words - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    return count > 0 && strcmp(words + strlen(words) + 1, "daemon") == 0;
}

static void note(const char *call, const char *path)
{
    FILE *file = is_controller() ? fopen(getenv("TEST_NOTES"), "a") : NULL;
    if (file) {
        fprintf(file, "%s %s %s\n", call, gettid() == getpid() ? "loop" : "thread", path);
        fclose(file);
    }
}

static void note_fd(const char *call, int fd)
{
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(name, path, sizeof path - 1);
    path[count > 0 ? count : 0] = '\0';
    note(call, path);
}

#define SYNC(call)                                                                                                                                       \
    int call(int fd)                                                                                                                                     \
    {                                                                                                                                                    \
        int (*real)(int) = dlsym(RTLD_NEXT, #call);                                                                                                      \
        note_fd(#call, fd);                                                                                                                              \
        return real(fd);                                                                                                                                 \
    }

SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

int nftw(const char *path, __nftw_func_t visit, int fds, int flags)
{
    int (*real)(const char *, __nftw_func_t, int, int) = dlsym(RTLD_NEXT, "nftw");
    note("nftw", path);
    return real(path, visit, fds, flags);
}
"""


def test_the_loop_neither_syncs_nor_removes_folders(muster):
    source, shim, notes = (muster.folder / name for name in ('shim.c', 'shim.so', 'notes'))
    source.write_text(SHIM)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source, '-ldl'], check=True)
    muster.run('up', env={'LD_PRELOAD': str(shim), 'TEST_NOTES': str(notes)})
    assert 'fdatasync loop' in notes.read_text(), 'the beginning is written down, when nobody waits yet'
    notes.unlink()
    api = Api(muster, start=False)

    def noted(thread, *words):
        return [line for line in (notes.read_text().splitlines() if notes.exists() else ()) if thread in line.split() and all(w in line for w in words)]

    for i in range(3):
        muster.run('run', '-n', '2', '--name', 'train', '--', 'echo', str(i))
    muster.run('create', muster.write('job.yaml', job('stays', shell('true'), workers=1)))
    muster.wait_condition('stays', 'Succeeded')
    assert api.call('POST', SECRETS, {'metadata': {'name': 'pass'}, 'stringData': {'word': 'one'}})[0] == 201
    assert api.call('DELETE', f'{SECRETS}/pass')[0] == 200
    wait_for(lambda: noted('thread', 'fdatasync', 'store.db-wal'), 'the WAL is moved into the database')
    wait_for(lambda: noted('thread', 'nftw', '/.trash'), 'the folders of a job that was deleted go')
    muster.run('delete', 'job', 'stays')
    status, answer = api.call('DELETE', '/muster/v1/history?namespace=default')
    assert status == 200 and answer['removed'] >= 1, answer
    assert noted('thread', 'fsync'), 'a record, or what is kept of a run'
    assert not noted('loop'), noted('loop')
