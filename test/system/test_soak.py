"""Three hundred short jobs through one controller: after the first hundred neither its memory nor its descriptors grow, and deleted jobs leave
nothing in MUSTER_HOME."""
import os
import pathlib
import re

import pytest
from conftest import job, shell, wait_for

pytestmark = pytest.mark.heavy  # about a minute
BATCH, BATCHES, WARM_UP = 25, 12, 4
GROWTH_KIB_MAX = 2048


def resident_kib(pid):
    return int(re.search(r'VmRSS:\s+(\d+)', pathlib.Path(f'/proc/{pid}/status').read_text())[1])


def play(muster, batch):
    names = [f's{batch}-{i}' for i in range(BATCH)]
    muster.run('create', '-f', muster.write('jobs.yaml', *(job(name, shell('echo hello')) for name in names)))
    wait_for(lambda: sum(j['status'].get('conditions', [{}])[-1].get('type') == 'Succeeded' for j in muster.get('jobs')) == BATCH,
             'every job of the batch ends')
    muster.run('delete', 'job', *names)
    wait_for(lambda: not muster.get('pods') and not muster.get('jobs'), 'they are gone')


def measure(muster, pid):
    """Returns the numbers that must not grow. A supervisor ends a moment after its job, and then the job's folder is removed."""
    wait_for(lambda: len([p for p in muster.processes() if ' supervisor ' in p[1]]) == 0, 'no supervisor is left')
    wait_for(lambda: not os.listdir(muster.home / 'jobs'), 'no folder is left')
    files = sum(len(names) for _, _, names in os.walk(muster.home))
    return resident_kib(pid), len(os.listdir(f'/proc/{pid}/fd')), files


def test_three_hundred_jobs_leave_nothing(muster):
    muster.env['MUSTER_HISTORY_RUNS'] = '0'  # the history of deleted jobs is bounded (test_history.py), but not empty
    muster.run('up')
    pid = muster.status()
    for batch in range(WARM_UP):
        play(muster, batch)
    kib, descriptors, files = measure(muster, pid)
    for batch in range(WARM_UP, BATCHES):
        play(muster, batch)
    later = measure(muster, pid)
    print('before', (kib, descriptors, files), 'after', later)
    assert muster.status() == pid
    # A thread removes folders, and may still be at the last one.
    wait_for(lambda: measure(muster, pid)[1] <= descriptors, f'no more than {descriptors} descriptors')
    assert later[0] - kib <= GROWTH_KIB_MAX, (kib, later)
    wait_for(lambda: measure(muster, pid)[2] <= files, f'no more than {files} files')
