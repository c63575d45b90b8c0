"""`muster perf`: every collective between real processes, each size checked; `-o json`; `tune`."""
import json

import pytest

KINDS = ['allreduce', 'reduce', 'reducescatter', 'allgather', 'broadcast', 'gather', 'scatter', 'alltoall', 'barrier']


@pytest.mark.parametrize('transport', ['shm', 'tcp'])
def test_every_collective_is_measured_and_checked(muster, transport):
    for kind in KINDS:
        words = ['perf', kind, '-n', 3, '-b', '1K', '-e', '64K', '-s', 0.002, '--transport', transport, '-o', 'json']
        doc = json.loads(muster.run(*words).stdout)
        assert doc['ranks'] == 3 and [r['bytes'] for r in doc['results']] == [1024 << i for i in range(7)]
        for row in doc['results']:
            assert row['wrong'] == 0 and row['calls'] > 0, (kind, row)
            assert 0 < row['min_us'] <= row['p50_us'] <= row['p99_us'] <= row['max_us'], (kind, row)
            assert row['algbw_gbps'] > 0 and row['busbw_gbps'] > 0


def test_a_table_for_people(muster):
    lines = muster.run('perf', 'broadcast', '-b', '8', '-e', '32', '-s', 0.002, '--type', 'bf16', '--direct').stdout.splitlines()
    assert '2 ranks' in lines[0] and lines[1].split()[:1] == ['bytes'] and lines[1].split()[-1] == 'wrong'
    assert [line.split()[0] for line in lines[2:]] == ['8', '16', '32']


def test_tune_prints_the_choice(muster):
    out = muster.run('perf', 'tune', '-n', 4).stdout
    assert 'all-reduce of 4 ranks' in out and 'owner-reduce' in out and 'several hosts' in out


def test_what_is_no_collective_is_refused(muster):
    assert 'unknown collective: sort' in muster.run('perf', 'sort', code=None).stderr
    assert 'is not defined' in muster.run('perf', 'allreduce', '-t', 'f32', '-r', 'bxor', code=None).stderr
