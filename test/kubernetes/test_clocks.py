"""Clocks that differ: the clock of the operator is an hour ahead of all others or an hour behind, and that of the next operator is right."""
import shutil
import signal
import subprocess
import time

import pytest

from jobs import Operator
from program import wait_for

SHIFTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int r = next(clock, ret);
    if (r == 0 && clock == CLOCK_REALTIME) {
        ret->tv_sec += atoi(getenv("CLOCK_SHIFT_S"));
    }
    return r;
}
"""
HOUR_S = 3600


@pytest.fixture(scope='module')
def shim(tmp_path_factory):
    folder = tmp_path_factory.mktemp('shim')
    (folder / 'shifted.c').write_text(SHIFTED)
    subprocess.run([shutil.which('cc'), '-shared', '-fPIC', '-o', folder / 'shifted.so', folder / 'shifted.c', '-ldl'], check=True)
    return folder / 'shifted.so'


@pytest.fixture()
def pair(cluster, jobs, shim):
    """Returns a function that starts an operator whose clock is off by a number of seconds; one of the operators leads."""
    made = []
    config = cluster.write_kubeconfig(f'clocks-{jobs.namespace}', cluster.url, namespace=jobs.namespace)

    def make(shift_s):
        env = {'LD_PRELOAD': str(shim), 'CLOCK_SHIFT_S': str(shift_s)}
        made.append(Operator(config, '--namespace', jobs.namespace, '--leader-elect', env=env).start().wait_ready())
        return made[-1]
    yield make
    for operator in made:
        operator.close()


def at(unix_s):
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(unix_s))


def kill(jobs, shift_s):
    """Ends the worker of `a` with 137, as on a node whose clock is off, too."""
    state = {'terminated': {'exitCode': 137, 'reason': 'Error', 'finishedAt': at(time.time() + shift_s)}}
    container = {'name': 'pytorch', 'image': 'none', 'imageID': '', 'ready': False, 'restartCount': 0, 'state': state}
    jobs.patch('a-worker-0', {'status': {'phase': 'Failed', 'containerStatuses': [container]}}, 'pods', '/status')


def wait_again(jobs, before):
    """Waits until the worker is made again, and returns its uid."""
    def is_new():
        pod = jobs.get('a-worker-0', 'pods')
        return pod['metadata']['uid'] if pod and pod['metadata']['uid'] != before else None
    return wait_for(is_new, 'the worker is made again')


@pytest.mark.parametrize('shift_s', [HOUR_S, -HOUR_S])
def test_an_hour_is_no_matter(jobs, pair, shift_s):
    """Deadline and time to live last as many seconds as they say; the next operator gets the Lease as soon as with right clocks; a worker's back-off
    also lasts its seconds."""
    first = pair(shift_s)
    wait_for(lambda: first.said('operator.leads'), 'the first one leads')
    second = pair(0)
    jobs.create('a', policy='ExitCode')
    uid = jobs.wait_pods('a', 2)['a-worker-0']['metadata']['uid']
    assert (jobs.get('a')['status']['startTime'] > at(time.time())) == (shift_s > 0)  # the operator's clock is off
    kill(jobs, shift_s)
    uid = wait_again(jobs, uid)
    begin = time.monotonic()
    jobs.create('b', run={'activeDeadlineSeconds': 3, 'ttlSecondsAfterFinished': 2})
    jobs.wait_condition('b', 'Failed')
    assert time.monotonic() - begin > 2  # startTime has whole seconds
    wait_for(lambda: jobs.get('b') is None, 'the job is deleted in its time')
    kill(jobs, shift_s)
    wait_for(lambda: not jobs.get('a-worker-0', 'pods'), 'the worker is to be made again in 10 s')
    begin = time.monotonic()
    first.end(signal.SIGKILL)
    wait_for(lambda: second.said('operator.leads'), 'the other one leads')
    assert time.monotonic() - begin < 15
    wait_again(jobs, uid)
    jobs.set_phases('a', 'Running')
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    jobs.wait_condition('a', 'Succeeded')
