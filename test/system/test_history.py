"""The history of runs: --results has all files of one run, and events belong to one object."""
import json
import os
import random
import signal
import time

import pytest

from conftest import job, shell, wait_for


def claim(name='kept'):
    return {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': name},
            'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file())


# ---- --results ----


def test_results_hold_one_run(muster):
    path = muster.write('job.yaml', job('train', shell('echo "$RANK"'), workers=2))
    muster.run('run', '-f', path, '--results', 'out')
    out = muster.work / 'out'
    (out / 'notes.txt').write_text('mine')
    assert 'logs/train-worker-1.log' in files(out)
    path = muster.write('job.yaml', job('train', shell('echo again')))
    muster.run('run', '-f', path, '--results', 'out')
    assert files(out) == ['logs/train-master-0.log', 'muster.json', 'notes.txt', 'status.json']
    uid = json.loads((out / 'status.json').read_text())['metadata']['uid']
    assert json.loads((out / 'muster.json').read_text())['uid'] == uid


def test_results_forget_volumes_that_the_new_run_has_not(muster):
    mounts = [{'name': 'data', 'mountPath': '/results'}]
    volumes = [{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}]
    first = muster.write('job.yaml', claim(), job('train', shell('echo 1 > /results/model'), volumes=volumes, mounts=mounts))
    muster.run('run', '-f', first, '--results', 'out')
    assert 'volumes/data/model' in files(muster.work / 'out')
    muster.run('run', '--name', 'train', '-n', '1', '--results', 'out', '--', 'true')
    assert files(muster.work / 'out') == ['logs/train-master-0.log', 'muster.json', 'status.json']


@pytest.mark.parametrize('name', ['logs/mine.log', 'volumes/v/x', 'status.json', 'muster.json'])
def test_results_refuse_the_files_of_others(muster, name):
    mine = muster.work / 'out' / name
    mine.parent.mkdir(parents=True)
    mine.write_text('mine')
    done = muster.run('run', '-n', '1', '--results', 'out', '--', 'touch', 'ran', code=None)
    assert done.returncode != 0 and 'was not written by muster run' in done.stderr
    assert mine.read_text() == 'mine' and not (muster.work / 'ran').exists()


def test_results_of_several_jobs_are_replaced_each(muster):
    path = muster.write('job.yaml', job('a', shell('echo 1'), workers=1), job('b', shell('echo 1')))
    muster.run('run', '-f', path, '--results', 'out')
    path = muster.write('job.yaml', job('a', shell('echo 2')), job('b', shell('echo 2')))
    muster.run('run', '-f', path, '--results', 'out')
    assert files(muster.work / 'out/a') == ['logs/a-master-0.log', 'muster.json', 'status.json']
    assert (muster.work / 'out/b/logs/b-master-0.log').read_text() == '2\n'


def files_in(folder):
    """Returns the number of files in the folder, or 0 if the folder does not exist yet, or no longer exists."""
    try:
        return len(os.listdir(folder))
    except FileNotFoundError:
        return 0


def test_an_interrupted_copy_leaves_the_old_results(muster):
    """The copy of a volume with many files is killed while it runs, at several places."""
    mounts = [{'name': 'data', 'mountPath': '/results'}]
    volumes = [{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}]
    out = muster.work / 'out'

    def write(run, count):
        script = f'for i in $(seq {count}); do echo {run} > /results/$i; done; echo {run}'
        return muster.write('job.yaml', claim(), job('train', shell(script), volumes=volumes, mounts=mounts))

    muster.run('run', '-f', write('old', 3), '--results', 'out')
    last, cut = 'old\n', 0
    for number, wanted in enumerate((10, 200, 1500, 10, 10, 10)):
        new = f'new {number}'
        process = muster.start('run', '-f', write(new, 2000), '--results', 'out')
        staged = out / '.muster-results.new/volumes/data'
        wait_for(lambda: process.poll() is not None or files_in(staged) >= wanted, 'it copies')
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (staged.parents[1] / 'muster.json').exists() or not staged.is_dir():  # the copy was complete; the exchange of copies is tested below
            muster.run('run', '-f', write(new, 2000), '--results', 'out')
            last = new + '\n'
        else:
            cut += 1
        values = {p.read_text() for p in (out / 'volumes/data').iterdir()} | {(out / 'logs/train-master-0.log').read_text()}
        assert values == {last}, 'the last run, whole'
        if cut and number >= 2:
            break
    assert cut, 'one at least was killed while it copied'
    muster.run('run', '-f', write('last', 2000), '--results', 'out')
    assert not list(out.glob('.muster-results*'))
    assert {p.read_text() for p in (out / 'volumes/data').iterdir()} == {'last\n'}


@pytest.mark.parametrize('moved', [[], ['logs'], ['logs', 'status.json']])
def test_an_exchange_that_was_cut_short_is_finished(muster, moved):
    muster.run('run', '-n', '1', '--name', 'train', '--results', 'new', '--', 'echo', 'new')
    muster.run('run', '-n', '1', '--name', 'train', '--results', 'out', '--', 'echo', 'old')
    out, staged, replaced = muster.work / 'out', muster.work / 'out/.muster-results.new', muster.work / 'out/.muster-results.old'
    os.rename(muster.work / 'new', staged)
    replaced.mkdir()
    for part in moved:
        os.rename(out / part, replaced / part)
        os.rename(staged / part, out / part)
    process = muster.start('run', '-n', '1', '--results', 'out', '--', 'sh', '-c', 'touch ran; sleep 1000')
    wait_for((muster.work / 'ran').exists, 'the training runs')
    process.send_signal(signal.SIGKILL)
    assert files(out) == ['logs/train-master-0.log', 'muster.json', 'status.json'], 'done before the training'
    assert (out / 'logs/train-master-0.log').read_text() == 'new\n'
    assert json.loads((out / 'status.json').read_text())['metadata']['uid'] == json.loads((out / 'muster.json').read_text())['uid']


# ---- events ----


def test_events_of_a_replaced_job_are_not_its_successors(muster):
    muster.run('run', '-n', '2', '--name', 'train', '--', 'no-such-command', code=127)
    text = muster.run('events', 'train').stdout
    assert 'Pod/train-worker-0' in text and 'no-such-command' in text and 'Job/train ' in text
    assert 'no-such-command' in muster.run('describe', 'train-master-0').stdout
    muster.run('run', '-n', '2', '--name', 'train', '--', 'true')
    for words in (['events', 'train'], ['describe', 'train'], ['events', 'train-master-0'], ['describe', 'train-master-0']):
        text = muster.run(*words).stdout
        assert 'no-such-command' not in text and 'PyTorchJobFailed' not in text, text
    text = muster.run('events', 'train').stdout
    assert 'Created pod: train-worker-0' in text and 'PyTorchJobSucceeded' in text


# ---- muster history ----


def runs(muster, *words):
    """Returns what `muster history` lists, as (run, state, exit code, current), newest first."""
    doc = json.loads(muster.run('history', *words, '-o', 'json').stdout)
    return [(r['run'], r['state'], r['exitCode'], r['current']) for r in doc['runs']]


def kept(muster, job='train'):
    """Returns the numbers of the runs whose files are in the history."""
    folder = muster.home / 'history/default' / job
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit()) if folder.exists() else []


def test_a_replaced_run_is_kept_with_its_logs(muster):
    muster.run('run', '-n', '2', '--name', 'train', '--', 'sh', '-c', 'echo a$RANK; echo b$RANK; exit $((3 * RANK))', code=3)
    muster.run('run', '-n', '2', '--name', 'train', '--', 'sh', '-c', 'echo second')
    assert runs(muster, 'train') == [(2, 'Succeeded', 0, True), (1, 'Failed', 3, False)]
    assert [j['metadata']['name'] for j in muster.get('jobs')] == ['train'], 'one object, one file'
    text = muster.run('history', 'train').stdout.splitlines()
    assert text[0].split() == ['RUN', 'NAME', 'STATE', 'EXIT', 'STARTED', 'DURATION', 'RANKS', 'WHY']
    assert text[1].startswith('2 (current)') and 'train-worker-0 (rank 1) exited with code 3' in text[2]
    for _ in range(2):  # while the run is moved into the history, and after that
        assert sorted(muster.run('logs', 'train', '--run', '1').stdout.splitlines()) == \
            ['[rank 0] a0', '[rank 0] b0', '[rank 1] a1', '[rank 1] b1']
        assert muster.run('logs', 'train-worker-0', '--run', '1', '--tail', '1').stdout == 'b1\n', 'as it was printed'
        assert set(muster.run('logs', 'train', '--run', '2').stdout.splitlines()) == {'[rank 0] second', '[rank 1] second'}
        text = muster.run('history', 'train', '--run', '1').stdout
        assert 'Exit code: 3' in text and 'Created pod: train-worker-0' in text and "sh -c 'echo a$RANK" in text
        whole = json.loads(muster.run('history', 'train', '--run', '1', '-o', 'json').stdout)
        assert len(whole['pods']) == 2 and whole['job']['kind'] == 'PyTorchJob' and whole['summary']['exitCode'] == 3
        assert [r['exitCode'] for r in whole['summary']['replicas']] == [0, 3]
        wait_for(lambda: kept(muster) == [1], 'it is in the history')
    uid = whole['summary']['uid']
    wait_for(lambda: muster.run('up') and not (muster.home / 'jobs' / uid).exists(), 'its folder is gone')
    assert not list((muster.home / 'history').rglob('spec.json')), 'an environment may hold secrets'


def test_deleted_jobs_are_kept_when_they_had_finished(muster):
    muster.run('create', muster.write('job.yaml', job('train', shell('echo done'), run_policy={'ttlSecondsAfterFinished': 0})))
    wait_for(lambda: kept(muster) == [1], 'its time to live ended')
    muster.run('create', muster.write('job.yaml', job('train', shell('echo again'))))
    muster.wait_condition('train', 'Succeeded')
    muster.run('delete', 'job', 'train')
    wait_for(lambda: kept(muster) == [1, 2], 'it was deleted')
    assert muster.run('logs', 'train', '--run', '2').stdout == '[rank 0] again\n'
    muster.run('create', muster.write('job.yaml', job('train', shell('sleep 1000'))))
    muster.wait_condition('train', 'Running')
    assert runs(muster, 'train')[0] == (3, 'Running', None, True)
    muster.run('delete', 'job', 'train')
    # On a busy machine a controller that nobody needs may end before that; the next controller continues.
    wait_for(lambda: muster.run('up') and not list((muster.home / 'jobs').iterdir()), 'a running one is deleted for good')
    assert kept(muster) == [1, 2]


def test_the_history_is_bounded_by_number(muster):
    muster.env['MUSTER_HISTORY_RUNS'] = '2'
    for i in range(5):
        muster.run('run', '-n', '1', '--name', 'train', '--', 'echo', str(i))
    wait_for(lambda: kept(muster) == [3, 4], 'the newest two are kept')
    assert [r[0] for r in runs(muster, 'train')] == [5, 4, 3]
    assert muster.run('logs', 'train', '--run', '4').stdout == '[rank 0] 3\n'
    assert 'no run 1 of job train' in muster.run('logs', 'train', '--run', '1', code=66).stderr


def test_the_history_is_bounded_by_bytes(muster):
    muster.env['MUSTER_HISTORY_BYTES'] = '400Ki'
    history = muster.home / 'history'
    for i in range(4):
        muster.run('run', '-n', '1', '--name', 'train', '-q', '--', 'sh', '-c', f'yes {i:0999} | head -c 30000000; echo last')
    wait_for(lambda: kept(muster) and not [d for d in (muster.home / 'jobs').iterdir() if (d / 'deleted').exists()], 'it settles')
    wait_for(lambda: sum(p.stat().st_size for p in history.rglob('*') if p.is_file()) <= 400 << 10, 'it is within its bytes')
    newest = json.loads(muster.run('history', 'train', '--run', '3', '-o', 'json').stdout)['summary']
    assert newest['logBytesDropped'] > 0
    assert 'were left out' in muster.run('history', 'train', '--run', '3').stdout


def test_the_list_of_jobs_does_not_grow_for_ever(muster):
    muster.env['MUSTER_FINISHED_JOBS'] = '3'
    muster.run('create', muster.write('job.yaml', job('mine', shell('true'))))
    muster.wait_condition('mine', 'Succeeded')
    for i in range(6):
        muster.run('run', '-n', '1', '--name', f'train-{i}', '--', 'echo', str(i))
    muster.run('run', '-n', '1', '--name', 'last', '--', 'true')
    wait_for(lambda: [j['metadata']['name'] for j in muster.get('jobs')] in (['last', 'mine', 'train-4', 'train-5'],
                                                                        ['last', 'mine', 'train-3', 'train-4', 'train-5']),
             'the newest of muster run stay, and what was created otherwise')
    assert len(runs(muster)) == 8
    assert muster.run('logs', 'train-0', '--run', '1').stdout == '[rank 0] 0\n'


def test_no_history(muster):
    muster.env['MUSTER_HISTORY_RUNS'] = '0'
    for _ in range(2):
        muster.run('run', '-n', '1', '--name', 'train', '--', 'true')
    wait_for(lambda: muster.run('up') and len(list((muster.home / 'jobs').iterdir())) == 1, 'the first is gone')
    assert kept(muster) == [] and len(runs(muster, 'train')) == 1


def test_runs_are_removed_on_request(muster):
    for _ in range(4):
        muster.run('run', '-n', '1', '--name', 'train', '--', 'true')
    muster.run('run', '-n', '1', '--name', 'other', '--', 'true')
    wait_for(lambda: kept(muster) == [1, 2, 3], 'they are kept')
    assert muster.run('history', 'train', '--run', '2', '--prune').stdout == '1 runs removed\n'
    assert kept(muster) == [1, 3]
    assert muster.run('history', 'train', '--prune').stdout == '2 runs removed\n'
    assert runs(muster, 'train') == [(4, 'Succeeded', 0, True)]
    muster.run('run', '-n', '1', '--name', 'train', '--', 'true')
    assert [r[0] for r in runs(muster, 'train')] == [5, 4], 'a number is not used again'


@pytest.mark.parametrize('words, message', [
    (['history', 'train', '--run', '0'], 'run'), (['history', '--run', '1'], '--run needs a job'),
    (['history', '../..', '--run', '1'], ''), (['history', 'pods/x'], 'only jobs'), (['history', 'a%2Fb'], ''),
    (['history', 'train', '-A'], 'one namespace'), (['logs', '--run', '1'], '--run'), (['logs', 'train', '-f', '--run', '1'], '--run'),
    (['logs', 'nothing', '--run', '1'], 'no run 1 of job nothing'), (['history', 'Train'], 'must'), (['history', '-n', '..'], 'must'),
    (['history', 'x', '-n', 'a&job=b'], '')])
def test_wrong_words_are_explained(muster, words, message):
    done = muster.run(*words, code=None)
    assert done.returncode not in (0, -6, -11) and message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_run_that_cannot_be_read_is_listed(muster):
    for _ in range(2):
        muster.run('run', '-n', '1', '--name', 'train', '--', 'true')
    wait_for(lambda: kept(muster) == [1], 'it is kept')
    for name in ('summary.json', 'pods.json', 'job.json'):
        (muster.home / 'history/default/train/1' / name).write_text('{"tor')
    assert 'Unreadable' in muster.run('history', 'train').stdout
    muster.run('history', 'train', '--run', '1')
    muster.run('logs', 'train', '--run', '1')


def test_a_controller_killed_at_any_moment_keeps_each_run_once(muster):
    """Real processes: the controller is killed with -9 while it deletes, records and archives."""
    for i in range(1, 13):
        muster.run('run', '-n', '1', '--name', 'train', '--', 'echo', f'run {i}')
        pid = muster.status()
        process = muster.start('delete', 'job', 'train', '--no-wait')
        delay = time.monotonic() + random.random() * 0.03
        wait_for(lambda at=delay: time.monotonic() > at, 'a random moment')
        os.kill(pid, signal.SIGKILL)
        process.communicate()
        muster.run('delete', 'job', 'train', '--ignore-not-found')
        assert [r[0] for r in runs(muster, 'train')] == list(range(i, 0, -1))
        assert muster.run('logs', 'train', '--run', str(i)).stdout == f'[rank 0] run {i}\n'
    wait_for(lambda: kept(muster) == list(range(1, 13)), 'all are in the history, once')


def test_a_stopped_run_has_no_exit_code_of_its_own(muster):
    process = muster.start('run', '-n', '1', '--name', 'train', '--', 'sh', '-c', 'touch ran; exec sleep 1000')
    wait_for((muster.work / 'ran').exists, 'it runs')
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert runs(muster, 'train')[0][:3] == (1, 'Failed', None)
    assert 'interrupted (Ctrl-C)' in muster.run('history', 'train').stdout
