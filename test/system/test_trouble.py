"""What `run` prints about a job in trouble: endless restarts, ports that are in use, things that do not exist."""
import json
import signal

import pytest
from conftest import LIMIT_S, job, python, shell


def host_path(path, kind=None):
    return [{'name': 'data', 'hostPath': {'path': str(path), **({'type': kind} if kind else {})}}]


MOUNT = [{'name': 'data', 'mountPath': '/data'}]


@pytest.mark.parametrize('verb', ['run', 'create'])
@pytest.mark.parametrize('kind, says', [
    (None, 'does not exist on this machine (type: DirectoryOrCreate makes the directory)'),
    ('Directory', 'does not exist on this machine (type: DirectoryOrCreate makes the directory)'),
    ('File', 'does not exist on this machine (make the file, or correct the path)'),
])
def test_a_missing_host_path_is_an_error_before_anything_is_created(muster, verb, kind, says):
    training = job('lost', shell('true'), volumes=host_path(muster.work / 'none', kind), mounts=MOUNT)
    path = muster.write('job.yaml', training)
    done = muster.run(verb, '-f', path, code=65)
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if '"path"' in text)
    assert f'job.yaml:{line}:' in done.stderr and 'volumes[0].hostPath.path' in done.stderr, done.stderr
    assert f'{muster.work}/none {says}' in done.stderr
    assert 'nothing was created' in done.stderr
    assert not (muster.home / 'store.db').exists()


def with_main(made, **fields):
    """Sets these fields in each replica's container, and returns the job."""
    for replica in made['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec']['containers'][0].update(fields)
    return made


# A fault for which run refuses a job, or fails at once, is only a warning of lint, because another machine may have what is missing.
@pytest.mark.parametrize('training, says', [
    (job('lost', shell('true'), volumes=host_path('/no/such'), mounts=MOUNT),
     'volumes[0].hostPath.path: /no/such does not exist on this machine: muster run refuses the job here (type: DirectoryOrCreate'),
    (with_main(job('gpus', shell('true'), workers=2), resources={'limits': {'nvidia.com/gpu': 1}}),
     'the job needs 3 GPUs (nvidia.com/gpu), this machine has 2: muster run refuses the job here (muster run --share-gpu puts'),
    (job('ended', shell('true'), annotations={'muster.dev/stop': 'x'}), 'it would end the job at once: muster refuses the job (remove it)'),
    (job('long', shell(f'true {"x" * (128 << 10)}')),
     'command[2]: 128 KiB are too long: the kernel takes less than 128 KiB of a word, or of a variable with its name (put the text'),
    (with_main(job('folder', shell('true')), workingDir='/no/such'), 'workingDir: /no/such does not exist on this machine (muster run'),
])
def test_lint_warns_of_what_run_refuses_on_this_machine(muster, training, says):
    path = muster.write('job.yaml', training)
    done = muster.run('lint', path, env={'MUSTER_GPUS': '0,1'})
    line = done.stdout.splitlines()[-1]
    assert ': warning: ' in line and says in line and not line.startswith(f'{path}:0:'), done.stdout
    assert done.stderr == '0 errors, 1 warning\n'
    assert muster.run('run', '-f', path, '--timeout', '5s', env={'MUSTER_GPUS': '0,1'}, code=None).returncode != 0


@pytest.mark.parametrize('training', [
    with_main(job('folder', shell('true'), volumes=host_path('/tmp'), mounts=MOUNT), workingDir='/data'),
    with_main(job('folder', shell('true'), volumes=host_path('/tmp'), mounts=MOUNT), workingDir='/data/under/it'),
    job('shared', shell('true'), annotations={'muster.dev/gpu': 'share'}),
    with_main(job('none', shell('true'), workers=2, annotations={'muster.dev/gpu': 'none'}), resources={'limits': {'nvidia.com/gpu': 9}}),
    with_main(job('shared', shell('true'), workers=2, annotations={'muster.dev/gpu': 'share'}), resources={'limits': {'nvidia.com/gpu': '1'}}),
    with_main(job('image', shell('true'), annotations={'muster.dev/runtime': 'podman'}), workingDir='/in/the/image'),
])
def test_lint_does_not_warn_of_what_is_there(muster, training):
    path = muster.write('job.yaml', training)
    assert 'warning' not in muster.run('lint', path, env={'MUSTER_GPUS': '0,1'}).stdout


def test_as_many_words_as_the_kernel_takes(muster):
    words = [str(number) for number in range(60000)]
    training = with_main(job('many', shell('echo $#')), args=['x', *words])
    assert muster.run('run', '-f', muster.write('job.yaml', training)).stdout == '[rank 0] 60000\n'
    training = with_main(job('more', shell('echo $#')), args=[word * 10 for word in words])
    assert 'command and args are too long' in muster.run('run', '-f', muster.write('job.yaml', training), code=65).stderr


def test_a_host_path_of_another_type_is_an_error(muster):
    (muster.work / 'file').write_text('x')
    training = job('odd', shell('true'), volumes=host_path(muster.work / 'file', 'Directory'), mounts=MOUNT)
    done = muster.run('run', '-f', muster.write('job.yaml', training), code=65)
    assert f'{muster.work}/file is not a directory' in done.stderr


def test_directory_or_create_creates(muster):
    training = job('make', shell('echo kept > /data/x'), volumes=host_path(muster.work / 'a/b', 'DirectoryOrCreate'), mounts=MOUNT)
    muster.run('run', '-f', muster.write('job.yaml', training))
    assert (muster.work / 'a/b/x').read_text() == 'kept\n'
    training = job('touch', shell('echo kept > /data/x'), volumes=host_path(muster.work / 'a/file', 'FileOrCreate'),
                   mounts=[{'name': 'data', 'mountPath': '/data/x'}])
    muster.run('run', '-f', muster.write('job.yaml', training))
    assert (muster.work / 'a/file').read_text() == 'kept\n'


def test_a_job_whose_host_path_went_away_can_still_be_deleted(muster):
    folder = muster.work / 'here'
    folder.mkdir()
    training = job('left', shell('exec sleep 1000'), volumes=host_path(folder), mounts=MOUNT)
    path = muster.write('job.yaml', training)
    muster.run('create', '-f', path)
    muster.wait_condition('left', 'Running')
    folder.rename(muster.work / 'there')
    muster.run('delete', '-f', path)
    assert muster.condition('left') == ''


def test_a_host_path_that_went_away_ends_the_run(muster):
    folder = muster.work / 'here'
    folder.mkdir()
    training = job('gone', shell('true'), volumes=host_path(folder), mounts=MOUNT)
    spec = training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']
    spec['initContainers'] = [{'name': 'clean', 'image': 'test', 'command': shell(f'rmdir {folder}')}]
    done = muster.run('run', '-f', muster.write('job.yaml', training), code=1)
    assert f'warning: rank 0 waits: volume data: hostPath {folder} does not exist on this machine' in done.stderr
    last = done.stderr.splitlines()[-1]
    assert 'job gone failed' in last and f'hostPath {folder} does not exist' in last, done.stderr


FROM_MAP = [{'name': 'LR', 'valueFrom': {'configMapKeyRef': {'name': 'settings', 'key': 'lr'}}}]


@pytest.mark.parametrize('volumes, env, data, missing, command', [
    (None, FROM_MAP, None, 'configmap "settings" not found', 'kubectl create configmap settings --from-literal=KEY=VALUE'),
    (None, FROM_MAP, {'x': 'y'}, "couldn't find key lr in ConfigMap default/settings",
     "kubectl patch configmap settings --type merge -p '{\"data\": {\"lr\": \"VALUE\"}}'"),
    ([{'name': 'data', 'secret': {'secretName': 'token'}}], None, None, 'there is no secret "token" in namespace default',
     'kubectl create secret generic token --from-literal=KEY=VALUE'),
])
def test_what_a_pod_waits_for_is_said_with_the_command_that_makes_it(muster, volumes, env, data, missing, command):
    training = job('wait', shell('true'), volumes=volumes, mounts=MOUNT if volumes else None)
    if env:
        training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['env'] = env
    objects = [training]
    if data:
        objects.insert(0, {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'settings'}, 'data': data})
    run = muster.start('run', '-q', '-f', muster.write('job.yaml', *objects))
    said = []
    for line in run.stderr:
        said.append(line)
        if 'this makes it' in line:
            break
    assert 'warning: rank 0 waits: ' in said[-2] and missing in said[-2], said
    assert command in said[-1], said
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT_S)
    assert run.returncode == 130


STORM = 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n = 0 ] && echo no data in train.csv || echo port taken; exit 140'


def test_a_storm_of_restarts_is_explained_and_its_first_error_kept(muster):
    training = job('storm', shell('exec sleep 1000'), workers=1, restart='ExitCode', worker_command=shell(STORM))
    run = muster.start('run', '-f', muster.write('job.yaml', training))
    said = []
    for line in run.stderr:
        said.append(line)
        if 'nothing bounds' in line:
            break
    assert 'job storm restarts again and again; the first failure: storm-worker-0 (rank 1) ' in said[-2], said
    assert said[-2].endswith(': "no data in train.csv"\n'), said
    assert 'spec.runPolicy.backoffLimit' in said[-1]
    run.send_signal(signal.SIGINT)
    err = run.communicate(timeout=LIMIT_S)[1]
    last = err.splitlines()[-1]
    assert 'interrupted (Ctrl-C); first failure: storm-worker-0 (rank 1)' in last and '"no data in train.csv"' in last, err


def test_the_first_error_is_in_the_verdict_of_a_bounded_storm(muster):
    training = job('bounded', shell('exec sleep 1000'), workers=1, restart='ExitCode', worker_command=shell(STORM),
                   run_policy={'backoffLimit': 2})
    done = muster.run('run', '-f', muster.write('job.yaml', training), code=140)
    last = done.stderr.splitlines()[-1]
    assert 'job bounded failed' in last and '"no data in train.csv"' in last, done.stderr
    assert 'nothing bounds' not in done.stderr


def test_a_first_failure_is_not_said_twice(muster):
    training = job('late', shell('exit 9'), restart='OnFailure', run_policy={'activeDeadlineSeconds': 5})
    done = muster.run('run', '-f', muster.write('job.yaml', training), code=124)
    last = done.stderr.splitlines()[-1]
    assert last.lower().count('first failure') == 1 and 'exited with code 9' in last, done.stderr


def test_a_relative_host_path_is_one_error(muster):
    training = job('odd', shell('true'), volumes=host_path('data'), mounts=MOUNT)
    done = muster.run('run', '-f', muster.write('job.yaml', training), code=65)
    assert "must start with '/'" in done.stderr and '1 error; nothing was created' in done.stderr, done.stderr


BIND = ('import os, socket, time, pathlib\n'
        'rank = int(os.environ["RANK"])\n'
        'while rank and not pathlib.Path("port").exists(): time.sleep(0.02)\n'
        's = socket.socket()\n'
        's.bind(("127.0.0.1", 0 if rank == 0 else int(pathlib.Path("port").read_text())))\n'
        's.listen()\n'
        'pathlib.Path("new").write_text(str(s.getsockname()[1]))\n'
        'os.rename("new", "port")\n'
        'time.sleep(1000)\n')


def test_a_port_that_another_rank_has_is_explained(muster):
    training = job('ports', python(BIND), workers=1)
    done = muster.run('run', '-f', muster.write('job.yaml', training), code=1)
    lines = done.stderr.splitlines()
    assert 'job ports failed' in lines[-1] and 'Address already in use' in lines[-1], done.stderr
    hint = [line for line in lines if 'hint: the port is in use' in line]
    assert len(hint) == 1 and 'its own port' in hint[0] and '--network private' in hint[0], done.stderr


def test_the_verdict_is_the_last_line_and_paths_are_short(muster):
    volumes = [{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}]
    claim = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'kept'},
             'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}
    training = job('short', shell('true'), volumes=volumes, mounts=MOUNT)
    path = muster.write('job.yaml', claim, training)
    done = muster.run('run', '-f', path, '--results', muster.work / 'out', env={'HOME': str(muster.folder)})
    lines = done.stderr.splitlines()
    assert lines[-1].startswith('muster: job short succeeded after'), done.stderr
    assert 'muster:   logs: muster logs short' in lines
    assert 'muster:   results are in out' in lines
    assert 'muster:   /data is in ~/home/volumes/default/kept' in lines
    report = json.loads(muster.run('run', '-f', path, '-o', 'json').stdout)
    assert report['replicas'][0]['logFile'].startswith(str(muster.home))
