"""--max-restarts: when a rank fails, all ranks end and start again together, which counts as one restart."""
import json
import os
import signal
import sys

import pytest
from conftest import LIMIT_S, job, shell, wait_for

FAILS_ONCE = 'echo try $TORCHELASTIC_RESTART_COUNT; [ $RANK = 1 ] && exit $((1 - TORCHELASTIC_RESTART_COUNT)); {}'


def run(muster, *words, **options):
    return muster.run('run', '-n', '3', '--name', 'tries', *words, **options)


def restarts(muster):
    return muster.get('job', 'tries')['status'].get('counters', {}).get('jobRestarts', 0)


def test_all_ranks_begin_anew(muster):
    # Rank 1 fails when the others have printed their line.
    script = 'n=$TORCHELASTIC_RESTART_COUNT; echo try $n; touch said.$n.$RANK; [ $n = 1 ] && exit 0; [ $RANK = 1 ] || exec sleep 1000; ' \
        'until [ -e said.0.0 ] && [ -e said.0.2 ]; do sleep 0.02; done; exit 1'
    done = run(muster, '--max-restarts', '3', '--', 'sh', '-c', script)
    assert sorted(done.stdout.splitlines()) == [f'[rank {r}] try {n}' for r in range(3) for n in range(2)]
    assert 'muster: restart 1 of 3: tries-worker-0 (rank 1) exited with code 1\n' in done.stderr
    assert 'job tries succeeded' in done.stderr
    assert 'JobRestarting' in muster.run('events', 'tries').stdout
    assert restarts(muster) == 1


def test_a_rank_that_had_succeeded_begins_anew(muster):
    script = '[ $RANK != 0 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && until [ -e zero ]; do sleep 0.05; done; ' \
        'echo r$RANK >> ran; [ $RANK = 0 ] && { touch zero; exit 0; }; ' + FAILS_ONCE.format('true')
    run(muster, '--max-restarts', '1', '--', 'sh', '-c', script)
    assert (muster.work / 'ran').read_text().count('r0') == 2


def test_at_most_so_many_and_both_errors_are_said(muster):
    script = 'c=$MUSTER_RESTART_COUNT; [ $RANK = $((2 - (c > 0))) ] && { echo bad $c; exit $((c + 3)); }; sleep 1000'
    done = run(muster, '--max-restarts=2', '-o', 'json', '--', 'sh', '-c', script, code=5)
    assert 'restart 2 of 2: ' in done.stderr and 'restart 3' not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert 'tries-worker-0 (rank 1) exited with code 5: "bad 2"' in last
    assert 'first failure, before its restarts: tries-worker-1 (rank 2) exited with code 3: "bad 0"' in last
    doc = json.loads(done.stdout)
    assert doc['restarts'] == 2 and doc['exitCode'] == 5
    message = muster.get('job', 'tries')['status']['conditions'][-1]['message']
    assert 'restarted 2 time(s)' in message and 'Before the first restart: tries-worker-1 (rank 2) exited with code 3' in message
    assert 'nothing bounds' not in done.stderr


def test_none_is_the_default_and_zero(muster):
    for words in ([], ['--max-restarts', '0']):
        done = run(muster, *words, '--', 'sh', '-c', '[ $RANK = 1 ] && exit 3; sleep 1000', code=3)
        assert 'restart 1' not in done.stderr


def test_a_signal_ends_it_between_two_tries(muster):
    script = 'touch up; [ $RANK = 1 ] && exit 3; trap "" TERM; sleep 1000'
    process = muster.start('run', '-n', '2', '--name', 'tries', '--max-restarts', '99999', '--', 'sh', '-c', script)
    wait_for(lambda: (muster.work / 'up').exists() and restarts(muster) > 0, 'it restarts')
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: process.poll() is not None or process.send_signal(signal.SIGTERM), 'the run ends')
    assert process.wait() in (130, 143)
    wait_for(lambda: not [p for p in muster.processes() if 'sleep 1000' in p[1]], 'no rank is left')


def test_the_controller_is_killed_while_it_restarts(muster):
    script = '[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; touch up.$RANK; until [ -e go ]; do sleep 0.02; done; ' \
        '[ $RANK != 0 ] && exit 3; trap "sleep 1; exit 0" TERM; sleep 1000 & wait'
    process = muster.start('run', '-n', '3', '--name', 'tries', '--max-restarts', '3', '--', 'sh', '-c', script)
    wait_for(lambda: all((muster.work / f'up.{r}').exists() for r in range(3)), 'the ranks start')
    pid = muster.status()
    (muster.work / 'go').touch()
    wait_for(lambda: restarts(muster) == 1, 'the restart is counted')
    os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert restarts(muster) == 1


def test_a_file_must_not_restart_ranks_by_itself(muster):
    muster.write('job.yaml', job('tries', shell('exit 3'), workers=1, restart='OnFailure'))
    done = muster.run('run', '-f', 'job.yaml', '--max-restarts', '2', code=64)
    assert 'the restartPolicy OnFailure of Master restarts each alone: write restartPolicy: Never' in done.stderr
    muster.write('job.yaml', job('tries', shell('exit 3'), workers=1, restart='OnFailure',
                                 annotations={'muster.dev/max-restarts': '2'}))
    assert 'OnFailure restarts each alone' in muster.run('lint', 'job.yaml', code=65).stdout
    muster.write('job.yaml', job('tries', shell('exit 3'), workers=1))
    assert 'restart 2 of 2' in muster.run('run', '-f', 'job.yaml', '--max-restarts', '2', code=3).stderr


@pytest.mark.parametrize('value', ['-1', 'x', '', '100000', '1.5'])
def test_a_wrong_number_is_an_error(muster, value):
    assert '--max-restarts must be a number from 0' in muster.run('run', '-n', '1', f'--max-restarts={value}', '--', 'true', code=64).stderr
    muster.write('job.yaml', job('tries', shell('true'), annotations={'muster.dev/max-restarts': value}))
    assert 'must be a number from 0 to 99999' in muster.run('lint', 'job.yaml', code=65).stdout


COLLECTIVE = '''
import os, torch, torch.distributed as dist
dist.init_process_group('gloo')
t = torch.ones(1)
dist.all_reduce(t)
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and dist.get_rank() == 1:
    os._exit(9)
dist.all_reduce(t)
print('sum', int(t), flush=True)
'''


def test_the_next_try_meets_at_the_same_address(muster):
    pytest.importorskip('torch')
    done = run(muster, '--max-restarts', '1', '--', sys.executable, '-c', COLLECTIVE)
    assert sorted(line for line in done.stdout.splitlines() if 'sum' in line) == [f'[rank {r}] sum 9' for r in range(3)]
