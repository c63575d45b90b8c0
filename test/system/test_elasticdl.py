"""elasticdl and `muster train`: the tutorial's command lines, the pods that they make, and the defects of ElasticDL.

In tests of the job around the coordinator, a shell replaces the coordinator.
"""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from conftest import LIMIT_S, SOURCE, Muster, wait_for
from program import BUILD

LONG_S = 4 * LIMIT_S  # two programs that import torch and train, on a machine that does other things

TUTORIAL = ['--image_name=elasticdl/elasticdl:v1.0.0', '--worker_image=elasticdl:mnist_pytorch', '--num_minibatches_per_task=2',
            '--num_workers=2', '--master_resource_request=cpu=0.2,memory=1024Mi', '--master_resource_limit=cpu=1,memory=2048Mi',
            '--worker_resource_request=cpu=0.3,memory=1024Mi', '--worker_resource_limit=cpu=1,memory=2048Mi',
            '--envs=USE_TORCH=true,HOROVOD_GLOO_TIMEOUT_SECONDS=60,PYTHONUNBUFFERED=true', '--job_name=test-mnist-allreduce',
            '--image_pull_policy=Never', '--distribution_strategy=AllreduceStrategy']
MASTER, WORKERS = 'elasticdl-test-mnist-allreduce-master', 'test-mnist-allreduce-edljob-worker-'


@pytest.fixture
def tool():
    muster = Muster()
    yield muster
    muster.close()


def elasticdl(muster, *words, code=0, env=None):
    """Runs the binary under its other name, elasticdl."""
    done = subprocess.run([muster.binary.parent / 'elasticdl', *map(str, words)], cwd=muster.work, env={**muster.env, **(env or {})},
                          capture_output=True, text=True, timeout=muster.limit_s, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f'{words}: {done.returncode}\n{done.stdout}{done.stderr}{muster.log()}'
    return done


def submit(muster, command, *words, master='exec sleep 600', env=None):
    """Creates the job of a command line, with a shell line in place of its coordinator, and returns its name."""
    text = muster.run('train', *TUTORIAL, f'--job_command={command}', *words, '--dry-run', '-o', 'json', env=env).stdout
    job = json.loads(text)
    container = job['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]
    container['command'] = ['/bin/bash', '-c', master]
    muster.run('create', '-f', muster.write('job.yaml', job))
    return job['metadata']['name']


def pods(muster):
    return {pod['metadata']['name']: pod for pod in muster.get('pods')}


def running(muster, *names):
    def all_run():
        found = pods(muster)
        return set(found) == set(names) and all(p['status'].get('phase') == 'Running' for p in found.values()) and found
    return wait_for(all_run, f'{names} running')


NOBODY = '''
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
'''


def test_force_use_kube_config_file(tool):
    """The flag selects the cluster of kubectl's file, at whose address nobody listens. Without the flag, or with false, the job runs here."""
    (tool.work / 'config').write_text(NOBODY)
    words, env = ['train', *TUTORIAL, '--job_command=true'], {'KUBECONFIG': str(tool.work / 'config')}
    for flag in ('--force_use_kube_config_file', '--force_use_kube_config_file=true'):
        assert 'http://127.0.0.1:1' in elasticdl(tool, *words, flag, code=69, env=env).stderr
    elasticdl(tool, *words, '--force_use_kube_config_file=false', env=env)
    assert [job['metadata']['name'] for job in tool.get('jobs')] == ['test-mnist-allreduce']


def test_the_tutorials_table_of_pods(tool):
    submit(tool, 'exec sleep 600')
    running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    lines = tool.run('get', 'pods').stdout.splitlines()
    assert lines[0].split() == ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE']
    assert [line.split()[:4] for line in lines[1:]] == [[name, '1/1', 'Running', '0'] for name in (MASTER, WORKERS + '0', WORKERS + '1')]


def test_what_a_worker_gets(tool):
    """Contract 15: a worker gets no variables of a process group, but a socket of this machine and the user's own variables."""
    folder = tool.folder / 'data'
    folder.mkdir()
    submit(tool, 'env > /data/worker-$WORKER_ID; pwd >> /data/worker-$WORKER_ID', f'--volume=host_path={folder},mount_path=/data')
    wait_for(lambda: all(pods(tool).get(f'{WORKERS}{i}', {}).get('status', {}).get('phase') == 'Succeeded' for i in (0, 1)), 'both over')
    for i in (0, 1):
        text = (folder / f'worker-{i}').read_text()
        env = dict(line.split('=', 1) for line in text.splitlines() if '=' in line)
        uid = tool.get('job', 'test-mnist-allreduce')['metadata']['uid']
        assert env['MUSTER_COORDINATOR'] == f'unix:{tool.home}/jobs/{uid}/coordinator.sock'
        assert env['MUSTER_MICRO_BATCHES'] == env['WORKER_NUM'] == '2'
        assert env['USE_TORCH'] == env['PYTHONUNBUFFERED'] == 'true' and env['HOROVOD_GLOO_TIMEOUT_SECONDS'] == '60'
        assert not env.keys() & {'RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'PET_RDZV_ENDPOINT'}
        assert text.splitlines()[-1] == str(tool.work)
    wait_for(lambda: tool.get('job', 'test-mnist-allreduce')['status']['replicaStatuses']['Worker'].get('succeeded') == 2, 'the job knows it')
    tool.wait_condition('test-mnist-allreduce', 'Running')  # the job does not end with its workers


def test_workers_join_and_leave_by_scale(tool):
    name = submit(tool, 'exec sleep 600')
    before = running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    assert 'the coordinator has not said anything yet' in tool.run('describe', 'job', name).stdout
    tool.run('scale', name, '--workers', '3')
    after = running(tool, MASTER, WORKERS + '0', WORKERS + '1', WORKERS + '2')
    assert all(after[pod]['metadata']['uid'] == before[pod]['metadata']['uid'] for pod in before)
    tool.run('scale', name, '--workers=1')
    running(tool, MASTER, WORKERS + '0')
    assert tool.condition(name) == 'Running'
    assert '--workers and --replicas are the same' in tool.run('scale', name, '--workers=1', '--replicas=2', code=64).stderr


def test_a_share_of_the_workers_has_a_high_priority(tool):
    """A PyTorchJob's workers have one template, so the job's annotation says which of them differ."""
    def priorities():
        return {name: pod['spec'].get('priorityClassName') for name, pod in pods(tool).items()}

    name = submit(tool, 'exec sleep 600', '--worker_pod_priority=high=0.5')
    running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    assert priorities() == {MASTER: None, WORKERS + '0': 'high', WORKERS + '1': 'low'}
    tool.run('scale', name, '--workers', '3')
    running(tool, MASTER, WORKERS + '0', WORKERS + '1', WORKERS + '2')
    assert priorities()[WORKERS + '2'] == 'low'
    text = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--worker_pod_priority=0.5', '--yaml', '-').stdout
    (tool.work / 'job.yaml').write_text(text.replace('high-priority-workers: "1"', 'high-priority-workers: half'))
    assert 'must be a number from 0 to 99999' in tool.run('lint', 'job.yaml', code=65).stdout


def test_a_killed_worker_is_relaunched_and_the_job_goes_on(tool):
    name = submit(tool, 'exec sleep 601')
    before = running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    workers = wait_for(lambda: [p for p, line in tool.processes() if line.split() == ['sleep', '601']][1:], 'two workers')
    os.kill(workers[0], signal.SIGKILL)
    uids = {pod['metadata']['uid'] for pod in before.values()}
    wait_for(lambda: any(pod['metadata']['uid'] not in uids for pod in pods(tool).values()), 'a new pod')
    after = running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    assert sum(after[pod]['metadata']['uid'] != before[pod]['metadata']['uid'] for pod in before) == 1
    tool.wait_condition(name, 'Running')


def test_a_worker_that_was_replaced_is_no_first_failure(tool):
    """Somebody ends the run later: its last line does not name the replaced worker."""
    text = tool.run('train', *TUTORIAL, '--job_command=exec sleep 603', '--dry-run', '-o', 'json').stdout
    job = json.loads(text)
    job['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['command'] = ['/bin/bash', '-c', 'exec sleep 600']
    process = tool.start('run', '-f', tool.write('job.yaml', job))
    before = running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    workers = wait_for(lambda: (found := [p for p, line in tool.processes() if line.split() == ['sleep', '603']])[1:] and found,
                       'two workers')
    os.kill(workers[0], signal.SIGKILL)
    uids = {pod['metadata']['uid'] for pod in before.values()}
    wait_for(lambda: any(pod['metadata']['uid'] not in uids for pod in pods(tool).values()), 'a new pod')
    running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LONG_S)
    assert 'was killed by signal 9' not in err.splitlines()[-1] and 'first failure' not in err


def test_why_a_job_has_failed_is_said_everywhere(tool):
    """Workers die of a record: the coordinator exits with 65, and train, get and describe print its sentence."""
    name, worker = 'test-mnist-allreduce', tool.binary.parent.parent / 'tests/elastic_worker'
    said = tool.run('train', *TUTORIAL, f"--job_command=MUSTER_TEST_POISON='41 crash' exec {worker} 97 2 4 2 0", code=None)
    assert said.returncode not in (0, None)
    why = '3 workers died, one after the other, of record 41, in epoch 1 of 2'
    status = tool.get('job', name)['status']
    assert f'is failed because its coordinator failed: {why}.' in status['conditions'][-1]['message']
    assert (status['elastic']['phase'], status['elastic']['message']) == ('Failed', why)
    assert why in tool.run('describe', 'job', name).stdout
    last = said.stderr.splitlines()[-1]
    assert f'its coordinator failed: {why}.' in last and last.count(why) <= 2  # twice if a worker failed first
    ended = pods(tool)[MASTER]['status']
    assert (ended['phase'], ended['containerStatuses'][0]['restartCount']) == ('Failed', 0), ended
    assert tool.run('logs', name, '--all').stdout.count('[master 0] muster: the job has failed: ') == 1


def test_a_record_that_crashes_workers_by_leases_is_set_aside(tool):
    """An option sets it aside; without it the job would fail. Killed workers are created again, and train all records but this one."""
    worker = tool.binary.parents[1] / 'tests' / 'shards_worker'
    command = f'--job_command=MUSTER_TEST_POISON=137 exec {worker} {tool.folder}/done-$$ 400 8 2 test'
    said = tool.run('train', *TUTORIAL, '--relaunch_on_worker_failure=4', '--set_aside', command).stdout
    assert 'set aside: record 137 of data set "test": 3 workers died of it, in epoch 1' in said
    done = [line for file in tool.folder.glob('done-*') for line in file.read_text().splitlines()]
    assert sorted(done) == sorted(f'{epoch} {record}' for epoch in range(2) for record in range(400) if record != 137)


def test_a_record_that_takes_too_much_memory_is_set_aside(tool):
    """Each worker has a control group of its own, in which the kernel counts the kills for lack of memory."""
    worker = tool.binary.parents[1] / 'tests' / 'shards_worker'
    command = f'--job_command=MUSTER_TEST_POISON=137 MUSTER_TEST_POISON_HOW=eat exec {worker} {tool.folder}/done-$$ 400 8 1 test'
    limits = ['--worker_resource_request=cpu=0.3,memory=64Mi', '--worker_resource_limit=cpu=1,memory=64Mi']
    said = tool.run('train', *TUTORIAL, *limits, '--relaunch_on_worker_failure=4', '--set_aside', command)
    if 'not enforced' in said.stderr:
        pytest.skip('no control group with a limit here')
    assert 'set aside: record 137 of data set "test": 3 workers died of it, in epoch 1' in said.stdout


def test_defect_21_a_traceback_fails_the_job_and_is_shown(tool):
    """In ElasticDL the job goes on with one worker less, and reports nothing."""
    name = submit(tool, f'if [ $WORKER_ID = 1 ]; then exec {sys.executable} -c "raise KeyError(7)"; fi; exec sleep 600')
    tool.wait_condition(name, 'Failed')
    message = tool.get('job', name)['status']['conditions'][-1]['message']
    assert f'{WORKERS}1 (rank 1) exited with code 1' in message
    assert 'KeyError: 7' in tool.run('logs', name, '--all').stdout
    wait_for(lambda: not any(p['status'].get('phase') == 'Running' for p in pods(tool).values()), 'the others are ended')


def test_a_worker_that_cannot_import_torch_fails_the_job(tool):
    """The job fails at once, although the coordinator waits for the worker, and its reason is the worker's message. The other worker's torch is
    intact."""
    torch = tool.folder / 'broken/torch/__init__.py'
    torch.parent.mkdir(parents=True)
    torch.write_text("raise ImportError('libtorch_cpu.so: cannot open shared object file')")
    line = f'if [ $WORKER_ID = 0 ]; then exec sleep 600; fi; PYTHONPATH=$PYTHONPATH:{tool.folder}/broken exec {sys.executable} -S -c "from muster.elastic import Job"'
    said = tool.run('train', *TUTORIAL, f'--job_command={line}', code=None)
    assert said.returncode == 1, said.stderr
    assert f'First failure: {WORKERS}1 (rank 1) exited with code 1: "ImportError: libtorch_cpu.so: cannot open' in said.stderr.splitlines()[-1]
    assert '[rank 1] ImportError: libtorch_cpu.so' in said.stdout


def test_how_far_a_job_is(tool):
    """describe and train show who trains, how much of the job is done, how fast, how long the rest takes, and what a recovery cost."""
    worker = tool.binary.parent.parent / 'tests/elastic_worker'
    process = tool.start('train', *TUTORIAL, f'--job_command=exec {worker} 97 100000 4 2 20')
    name = 'test-mnist-allreduce'
    elastic = lambda: tool.get('job', name)['status'].get('elastic', {})  # noqa: E731
    running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    wait_for(lambda: (now := elastic()).get('workers') == 2 and 'secondsLeft' in now, 'two workers train')
    os.kill(of_job(tool, worker)[0], signal.SIGKILL)
    wait_for(lambda: 'lost' in [each['kind'] for each in elastic().get('recoveries', [])], 'the others go on')
    wait_for(lambda: (now := elastic()).get('workers') == 2 and 'secondsLeft' in now, 'it is made anew')
    shown = tool.run('describe', 'job', name).stdout.split('  Elastic:\n')[1]
    for pattern in (r'Workers: +2', r'Generation: +\d', r'Epoch: +\d+', r'Epochs: +100000', r'Records: +\d+', r'Total Records: +9700000',
                    r'Records Per Second: +\d+', r'Seconds Left: +\d+', rf'Kind: +lost\n +Ms: +\d+\n +Worker: +{name}-edljob-worker-[01]'):
        assert re.search(pattern + '\n', shown), (pattern, shown)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LONG_S)
    assert re.search(r'generation \d+, 2 workers, epoch \d+ of 100000, [\d,]+ of 9,700,000 records, [\d,]+/s, .* left', out), out[-2000:]
    assert re.search(rf'recovered from the loss of {name}-edljob-worker-[01] in \d+ ms', out), out[-2000:]


def test_without_relaunches_the_job_goes_on(tool):
    name = submit(tool, 'if [ $WORKER_ID = 1 ]; then exit 3; fi; exec sleep 600', '--relaunch_on_worker_failure=0')
    wait_for(lambda: pods(tool).get(WORKERS + '1', {}).get('status', {}).get('phase') == 'Failed', 'worker 1 failed')
    wait_for(lambda: tool.condition(name) == 'Running', 'the job runs')


def test_defect_18_quotes_in_the_command(tool):
    folder = tool.folder / 'data'
    folder.mkdir()
    command = """printf '%s\\n' 'it'"'"'s' "a \\"b\\"" '$(X)' "$X" '$$' > /data/out-$WORKER_ID; mv /data/out-$WORKER_ID /data/$WORKER_ID"""
    submit(tool, command, '--num_workers=1', f'--volume=host_path={folder},mount_path=/data', '--envs=X=http://h/?a=b&c=$(d),Y=1,2')
    out = folder / '0'
    wait_for(out.exists, 'the worker has written')
    assert out.read_text().splitlines() == ["it's", 'a "b"', '$(X)', 'http://h/?a=b&c=$(d)', '$$']


def test_words_after_dashes_are_the_command(tool):
    """As with `muster run`, each word reaches the program unchanged, and the job is named after the script."""
    job = json.loads(tool.run('train', '--num_workers=3', '--dry-run', '-o', 'json', '--', 'python3', 'mine/gan.py', "it's", '$(X) $X', '').stdout)
    container = job['spec']['pytorchReplicaSpecs']['Worker']['template']['spec']['containers'][0]
    assert job['metadata']['name'] == 'gan'
    assert container['command'] == ['/bin/bash', '-c', "python3 mine/gan.py 'it'\\''s' '$$(X) $X' ''"]
    tool.run('train', '--job_name=other', '--dry-run', '--', 'true')
    assert 'given twice' in tool.run('train', '--job_command=true', '--', 'true', code=64).stderr
    assert "unexpected operand 'x'" in tool.run('train', 'x', '--', 'true', code=64).stderr
    assert 'no command given: muster train -- COMMAND' in tool.run('train', '--num_workers=2', '--', code=64).stderr
    assert 'did you mean --job_name?' in tool.run('train', '--name', 'x', code=64).stderr


def test_defect_18_log_file_path(tool):
    done = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--yaml=job.yaml', '--log_file_path=log')
    log = (tool.work / 'log').read_text()
    assert '--num_minibatches_per_task' in log and log.strip() in done.stderr
    elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--yaml=job.yaml', '--log_file_path=/no/such/log', code=73)


def test_defect_22_a_worker_has_its_grace_period(tool):
    """In ElasticDL it is 1 s, which is too short to hand work back."""
    folder = tool.folder / 'data'
    folder.mkdir()
    line = 'trap "sleep 2; touch /data/left; exit 0" TERM; touch /data/ready; while :; do sleep 0.1; done'
    name = submit(tool, line, '--num_workers=1', f'--volume=host_path={folder},mount_path=/data')
    wait_for((folder / 'ready').exists, 'it listens')
    tool.run('delete', 'job', name)
    wait_for((folder / 'left').exists, 'it has handed its work back')


def test_defect_17_unknown_flags(tool):
    for words, says in ((['train', '--wrokers=9'], 'unknown option --wrokers; did you mean --num_workers? (elasticdl train --help)'),
                        (['train', '--num_ps_pods=1'], 'ParameterServerStrategy'), (['trian'], "did you mean 'train'?"),
                        (['train', 'x'], "unexpected operand 'x'")):
        assert says in elasticdl(tool, *words, code=64).stderr
    assert elasticdl(tool, 'train', '--help').stdout.startswith('Usage: elasticdl train')
    assert elasticdl(tool, '--help').stdout.startswith('Usage: elasticdl COMMAND')
    assert not tool.home.exists()  # nothing was started


def test_yaml_holds_the_token_in_a_secret_alone(tool):
    elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--yaml', 'job.yaml', '--volume=host_path=/nowhere,mount_path=/data')
    path = tool.work / 'job.yaml'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret, job = path.read_text().split('\n---\n')
    token = re.search(r'token: "?([0-9a-f]{64})', secret)[1]
    assert token not in job and 'secretKeyRef' in job
    other = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--yaml', '-').stdout
    assert token not in other
    assert '/nowhere does not exist' in tool.run('lint', path).stdout
    assert tool.get('jobs') == []


def test_a_file_has_the_variables_of_the_shell_that_are_asked_for(tool):
    """A cluster's pods get them from the file, because its objects may be created from another shell."""
    env = {'DATA_USER': 'somebody', 'DATA_KEY': "it's", 'OTHER': 'no'}
    elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--yaml=job.yaml', '--populate_env_names=DATA_.*,NOT_SET', env=env)
    text = (tool.work / 'job.yaml').read_text()
    for name, value in (('DATA_USER', 'somebody'), ('DATA_KEY', "it's"), ('USE_TORCH', '"true"')):
        assert f'- name: {name}\n              value: {value}\n' in text.split('Worker:')[1]
    assert 'OTHER' not in text
    done = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--yaml=-', '--populate_env_names=DATA_[', env=env, code=64)
    assert "'DATA_[' is no regular expression" in done.stderr and done.stdout == ''


def test_two_jobs_of_one_name(tool):
    submit(tool, 'exec sleep 600')
    running(tool, MASTER, WORKERS + '0', WORKERS + '1')
    done = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', code=73)
    assert 'is running already (AlreadyExists)' in done.stderr and '--job_name' in done.stderr


def test_what_this_machine_lacks_is_said_before(tool):
    done = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--volume=host_path=/no/such/folder,mount_path=/data', code=65)
    assert '/no/such/folder' in done.stderr and 'nothing was created' in done.stderr
    assert tool.get('jobs') == []


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_python_is_the_python3_that_has_torch(tool):
    """PATH has two of them; the first has no torch and reports so, as importlib would."""
    first, second = tool.folder / 'a', tool.folder / 'b b'
    program(first / 'python3', '#!/bin/sh\nexit 1\n')
    program(second / 'python3', '#!/bin/sh\necho "the second: $2" >> "$OUT"\n')
    env = {'PATH': f'{first}:{second}', 'OUT': str(tool.folder / 'out')}
    elasticdl(tool, 'train', *TUTORIAL, '--num_workers=1', '--job_command=python -m train', '--populate_env_names=OU.', env=env)
    wait_for(lambda: 'the second: train' in (tool.folder / 'out').read_text(), 'the worker ran')


def test_a_folder_of_that_name_is_not_torch(tool):
    """The first python3 is a real one, without packages."""
    first, second = tool.folder / 'a', tool.folder / 'b'
    program(first / 'python3', f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    program(second / 'python3', '#!/bin/sh\necho "the second: $2" >> "$OUT"\n')
    (tool.work / 'torch').mkdir()
    env = {'PATH': f'{first}:{second}', 'OUT': str(tool.folder / 'out')}
    elasticdl(tool, 'train', *TUTORIAL, '--num_workers=1', '--job_command=python -m train', '--populate_env_names=OU.', env=env)
    wait_for(lambda: (tool.folder / 'out').exists() and 'the second: train' in (tool.folder / 'out').read_text(), 'the worker ran')


def test_a_cluster_spec_needs_a_python3_with_kubernetes(tool):
    """Specs that are run are tested in test/kubernetes/test_cluster_spec.py."""
    (tool.work / 'spec.py').write_text('def with_pod(pod):\n    return pod\n')
    env = {'PATH': str(program(tool.folder / 'a' / 'python3', '#!/bin/sh\nexit 1\n').parent)}
    said = elasticdl(tool, 'train', *TUTORIAL, '--job_command=true', '--cluster_spec=spec.py', env=env, code=66).stderr
    assert 'no python3 of PATH has the package kubernetes: pip install kubernetes; --cluster_spec_json' in said
    assert 'none.py: No such file' in tool.run('train', *TUTORIAL, '--job_command=true', '--cluster_spec=none.py', env=env, code=66).stderr
    assert tool.get('jobs') == []


def test_zoo(tool):
    said = elasticdl(tool, 'zoo', 'init', '--extra_pypi_index=http://packages.example').stdout
    assert 'Dockerfile' in said and 'model_zoo/example.py' in said
    compile((tool.work / 'model_zoo/example.py').read_text(), 'example.py', 'exec')
    assert (tool.work / 'Dockerfile').read_text().splitlines() == [
        'FROM python:3.11', 'RUN pip install --extra-index-url=http://packages.example torch', 'COPY model_zoo model_zoo',
        'ENV PYTHONUNBUFFERED=1']
    elasticdl(tool, 'zoo', 'init', code=73)
    none = {'PATH': str(tool.folder / 'none')}
    assert 'neither is on PATH' in elasticdl(tool, 'zoo', 'build', '.', '--image=x:1', env=none, code=66).stderr
    assert 'neither is on PATH' in elasticdl(tool, 'zoo', 'push', 'x:1', env=none, code=66).stderr
    docker = program(tool.folder / 'bin/docker', '#!/bin/sh\necho "$@"; exit 3\n')
    env = {'PATH': f'{docker.parent}:/usr/bin:/bin'}
    assert elasticdl(tool, 'zoo', 'build', '.', '--image=x:1', env=env, code=3).stdout == 'build -t x:1 -- .\n'
    assert elasticdl(tool, 'zoo', 'push', 'x:1', env=env, code=3).stdout == 'push x:1\n'
    for words in (['zoo'], ['zoo', 'biuld', '.'], ['zoo', 'build', '.'], ['zoo', 'push'], ['zoo', 'push', 'x', '--image=y'],
                  ['zoo', 'init', '--base_image=a b'], ['zoo', 'init', '--model_zoo=/etc']):
        elasticdl(tool, *words, env=none, code=64)


def test_the_zoos_image_has_the_cluster_spec(tool):
    """As in ElasticDL, a spec from another folder is copied beside the Dockerfile, but never over another file."""
    spec, dockerfile = tool.folder / 'spec.py', tool.work / 'Dockerfile'
    spec.write_text('cluster = 1\n')
    assert 'there is no --cluster_spec none.py' in elasticdl(tool, 'zoo', 'init', '--cluster_spec=none.py', code=66).stderr
    for _ in range(2):
        elasticdl(tool, 'zoo', 'init', f'--cluster_spec={spec}')
        assert 'COPY spec.py /cluster_spec/\n' in dockerfile.read_text() and (tool.work / 'spec.py').read_text() == 'cluster = 1\n'
        dockerfile.unlink()
    spec.write_text('cluster = 2\n')
    assert 'another spec.py here' in elasticdl(tool, 'zoo', 'init', '--cluster_spec=../spec.py', code=73).stderr
    assert not dockerfile.exists()
    (tool.work / '..spec.py').touch()
    for name in ('./spec.py', '..spec.py'):
        elasticdl(tool, 'zoo', 'init', f'--cluster_spec={name}')
        assert f'COPY {name} /cluster_spec/\n' in dockerfile.read_text()
        dockerfile.unlink()


def keep(muster, *words, code):
    return muster.run('keep', '--', *words, code=code)


def test_a_coordinator_that_is_killed_starts_again_at_once(tool):
    """A kubelet would wait for 10 s before the second start."""
    folder = tool.folder / 'data'
    folder.mkdir()
    process = tool.start('keep', '--', 'bash', '-c', f'echo $$ >> {folder}/pids; exec sleep 602')
    for count in (1, 2, 3, 4):
        pids = wait_for(lambda: (p := folder / 'pids').exists() and len(p.read_text().split()) == count and p.read_text().split(),
                        f'start {count}')
        if count < 4:
            os.kill(int(pids[-1]), signal.SIGKILL)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=tool.limit_s) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids[-1]), 0)


def test_a_coordinator_that_has_ended_does_not_start_again(tool):
    keep(tool, 'sh', '-c', 'exit 7', code=7)
    keep(tool, 'true', code=0)
    keep(tool, '/no/such/program', code=127)
    keep(tool, '/etc/passwd', code=126)
    assert keep(tool, 'sh', '-c', 'kill -9 $$', code=137).stderr.count('starts again') == 9
    tool.run('keep', code=64)


def torch_path():
    """Returns the python3 that has torch, and a PATH with it and without `python`, as on Debian."""
    python = subprocess.run([SOURCE / 'tools/python-with-torch'], capture_output=True, text=True, check=True).stdout.strip()
    return python, f'{pathlib.Path(python).parent}:/usr/bin:/bin'


def make_zoo(tool, epochs, pause_s):
    elasticdl(tool, 'zoo', 'init')
    path = tool.work / 'model_zoo/example.py'
    text = path.read_text().replace('num_epochs=2', f'num_epochs={epochs}').replace('    return loss\n', f'    time.sleep({pause_s})\n    return loss\n')
    path.write_text(text.replace('import sys\n', 'import sys\nimport time\n'))


LEAN = ['--job_name=example', '--num_workers=2', '--worker_resource_request=', '--master_resource_request=']


def test_the_zoos_model_is_trained_to_the_end(tool):
    _, path = torch_path()
    make_zoo(tool, 2, 0)
    command = 'python -m model_zoo.example; code=$?; printenv MUSTER_COORDINATOR_TOKEN > token-$WORKER_ID; exit $code'
    done = elasticdl(tool, 'train', *LEAN, f'--job_command={command}', env={'PATH': path})
    assert 'job example is submitted: pods elasticdl-example-master and example-edljob-worker-0 to 1' in done.stderr
    tool.wait_condition('example', 'Succeeded', LONG_S)
    logs = tool.run('logs', 'example').stdout
    for line in ('epoch 1: 6,400 records committed', 'epoch 2: 6,400 records committed', 'done: 12,800 records'):
        assert line in logs
    assert len(re.findall(r'weights \[\[', logs)) == 2
    tokens = {(tool.work / f'token-{i}').read_text().strip() for i in (0, 1)}
    assert len(tokens) == 1 and len(tokens.copy().pop()) == 64
    objects = tool.run('get', 'pytorchjobs,pods,secrets,configmaps,events', '-o', 'json').stdout
    assert tokens.pop() not in objects
    elasticdl(tool, 'train', *LEAN, '--job_command=exit 3', env={'PATH': path})  # the finished job is replaced
    tool.wait_condition('example', 'Failed', LONG_S)


def of_job(tool, *start):
    """Returns the PIDs of the processes whose first words are `start`."""
    return [pid for pid, line in tool.processes() if line.split()[:len(start)] == list(map(str, start))]


def test_a_limit_of_steps_ends_the_job_as_a_success(tool):
    """The limit is in the middle of an epoch: the workers' programs go on after their loops, as they do when every record is trained."""
    _, path = torch_path()
    make_zoo(tool, 2, 0)
    done = tool.run('train', *LEAN, '--max_step=3', '--job_command=python -m model_zoo.example', env={'PATH': path}, limit_s=LONG_S)
    assert 'weights ' in done.stdout
    assert re.search(r'limit: training ends after 3 steps: \d+ of [\d,]+ records are trained', done.stdout)
    elastic = tool.get('job', 'example')['status']['elastic']
    assert (elastic['phase'], elastic['steps'], elastic['maxSteps'], elastic['records']) == ('Done', 3, 3, elastic['totalRecords'])
    assert re.search(r'\n +Max Steps: +3\n', tool.run('describe', 'job', 'example').stdout)


def write_job(muster, command, path):
    """Writes a job whose coordinator waits for both workers, however long they take to import torch. By default it begins with one after 30 s."""
    text = muster.run('train', *LEAN, f'--job_command={command}', '--dry-run', '-o', 'json', env={'PATH': path}).stdout
    job = json.loads(text)
    containers = {role: spec['template']['spec']['containers'][0] for role, spec in job['spec']['pytorchReplicaSpecs'].items()}
    containers['Master']['command'] += ['--first-wait', '1h']
    for container in containers.values():
        container['env'].append({'name': 'MUSTER_COORDINATOR_TOKEN', 'value': 'ab' * 32})
    return muster.write('job.yaml', job)


LATE = '''
import os
import signal
import time

import torch
import muster.elastic

again = os.path.exists(f'killed-{os.environ["WORKER_ID"]}')
while again and not os.path.exists(os.environ['MUSTER_COORDINATOR'].removeprefix('unix:') + '.done'):
    time.sleep(0.05)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = muster.elastic.Job(model, optimizer)
loader = job.loader(torch.utils.data.TensorDataset(torch.ones(64, 2)), batch_size=4, epochs=2)
for epoch in job.epochs():
    for number, (data,) in enumerate(loader):
        if os.environ['WORKER_ID'] == '1' and number == 2:
            open('killed-1', 'w').close()
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(data).mean().backward()
        optimizer.step()
print('trained', flush=True)
'''


def test_a_worker_that_is_back_when_the_job_is_done_does_not_fail_it(tool):
    """Nor does it go on with an untrained model. The end of the job may end the worker before it prints that the job was done, so the test
    starts it once more."""
    python, path = torch_path()
    (tool.work / 'late.py').write_text(LATE)
    tool.run('create', '-f', write_job(tool, f'exec {python} late.py', path))
    tool.wait_condition('example', 'Succeeded', LONG_S)
    logs = tool.run('logs', 'example').stdout
    assert '1 lost' in logs and 'recovered from the loss of example-edljob-worker-1 in ' in logs
    elastic = tool.get('job', 'example')['status']['elastic']
    assert (elastic['phase'], elastic['lost'], elastic['records'], elastic['totalRecords']) == ('Done', 1, 128, 128)
    assert ('lost', 'example-edljob-worker-1') in [(each['kind'], each['worker']) for each in elastic['recoveries']]
    assert re.search(r'Elastic:\n +Epoch: +2\n', tool.run('describe', 'job', 'example').stdout)
    assert logs.count('trained\n') == 1
    where = re.search(r'coordinator: listening at (unix:\S+)', logs).group(1)
    mark = pathlib.Path(where.removeprefix('unix:') + '.done')  # it was deleted with the job's folder
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    env = {**tool.env, 'PATH': path, 'PYTHONPATH': str(BUILD / 'python'), 'WORKER_ID': '1', 'MUSTER_COORDINATOR': where, 'MUSTER_COORDINATOR_TOKEN': 'ab' * 32}
    late = subprocess.run([python, 'late.py'], cwd=tool.work, env=env, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert (late.returncode, late.stdout) == (0, 'muster.elastic: the job was done before this worker had joined it\n'), late.stderr


PREEMPTED = '''
import os
import time

import torch
import muster.elastic

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = muster.elastic.Job(model, optimizer)
loader = job.loader(torch.utils.data.TensorDataset(torch.ones(97, 2)), batch_size=4, epochs=100)
for epoch in job.epochs():
    for (data,) in loader:
        optimizer.zero_grad()
        model(data).mean().backward()
        time.sleep(0 if os.path.exists('go') else 0.05)
        optimizer.step()
print('finished', flush=True)
'''


@pytest.mark.heavy
@pytest.mark.parametrize('language', ['C', 'Python'])
def test_preempted_workers_cost_no_try(tool, language):
    """Both get SIGTERM, one after the other, in a job that tolerates no failure: the other worker gets their work, and they are created again."""
    python, path = torch_path()
    (tool.work / 'preempted.py').write_text(PREEMPTED)
    worker = tool.binary.parent.parent / 'tests/elastic_worker'
    words = [python, 'preempted.py'] if language == 'Python' else [worker, '97', '100', '4', '2', '50']
    job = json.loads(pathlib.Path(write_job(tool, f'MUSTER_TEST_GO=go exec {" ".join(map(str, words))}', path)).read_text())
    job['spec']['runPolicy']['backoffLimit'] = 0
    tool.run('create', '-f', tool.write('job.yaml', job))
    elastic = lambda: tool.get('job', 'example')['status'].get('elastic', {})  # noqa: E731
    two = lambda: (now := elastic()).get('workers') == 2 and now['steps'] > 0 and now  # noqa: E731
    before, first = wait_for(two, 'two workers train', LONG_S), of_job(tool, *words)
    for number, pid in enumerate(first):
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: (now := two()) and now['generation'] >= before['generation'] + 2 * number + 2, 'another one trains', LONG_S)
    (tool.work / 'go').touch()
    tool.wait_condition('example', 'Succeeded', LONG_S)
    status = tool.get('job', 'example')['status']
    assert len(first) == 2 and status['counters'].get('failures', 0) == 0
    assert sorted(each['remakes'] for each in status['counters']['replicas'].values()) == [1, 1]
    assert (status['elastic']['lost'], status['elastic']['records']) == (0, 9700)
    assert [each['kind'] for each in status['elastic']['recoveries']].count('left') == 2
    logs = tool.run('logs', 'example').stdout
    assert logs.count('finished') == 2 and 'epoch 100: 97 records committed' in logs


@pytest.mark.heavy
def test_a_model_is_trained_evaluated_and_predicts(tool):
    """With real pictures, the accuracy after training and the accuracy of an evaluation equal that of predictions.csv, which has each picture
    once."""
    python, path = torch_path()
    env = {'PATH': path}
    example = SOURCE / 'examples/elastic-mnist'
    shutil.copytree(example / 'model_zoo', tool.work / 'model_zoo')
    subprocess.run([python, example / 'write_pictures.py', '--images', '1400', tool.work / 'data'], check=True, capture_output=True)
    data, small = tool.work / 'data/mnist_png', '--width 4'
    elasticdl(tool, 'train', *LEAN, '--job_command=python -m model_zoo.mnist.mnist_pytorch --num_epochs 2 --loader_workers 0 --output model '
              f'--training_data={data}/training --validation_data={data}/testing {small}', env=env)
    tool.wait_condition('example', 'Succeeded', LONG_S)
    (count_trained, trained), = re.findall(r'mnist_validation: ([\d,]+) records evaluated: correct (\d+)', tool.run('logs', 'example').stdout)

    command = f'--job_command=python -m model_zoo.mnist.mnist_tasks --output predictions {small}'
    elasticdl(tool, 'evaluate', *LEAN, command, f'--validation_data={data}/testing', '--checkpoint_dir_for_init=model', env=env)
    tool.wait_condition('example', 'Succeeded', LONG_S)
    logs = tool.run('logs', 'example').stdout
    said = set(re.findall(r'evaluation: average loss ([0-9.]+), accuracy ([0-9.]+) \((\d+) of (\d+)\)', logs))
    (_, accuracy, correct, count), = said
    assert int(count) == int(count_trained.replace(',', '')) and abs(int(correct) - int(trained)) <= 1  # the order of the sums differs
    assert accuracy == f'{int(correct) / int(count):.4f}' and f'mnist_validation: {int(count):,} records evaluated: correct {correct} ' in logs

    elasticdl(tool, 'predict', *LEAN, command, f'--prediction_data={data}/testing', '--checkpoint_dir_for_init=model', env=env)
    tool.wait_condition('example', 'Succeeded', LONG_S)
    with open(tool.work / 'predictions/predictions.csv', newline='') as file:
        lines = list(csv.DictReader(file))
    assert [int(line['record']) for line in lines] == list(range(int(count)))
    assert len({line['picture'] for line in lines}) == int(count)
    right = sum(pathlib.Path(line['picture']).parent.name == line['label'] for line in lines)
    assert right == int(correct)


@pytest.mark.heavy
def test_a_worker_and_the_coordinator_are_killed_and_every_record_counts_once(tool):
    python, path = torch_path()
    make_zoo(tool, 3, 0.03)
    tool.env['PATH'] = path
    process = tool.start('run', '-f', write_job(tool, f'exec {python} -m model_zoo.example', path), '-o', 'json')
    log = lambda: tool.run('logs', 'example', code=None).stdout  # noqa: E731
    wait_for(lambda: 'generation 1, 2 workers, epoch 1 of 3' in log(), 'two workers train', LONG_S)
    os.kill(of_job(tool, tool.binary, 'coordinator')[0], signal.SIGKILL)
    wait_for(lambda: 'term 2' in log(), 'the coordinator is back', LONG_S)
    os.kill(of_job(tool, python, '-m', 'model_zoo.example')[0], signal.SIGKILL)
    wait_for(lambda: 'lost ' in log(), 'the worker is missed', LONG_S)  # as a worker that ended, or never joined term 2
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    assert json.loads(out)['state'] == 'Succeeded'
    for epoch in range(1, 4):
        assert f'epoch {epoch}: 6,400 records committed' in log()
    assert 'done: 19,200 records' in log()
