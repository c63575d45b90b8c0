"""Elastic jobs whose clocks are wrong: no decision depends on the time of day, and clocks of two processes are never compared."""
import json
import signal
import subprocess

import pytest

from chaos import check_ends, quiet_run
from job import Job
from program import BUILD, LIMIT_S

AHEAD_S = 86400
JUMPING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The time of day is a year behind until CLOCK_JUMPED is there, and a year ahead then. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int r = next(clock, ret);
    if (r == 0 && clock == CLOCK_REALTIME) {
        int jumped = access(getenv("CLOCK_JUMPED"), F_OK) == 0;
        ret->tv_sec += jumped ? 31536000 : -31536000;
        if (jumped) {
            close(creat(getenv("CLOCK_ASKED"), 0600));
        }
    }
    return r;
}
"""


def use_jumping_clocks(job, folder):
    source, shim = folder / 'jumping.c', folder / 'jumping.so'
    source.write_text(JUMPING)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source, '-ldl'], check=True)
    job.environment.update(LD_PRELOAD=str(shim), CLOCK_JUMPED=str(folder / 'jumped'), CLOCK_ASKED=str(folder / 'asked'))


def test_a_time_of_day_that_jumps(tmp_path):
    """The time of day jumps by two years for all processes of a job, and then the coordinator is started again: no worker is given up, and no
    lease ends."""
    model = quiet_run(tmp_path / 'quiet', epochs=20)
    job = Job(tmp_path, first_size=2, sleep_ms=2, epochs=20, status_file=tmp_path / 'status')
    use_jumping_clocks(job, tmp_path)
    with job:
        job.add_worker()
        job.add_worker()
        job.wait_for_version(10)
        (tmp_path / 'jumped').touch()
        job.wait_for_version(20)
        job.kill_coordinator()
        job.start_coordinator()
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert (tmp_path / 'asked').exists()
        assert '1 generation, 0 lost' in job.log()
        away, = json.loads((tmp_path / 'status').read_text())['recoveries']
        assert away['kind'] == 'coordinator' and 0 < away['ms'] < 1000 * LIMIT_S


def ahead():
    """Returns the words that run a program with clocks that are a day ahead of all others; skips the test if that is not possible."""
    words = ['unshare', '--time', '--monotonic', str(AHEAD_S), '--boottime', str(AHEAD_S)]
    here = float(open('/proc/uptime').read().split()[0])
    done = subprocess.run([*words, 'cat', '/proc/uptime'], capture_output=True, text=True, check=False)
    if done.returncode != 0 or float(done.stdout.split()[0]) < here + AHEAD_S - 1:
        pytest.skip(f'this needs time namespaces (root, Linux 5.6 or newer): {done.stderr.strip()}')
    return words


def test_workers_that_count_time_from_other_moments(tmp_path):
    """The clocks of one worker are a day ahead, as on hosts that were started on different days; another worker is killed."""
    words = ahead()
    model = quiet_run(tmp_path / 'quiet', epochs=20)
    with Job(tmp_path, first_size=3, sleep_ms=2, epochs=20, held=True) as job:
        here, there = job.program, tmp_path / 'there'
        there.write_text(f'#!/bin/sh\nexec {" ".join(words)} {BUILD / "tests" / here} "$@"\n')
        there.chmod(0o755)
        job.program = str(there)
        job.add_worker()
        job.program = here
        victim = job.add_worker()
        job.add_worker()
        job.wait_for_version(10)
        victim.send(signal.SIGKILL)
        job.wait_for_version(20)
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert '2 generations, 1 lost' in job.log()
