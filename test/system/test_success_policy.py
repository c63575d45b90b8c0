"""Which ranks must succeed for a job to succeed: all ranks with `run -n` and --all-ranks, else the ranks that a cluster's operator checks; and
each rank that failed is named in every output about the job."""
import json

from conftest import LIMIT_S, job, shell, wait_for

RANK_FAILS = 'exit $((RANK*3))'
LATE_FAILURE = '[ $RANK = 0 ] || { while [ ! -e over ]; do sleep 0.1; done; exit 3; }'


def release_when_master_is_done(muster, name):
    """Lets the workers of LATE_FAILURE go on once rank 0 has ended."""
    master = lambda: muster.run('get', 'pod', f'{name}-master-0', '-o', 'json', code=None).stdout
    wait_for(lambda: '"phase": "Succeeded"' in master(), 'rank 0 succeeds')
    (muster.work / 'over').touch()


def last_line(stderr, name):
    lines = [line for line in stderr.splitlines() if f'muster: job {name} ' in line and ' after ' in line]
    assert len(lines) == 1, stderr
    return lines[0]


def test_every_rank_of_a_command_must_succeed(muster):
    done = muster.run('run', '-n', '2', '--name', 'pair', '--', 'sh', '-c', RANK_FAILS, code=3)
    assert 'pair-worker-0 (rank 1) exited with code 3' in last_line(done.stderr, 'pair')
    assert muster.condition('pair') == 'Failed'


def test_a_rank_that_fails_after_rank_0_fails_the_run(muster):
    running = muster.start('run', '-n', '2', '--name', 'late', '-o', 'json', '--results', 'kept', '--', 'sh', '-c', LATE_FAILURE)
    release_when_master_is_done(muster, 'late')
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 3, err
    report = json.loads(out)
    assert (report['state'], report['exitCode']) == ('Failed', 3)
    assert [(r['name'], r['state'], r['exitCode']) for r in report['replicas']] == \
        [('late-master-0', 'Succeeded', 0), ('late-worker-0', 'Failed', 3)]
    assert [(r['name'], r['rank'], r['state'], r['exitCode']) for r in report['badRanks']] == [('late-worker-0', 1, 'Failed', 3)]
    status = json.loads((muster.work / 'kept/status.json').read_text())['status']
    assert status['conditions'][-1]['type'] == 'Failed'
    assert status['replicaStatuses']['Master'].get('succeeded') == 1
    assert status['replicaStatuses']['Worker'].get('failed') == 1 and 'succeeded' not in status['replicaStatuses']['Worker']
    muster.run('wait', 'job', 'late', '--for', 'condition=Failed', '--timeout', '10s')


def test_all_ranks_may_be_asked_of_a_file(muster):
    path = muster.write('job.yaml', job('both', shell('true'), workers=1, worker_command=shell('exit 4')))
    done = muster.run('run', '-f', path, '--all-ranks', code=4)
    assert 'both-worker-0 (rank 1) exited with code 4' in last_line(done.stderr, 'both')


def test_created_jobs_too(muster):
    path = muster.write('job.yaml', job('made', shell('true'), workers=1, worker_command=shell('exec sleep 1000')))
    muster.run('create', '--all-ranks', '-f', path)
    statuses = lambda: muster.get('job', 'made')['status'].get('replicaStatuses', {})
    wait_for(lambda: statuses().get('Master', {}).get('succeeded') == 1 and statuses()['Worker'].get('active') == 1,
             'rank 0 succeeds and rank 1 runs')
    assert muster.condition('made') == 'Running'
    muster.run('delete', 'job', 'made')


def test_of_a_file_the_master_decides_and_the_others_are_named(muster):
    path = muster.write('job.yaml', job('alone', shell(LATE_FAILURE), workers=2))
    running = muster.start('run', '-f', path, '-o', 'json')
    release_when_master_is_done(muster, 'alone')
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, err
    line = last_line(err, 'alone')
    assert 'alone succeeded' in line
    for rank in (1, 2):
        assert f'alone-worker-{rank - 1} (rank {rank}) exited with code 3' in line
    report = json.loads(out)
    assert (report['state'], report['exitCode']) == ('Succeeded', 0)
    assert [(r['rank'], r['state'], r['exitCode']) for r in report['badRanks']] == [(1, 'Failed', 3), (2, 'Failed', 3)]
    counts = muster.get('job', 'alone')['status']['replicaStatuses']
    assert counts['Worker'].get('failed') == 2 and 'succeeded' not in counts['Worker']


def test_ranks_that_the_policy_stops_are_named(muster):
    path = muster.write('job.yaml', job('trim', shell('until [ -e up ]; do sleep 0.05; done'), workers=1, worker_command=shell('touch up; exec sleep 1000'),
                                        run_policy={'cleanPodPolicy': 'Running'}))
    done = muster.run('run', '-f', path, '-o', 'json')
    assert 'trim-worker-0 (rank 1) was stopped' in last_line(done.stderr, 'trim')
    report = json.loads(done.stdout)
    assert [(r['rank'], r['state']) for r in report['badRanks']] == [(1, 'Stopped')]
    assert [r['state'] for r in report['replicas']] == ['Succeeded', 'Stopped']


def test_a_run_in_which_all_is_well_names_nobody(muster):
    done = muster.run('run', '-n', '3', '--name', 'well', '-o', 'json', '--', 'true')
    assert json.loads(done.stdout)['badRanks'] == []
    assert last_line(done.stderr, 'well').split(' after ')[1].count(' ') == 1  # "1.2 s"


def test_the_printed_file_carries_the_policy_and_says_who_knows_it(muster):
    printed = muster.run('run', '-n', '2', '--name', 'file', '--dry-run', '-o', 'yaml', '--', 'sh', '-c', RANK_FAILS).stdout
    assert 'muster.dev/success-policy: AllRanks' in printed
    comment = ' '.join(line.lstrip('# ') for line in printed.splitlines() if line.startswith('#'))
    assert "cluster's operator judges the Master alone" in comment
    muster.run('run', '-f', '-', stdin=printed, code=3)
    plain = muster.run('run', '-n', '2', '--dry-run', '-o', 'json', '--', 'true').stdout
    assert json.loads(plain)['metadata']['annotations'] == {'muster.dev/success-policy': 'AllRanks'}
    path = muster.write('job.yaml', job('asked', shell('true')))
    assert 'success-policy: AllRanks' in muster.run('run', '-f', path, '--all-ranks', '--dry-run').stdout


def test_an_unknown_policy_is_an_error(muster):
    wanted = job('odd', shell('true'))
    wanted['metadata']['annotations'] = {'muster.dev/success-policy': 'Everybody'}
    done = muster.run('run', '-f', muster.write('job.yaml', wanted), code=None)
    assert done.returncode != 0 and 'must be AllRanks or Default' in done.stderr
