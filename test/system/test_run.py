"""muster run: from a file or a command line to an exit code."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import LIMIT_S, job, python, shell, wait_for


def test_success_prefixes_each_rank(muster):
    path = muster.write('job.yaml', job('hello', shell('echo rank $RANK of $WORLD_SIZE'), workers=2))
    done = muster.run('run', '-f', path)
    assert sorted(done.stdout.splitlines()) == [f'[rank {r}] rank {r} of 3' for r in range(3)]
    assert 'job hello succeeded after' in done.stderr


def test_command_needs_no_file(muster):
    done = muster.run('run', '-n', '2', '--', 'sh', '-c', 'echo $RANK $LOCAL_RANK $WORLD_SIZE')
    assert sorted(done.stdout.splitlines()) == ['[rank 0] 0 0 2', '[rank 1] 1 0 2']


def test_options_of_a_command_reach_its_job(muster):
    words = ['run', '-n', '2', '--image', 'repo/train:2', '--cpu', '2', '--claim', 'kept:/results',
             '--timeout', '1h', '--dry-run', '-o', 'json', '--', 'true']
    text = muster.run(*words).stdout
    claim, end = json.JSONDecoder().raw_decode(text)
    training = json.loads(text[end:])
    container = training['spec']['pytorchReplicaSpecs']['Worker']['template']['spec']['containers'][0]
    assert claim['metadata']['name'] == 'kept'
    assert container['image'] == 'repo/train:2' and container['resources']['limits']['cpu'] == '2'
    assert container['volumeMounts'][0]['mountPath'] == '/results'
    assert training['spec']['runPolicy']['activeDeadlineSeconds'] == 3600
    done = muster.run('run', '-n', '1', '--image', 'repo/train:2', '--claim', 'kept:/results', '--', 'ls', '-d', '/results')
    assert done.stdout == '[rank 0] /results\n'


def test_dry_run_prints_a_job_that_runs(muster):
    words = ['run', '-n', '2', '--name', 'again', '--dry-run', '-o', 'yaml', '--', 'sh', '-c', 'echo hi']
    printed = muster.run(*words).stdout
    assert 'kind: PyTorchJob' in printed
    assert not muster.home.exists() or not (muster.home / 'api.sock').exists()
    done = muster.run('run', '-f', '-', stdin=printed)
    assert sorted(done.stdout.splitlines()) == ['[rank 0] hi', '[rank 1] hi']


@pytest.mark.parametrize('script, code, why', [
    ('echo bad weights; exit 3', 3, 'exited with code 3: "bad weights"'),
    ('sh -c "kill -SEGV \\$PPID"; sleep 1000', 139, 'signal 11'),
    ('exec no-such-program', 127, 'code 127'),
])
def test_failure_gives_its_exit_code_and_says_why(muster, script, code, why):
    path = muster.write('job.yaml', job('bad', shell('exec sleep 1000'), workers=1, worker_command=shell(script)))
    done = muster.run('run', '-f', path, code=code)
    last = [line for line in done.stderr.splitlines() if 'job bad failed' in line]
    assert len(last) == 1 and why in last[0] and 'bad-worker-0 (rank 1)' in last[0], done.stderr


@pytest.mark.parametrize('text, mode, code, why', [
    ('#!/bin/sh\r\necho hi\r\n', 0o755, 126, 'its first line ends with a carriage return: the file has Windows line ends'),
    ('#! /no/such -x\necho hi\n', 0o755, 126, 'its interpreter /no/such -x does not exist'),
    ('echo hi\n', 0o755, 126, 'exec format error (a script begins with #! and its interpreter)'),
    ('#!/bin/sh\n', 0o644, 126, 'permission denied'),
    (None, 0o755, 126, 'is a directory'),
])
def test_a_program_that_cannot_be_executed_says_why(muster, text, mode, code, why):
    program = muster.work / 'program'
    program.mkdir() if text is None else program.write_bytes(text.encode())
    program.chmod(mode)
    done = muster.run('run', '-n', '1', '--', './program', code=code)
    assert f'exec: "./program": {why}' in done.stderr.splitlines()[-1], done.stderr


def test_deadline_is_124(muster):
    path = muster.write('job.yaml', job('slow', shell('exec sleep 1000')))
    done = muster.run('run', '-f', path, '--timeout', '1s', code=124)
    assert 'active longer than specified deadline' in done.stderr


def started(muster, *words, **options):
    """Starts a run in the background, and waits until its rank 0 has written the file `up`."""
    process = muster.start('run', *words, **options)
    wait_for(lambda: (muster.work / 'up').exists() or process.poll() is not None, 'the rank starts')
    assert process.poll() is None, process.communicate()
    return process


@pytest.mark.parametrize('number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_ends_the_job_in_order(muster, number, code):
    script = 'trap "echo bye; exit 0" INT TERM; touch up; while :; do sleep 0.05; done'
    process = started(muster, '-f', muster.write('job.yaml', job('long', shell(script))))
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, err
    assert '[rank 0] bye' in out
    assert muster.condition('long') == 'Failed'


@pytest.mark.heavy
def test_the_last_words_of_a_late_worker_are_printed(muster):
    late = shell('sleep 6; yes a line of a worker that ends long after its master | head -c 20000000; echo; echo last')
    done = muster.run('run', '-f', muster.write('job.yaml', job('late', shell('true'), workers=1, worker_command=late)))
    assert done.stdout.endswith('\n[rank 1] last\n')


UNTIL_GO = 'echo first; touch up; while [ ! -e go ]; do sleep 0.05; done; echo last'


def test_nohup_keeps_the_job_when_the_terminal_closes(muster):
    process = started(muster, '-f', muster.write('job.yaml', job('long', shell(UNTIL_GO))), hangup=signal.SIG_IGN)
    process.send_signal(signal.SIGHUP)
    (muster.work / 'go').touch()
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert '[rank 0] last' in out


def test_a_full_disk_under_the_output_does_not_end_the_job(muster):
    with open('/dev/full', 'w', encoding='utf-8') as full:
        process = started(muster, '-f', muster.write('job.yaml', job('long', shell(UNTIL_GO))), stdout=full)
    for line in process.stderr:
        if 'cannot write the logs here: No space left on device' in line:
            (muster.work / 'go').touch()
    assert process.wait() == 74
    assert muster.condition('long') == 'Succeeded'
    assert muster.run('logs', 'long').stdout == '[rank 0] first\n[rank 0] last\n'


@pytest.mark.parametrize('closed, code', [('<&-', 0), ('2>&-', 0), ('>&-', 74)])
def test_a_closed_descriptor_is_no_place_for_a_socket(muster, closed, code):
    done = subprocess.run(['sh', '-c', f'exec {muster.binary} run -n 1 -- sh -c "echo hi; touch up" {closed}'],
                          cwd=muster.work, env=muster.env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout == ('' if closed == '>&-' else '[rank 0] hi\n')
    assert (muster.work / 'up').exists()


def test_the_operator_alone_begins_as_muster_does(muster):
    config = muster.write('config', {'clusters': [{'name': 'c', 'cluster': {'server': 'http://127.0.0.1:1'}}], 'users': [{'name': 'u', 'user': {}}],
                                     'contexts': [{'name': 'c', 'context': {'cluster': 'c', 'user': 'u'}}], 'current-context': 'c'})
    command = f'exec {muster.binary}-operator --kubeconfig {config} --health-probe-bind-address 127.0.0.1:0 --metrics-bind-address 0 <&- >&-'
    with subprocess.Popen(['sh', '-c', command], env=muster.env, stderr=subprocess.PIPE, text=True) as process:
        assert any('operator.listen' in line for line in process.stderr)
        assert [os.readlink(f'/proc/{process.pid}/fd/{fd}') for fd in (0, 1)] == ['/dev/null'] * 2
        ignored = re.search(r'^SigIgn:\s*(\w+)', pathlib.Path(f'/proc/{process.pid}/status').read_text(), re.M)[1]
        assert int(ignored, 16) >> (signal.SIGXFSZ - 1) & 1
        process.terminate()
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0


def test_interrupt_is_heard_while_nobody_reads(muster):
    script = shell('touch up; yes a line | head -c 4000000; touch said; exec sleep 1000')
    process = started(muster, '-f', muster.write('job.yaml', job('paged', script)))
    wait_for(lambda: (muster.work / 'said').exists(), 'more is said than a pipe holds')
    process.send_signal(signal.SIGINT)
    muster.wait_condition('paged', 'Failed')
    assert process.wait(timeout=LIMIT_S) == 130


def test_a_late_reader_gets_everything(muster):
    process = muster.start('run', '-n', '1', '--name', 'late', '--', 'seq', '1', '300000')
    muster.wait_condition('late', 'Succeeded')
    assert process.communicate(timeout=LIMIT_S)[0].splitlines() == [f'[rank 0] {n}' for n in range(1, 300001)]


def test_many_ranks_under_a_low_limit_of_open_files(muster):
    script = f"ulimit -Sn 64; exec {muster.binary} run -q -n 24 -- sh -c 'ulimit -Sn'"
    done = subprocess.run(['sh', '-c', script], cwd=muster.work, env=muster.env, capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f'[rank {r}] 64' for r in range(24))


def test_second_interrupt_kills_at_once(muster):
    script = 'trap "" INT TERM; touch up; while :; do sleep 0.05; done'
    stubborn = job('stubborn', shell(script))
    stubborn['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['terminationGracePeriodSeconds'] = 5 * LIMIT_S
    process = started(muster, '-f', muster.write('job.yaml', stubborn))
    process.send_signal(signal.SIGINT)
    wait_for(lambda: 'again' in process.stderr.readline(), 'it says that it ends')
    # Two signals within a tenth of a second count as one (timeout(1)).
    wait_for(lambda: process.poll() is not None or process.send_signal(signal.SIGINT), 'it ends at once')
    assert process.returncode == 130


def test_killed_runner_ends_its_job(muster):
    script = 'echo $$ > pid; touch up; exec sleep 1000'
    process = started(muster, '-f', muster.write('job.yaml', job('orphan', shell(script))))
    muster.run('up')
    process.send_signal(signal.SIGKILL)
    process.communicate()
    muster.wait_condition('orphan', 'Failed')
    reason = [c for c in muster.get('job', 'orphan')['status']['conditions'] if c['type'] == 'Failed'][0]['reason']
    assert reason == 'PyTorchJobStopped'


def test_json_is_the_only_output(muster):
    path = muster.write('job.yaml', job('report', shell('exec sleep 1000'), workers=1,
                                         worker_command=shell('echo log; exit 1')))
    done = muster.run('run', '-f', path, '-o', 'json', code=1)
    doc = json.loads(done.stdout)
    assert (doc['name'], doc['state'], doc['exitCode']) == ('report', 'Failed', 1)
    assert [r['name'] for r in doc['replicas']] == ['report-master-0', 'report-worker-0']
    assert doc['replicas'][1]['rank'] == 1 and doc['replicas'][1]['exitCode'] == 1 and doc['replicas'][1]['restarts'] == 0
    with open(doc['replicas'][1]['logFile'], encoding='utf-8') as log:
        assert log.read() == 'log\n'
    assert '[rank 1] log' in done.stderr


def test_json_tells_of_a_wrong_file_too(muster):
    bad = job('bad', shell('true'))
    bad['spec']['pytorchReplicaSpecs']['Master']['replicas'] = 2
    done = muster.run('run', '-f', muster.write('bad.yaml', bad), '-o', 'json', code=65)
    doc = json.loads(done.stdout)
    assert (doc['state'], doc['exitCode'], doc['replicas']) == ('Error', 65, [])
    assert 'nothing was created' in doc['message']


def test_finished_job_is_replaced_a_live_one_is_not(muster):
    path = muster.write('job.yaml', job('twice', shell('echo one')))
    muster.run('run', '-f', path)
    first = muster.get('job', 'twice')['metadata']['uid']
    muster.run('run', '-f', path)
    assert muster.get('job', 'twice')['metadata']['uid'] != first
    started(muster, '-f', muster.write('long.yaml', job('twice', shell('touch up; exec sleep 1000'))))
    done = muster.run('run', '-f', path, code=73)
    assert 'AlreadyExists' in done.stderr
    muster.wait_condition('twice', 'Running')


def test_wrong_file_creates_nothing(muster):
    bad = job('bad', shell('true'), workers=1)
    bad['spec']['pytorchReplicaSpecs']['Master']['replicas'] = 2
    bad['spec']['pytorchReplicaSpecs']['Worker']['replicas'] = -1
    done = muster.run('run', '-f', muster.write('bad.yaml', bad), code=65)
    assert 'bad.yaml:' in done.stderr and 'Master' in done.stderr and 'Worker' in done.stderr
    assert 'errors; nothing was created' in done.stderr
    assert not (muster.home / 'store.db').exists()


def test_several_jobs_give_the_worst_exit_code(muster):
    path = muster.write('jobs.yaml', job('good', shell('echo fine')), job('ill', shell('exit 5')),
                        job('worse', shell('exit 7')))
    done = muster.run('run', '-f', path, code=7)
    assert '[good rank 0] fine' in done.stdout
    for line in ('job good succeeded', 'job ill failed', 'job worse failed'):
        assert line in done.stderr


def test_results_are_copied(muster):
    volumes = [{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}]
    claim = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'kept'},
             'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}
    training = job('save', shell('echo weights > /results/model.pt; echo saved'), volumes=volumes,
                   mounts=[{'name': 'data', 'mountPath': '/results'}])
    done = muster.run('run', '-f', muster.write('job.yaml', claim, training), '--results', 'out')
    assert '/results is in' in done.stderr
    out = muster.work / 'out'
    assert (out / 'volumes/data/model.pt').read_text() == 'weights\n'
    assert (out / 'logs/save-master-0.log').read_text() == 'saved\n'
    assert json.loads((out / 'status.json').read_text())['metadata']['name'] == 'save'


def test_results_have_the_logs_of_every_container(muster):
    training = job('steps', shell('echo trained'))
    spec = training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']
    spec['initContainers'] = [{'name': 'fetch', 'image': 'test', 'command': shell('echo fetched; exit $(cat code)')}]
    (muster.work / 'code').write_text('0')
    path = muster.write('job.yaml', training)
    muster.run('run', '-f', path, '--results', 'good')
    logs = muster.work / 'good/logs'
    assert {p.name: p.read_text() for p in logs.iterdir()} == {'steps-master-0.log': 'trained\n',
                                                               'steps-master-0-fetch.log': 'fetched\n'}
    (muster.work / 'code').write_text('3')
    muster.run('run', '-f', path, '--results', 'bad', code=3)
    assert (muster.work / 'bad/logs/steps-master-0-fetch.log').read_text() == 'fetched\n'


def test_progress_bar_is_a_line_a_second(muster):
    script = ('import sys, time\n'
              'for i in range(40):\n'
              '    sys.stdout.write(f"\\r{i}%"); sys.stdout.flush(); time.sleep(0.03)\n'
              'print("\\r100%")\n')
    start = time.monotonic()
    done = muster.run('run', '-f', muster.write('job.yaml', job('bar', python(script))))
    seconds = time.monotonic() - start
    lines = done.stdout.splitlines()
    assert lines[-1] == '[rank 0] 100%'
    assert 2 <= len(lines) <= seconds + 2, lines


def test_environment_is_the_allowed_one(muster):
    path = muster.write('job.yaml', job('env', shell('echo "$RANK/$STRAY/$LANG/$PWD"')))
    done = muster.run('run', '-f', path, env={'RANK': '9', 'MASTER_ADDR': 'x', 'STRAY': 'y', 'LANG': 'C.UTF-8'})
    assert done.stdout == f'[rank 0] 0//C.UTF-8/{muster.work}\n'


def test_image_option_gives_the_command(muster):
    training = job('entry', None)
    container = training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]
    del container['command']
    container['args'] = ['from', 'args']
    path = muster.write('job.yaml', training)
    done = muster.run('run', '-f', path, '--image', 'test=echo entrypoint')
    assert done.stdout == '[rank 0] entrypoint from args\n'


def test_logs_of_cleaned_up_pods_are_not_lost(muster):
    path = muster.write('job.yaml', job('brief', shell('echo $RANK was here'), workers=3,
                                        run_policy={'cleanPodPolicy': 'All'}))
    done = muster.run('run', '-f', path)
    assert sorted(done.stdout.splitlines()) == [f'[rank {r}] {r} was here' for r in range(4)]


def test_each_restart_is_read_once(muster):
    script = 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; echo try $n; [ $n -ge 1 ]'
    path = muster.write('job.yaml', job('again', shell(script), restart='OnFailure'))
    done = muster.run('run', '-f', path)
    assert 'rank 0 was restarted (exit code 1)' in done.stderr
    assert done.stdout == '[rank 0] try 0\n[rank 0] try 1\n'


def test_closed_output_ends_the_run(muster):
    path = muster.write('job.yaml', job('yes', shell('while :; do echo y; sleep 0.01; done')))
    run = muster.start('run', '-f', path)
    head = subprocess.run(['head', '-1'], stdin=run.stdout, capture_output=True, text=True, check=True)
    run.stdout.close()
    run.stdout = open(os.devnull, encoding='utf-8')
    assert head.stdout == '[rank 0] y\n'
    assert run.wait(timeout=LIMIT_S) != 0


@pytest.mark.parametrize('words, code, message', [
    (['run'], 64, 'no command and no file given'),
    (['run', '-f', 'missing.yaml'], 66, 'missing.yaml'),
    (['run', '-n', '0', '--', 'true'], 64, '-n must be a number from 1'),
    (['run', '-n', '2'], 64, 'no command given'),
    (['run', '--', 'true'], 64, 'the number of ranks is missing'),
    (['run', '-n', '1', '--image', '=x', '--', 'true'], 64, 'IMAGE=COMMAND'),
    (['run', '-n', '1', '--share-gpu', '--no-gpu', '--', 'true'], 64, 'exclude each other'),
    (['run', '-n', '1', '--netwrk', 'private', '--', 'true'], 64, 'did you mean --network'),
    (['run', '-n', '1', '--backend', 'gloo', '--', 'true'], 64, '--backend must be muster'),
])
def test_wrong_command_lines_say_what_to_do(muster, words, code, message):
    assert message in muster.run(*words, code=code).stderr


def test_mounts_are_as_the_pod_says(muster):
    """subPathExpr, a read-only claim, and a key's own mode, in a real container."""
    script = ('echo mine > /results/me; if echo x > /kept/x; then exit 1; fi 2>/dev/null; '
              'test -x /settings/run && ! test -w /settings/data || test "$(id -u)" = 0; stat -c %a /settings/run /settings/data')
    claim = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'all'},
             'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}
    config = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'settings'}, 'data': {'run': '#!', 'data': 'x'}}
    items = [{'key': 'run', 'path': 'run', 'mode': 0o755}, {'key': 'data', 'path': 'data'}]
    training = job('mounts', shell(script), workers=1,
                   volumes=[{'name': 'all', 'persistentVolumeClaim': {'claimName': 'all'}},
                            {'name': 'kept', 'persistentVolumeClaim': {'claimName': 'all', 'readOnly': True}},
                            {'name': 'settings', 'configMap': {'name': 'settings', 'defaultMode': 0o440, 'items': items}}],
                   mounts=[{'name': 'all', 'mountPath': '/results', 'subPathExpr': 'rank-$(RANK)'},
                           {'name': 'kept', 'mountPath': '/kept'}, {'name': 'settings', 'mountPath': '/settings'}])
    muster.run('run', '-f', muster.write('job.yaml', claim, config, training))
    assert muster.run('logs', 'mounts-worker-0').stdout.split() == ['755', '440']
    muster.run('cp', 'mounts:/results/me', 'zero')
    folder = muster.home / 'volumes/default/all'
    assert sorted(p.name for p in folder.iterdir()) == ['rank-0', 'rank-1']
    assert (folder / 'rank-1/me').read_text() == 'mine\n'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root may start processes of another user')
def test_containers_run_as_the_user_they_ask_for(muster):
    training = job('user', shell('id -u; id -g'))
    spec = training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']
    spec['securityContext'] = {'runAsUser': 1, 'runAsGroup': 23456}
    spec['containers'][0]['securityContext'] = {'runAsUser': 12345}
    spec['containers'][0]['workingDir'] = '/'
    muster.run('run', '-f', muster.write('job.yaml', training))
    assert muster.run('logs', 'user-master-0').stdout == '12345\n23456\n'


@pytest.mark.skipif(os.geteuid() != 0, reason='NOT TESTED: only root can become a user who may make no control group')
def test_limits_that_cannot_be_kept_are_said(muster):
    os.chown(muster.folder, 65534, 65534)
    muster.binary = shutil.copy(muster.binary, muster.folder)
    muster.who = {'user': 65534, 'group': 65534, 'extra_groups': []}
    training = job('limited', shell('echo trained'), workers=2)
    for replica in training['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec']['containers'][0]['resources'] = {'limits': {'cpu': '1', 'memory': '1Gi'}}
    done = muster.run('run', '-f', muster.write('job.yaml', training))
    said = [line for line in done.stderr.splitlines() if 'isolation is degraded' in line and 'limits' in line]
    assert len(said) == 1 and 'the memory and cpu limits are not enforced' in said[0], done.stderr
