"""The guide of the Advanced Analytics Workspace: two terminals, data, the job, and the limits that the guide names."""
import functools
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading

import pytest
import torch

from seed import DATA, JOBS, LIMIT_S, LOSS, MNIST, SOURCE, finish, mnist, mnist_command, row, run_by_hand, wait_for

JOB = JOBS / 'seed-aaw.yaml'
NAME = 'pytorch-dist-mnist-gloo'
IMAGE = 'k8scc01covidacr.azurecr.io/scribner-pytorch_dist_mnist_gloo:latest'
FASHION = pathlib.Path('/usr/share/datasets/fashion-mnist')
FETCH = SOURCE / 'examples/data-from-script'


# ------------------------------------------------------------------------------------------------------ two terminals

@row('aaw-1')
def test_ranks_that_train_models_of_their_own_are_found_out(tmp_path):
    """Runs the script without the averaging, as if somebody had forgotten it."""
    forgetful = tmp_path / 'mnist.py'
    forgetful.write_text(MNIST.read_text().replace('            average_by_hand(model, world)', '            pass'))
    command = [sys.executable, forgetful, '--average', 'hand', '--images', '256', '--test-images', '500', '--world-size', '2',
               '--init-method', f'file://{tmp_path}/meeting', '--rank']
    outputs = finish([subprocess.Popen([*command, str(rank)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                      for rank in range(2)], code=1)
    assert all('the ranks hold different weights' in output for output in outputs)


@row('aaw-2')
def test_two_terminals_train_together(tmp_path):
    first, second = run_by_hand(tmp_path, 2, '--images', 1280)
    for output in first, second:
        assert output.startswith('Using distributed PyTorch with gloo backend\n')
    assert LOSS.search(first) and not LOSS.search(second)
    assert 'weights equal on 2 ranks' in first


@row('aaw-3')
def test_first_terminal_waits_for_the_second(tmp_path):
    flags = ['--world-size', 2, '--init-method', f'file://{tmp_path}/meeting', '--images', 64, '--test-images', 500]
    first = mnist('--rank', 0, *flags)
    assert first.stdout.readline() == 'Using distributed PyTorch with gloo backend\n'
    wait_for((tmp_path / 'meeting').exists, 'the first rank at the meeting point', 60)
    assert first.poll() is None
    rest, _ = finish([first, mnist('--rank', 1, *flags)])
    assert LOSS.search(rest)


@row('aaw-4')
def test_bare_init_process_group_finds_its_rank_in_the_environment(muster):
    backend = '' if int(torch.__version__.split('.')[0]) >= 2 else "'gloo'"
    script = muster.work / 'train.py'
    script.write_text('import torch.distributed as dist\n'
                      f'dist.init_process_group({backend})\n'
                      'print("rank", dist.get_rank(), "of", dist.get_world_size(), flush=True)\n'
                      'dist.barrier()\n')
    output = muster.run('run', '-n', 2, '--', 'python3', 'train.py').stdout
    assert sorted(re.findall(r'rank \d of \d', output)) == ['rank 0 of 2', 'rank 1 of 2']


# --------------------------------------------------------------------------------------------------------------- data

CLAIM = '''apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: training-data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME}
spec:
  pytorchReplicaSpecs:
    Master:
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: anything
              command: COMMAND
              volumeMounts: [{name: data, mountPath: /some/path/to/data}]
          volumes: [{name: data, persistentVolumeClaim: {claimName: training-data}}]
'''


@row('aaw-5')
def test_claim_loaded_by_one_job_feeds_the_next(muster):
    load = ['sh', '-c', f'cp {FASHION}/* /some/path/to/data']
    train = ['python3', str(MNIST), '--training-data', '/some/path/to/data', '--images', '64', '--test-images', '500']
    for name, command in ('load', load), ('train', train):
        (muster.work / 'job.yaml').write_text(CLAIM.replace('NAME', name).replace('COMMAND', json.dumps(command)))
        done = muster.run('run', '-f', 'job.yaml')
    assert '/some/path/to/data: effective batch size' in done.stdout


PER_WORKER = '''apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: own-disks}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      volumeClaimTemplates:
        - metadata: {name: data}
          spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
      template:
        spec:
          containers:
            - name: pytorch
              image: anything
              command: [sh, -c, 'mktemp -p /data; test $(ls /data | wc -l) = 1']
              volumeMounts: [{name: data, mountPath: /data}]
'''


@row('aaw-6')
def test_each_worker_has_a_claim_of_its_own(muster):
    (muster.work / 'job.yaml').write_text(PER_WORKER)
    muster.run('run', '-f', 'job.yaml')
    claims = [claim['metadata']['name'] for claim in muster.get('persistentvolumeclaims')]
    assert len(claims) == 2 and all(name.endswith(f'-{index}') for index, name in enumerate(sorted(claims))), claims


@pytest.fixture
def web():
    """Serves the data set on its own port; yields the address."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=FASHION))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    server.server_close()


def run_script(source, folder, *, path=None):
    """Runs train.sh with this source; returns what it printed."""
    env = {'PATH': f'{path or ""}:{pathlib.Path(sys.executable).parent}:/usr/bin:/bin', 'DATA_SOURCE': source, 'HOME': str(folder)}
    return subprocess.run(['sh', FETCH / 'train.sh', folder / 'local', '--images', '64', '--test-images', '500'], env=env, text=True, capture_output=True,
                          timeout=LIMIT_S, check=True).stdout


@row('aaw-7')
def test_script_downloads_and_trains(tmp_path, web):
    """The data comes from the web, from git, from MinIO and from a folder. A command with the name and the arguments of MinIO's client stands
    for the client."""
    repository = tmp_path / 'repository'
    repository.mkdir()
    for file in FASHION.iterdir():
        (repository / file.name).symlink_to(file)
    git = ['git', '-C', repository, '-c', 'user.name=t', '-c', 'user.email=t@example.test']
    for words in ['init', '-q'], ['add', '.'], ['commit', '-qm', 'data']:
        subprocess.run([*git, *words], check=True, capture_output=True)
    mc = tmp_path / 'mc'
    mc.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "cp --recursive my-minio-tenant/my/path/" ] && cp {FASHION}/* "$4"\n')
    mc.chmod(0o755)
    for number, source in enumerate([web, f'git+file://{repository}', 'minio:my-minio-tenant/my/path', str(FASHION)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert 'accuracy=' in run_script(source, folder, path=tmp_path)


@row('aaw-8')
def test_sample_as_printed_is_a_syntax_error_and_the_pattern_works(tmp_path, web):
    sample = (DATA / 'aaw-get-training-data.txt').read_text()
    with pytest.raises(SyntaxError) as error:
        compile(sample, 'sample', 'exec')
    assert error.value.lineno == 8
    compile(sample.replace('def __name__ == "__main__":', 'if __name__ == "__main__":'), 'sample', 'exec')
    done = subprocess.run([sys.executable, FETCH / 'train.py', web, tmp_path / 'data', '--images', '64', '--test-images', '500'], text=True,
                          capture_output=True, timeout=LIMIT_S, check=True)
    assert 'accuracy=' in done.stdout


@row('aaw-9')
def test_secret_reaches_the_script_by_its_environment(muster):
    muster.cwd = SOURCE
    output = muster.run('run', '-f', FETCH / 'pytorchjob.yaml').stdout
    assert '/mnt/data: effective batch size 128' in output and 'weights equal on 2 ranks' in output


# ---------------------------------------------------------------------------------------------------------------- job

@pytest.fixture(scope='module')
def finished(shared_muster):
    """The guide's job, run without GPUs (--no-gpu) and with a command that replaces the image's (--image)."""
    command = mnist_command('--images', 1280)
    done = shared_muster.run('run', '-f', JOB, '--no-gpu', '--image', f'{IMAGE}={command}', '--results', 'results')
    return shared_muster, done


@row('aaw-10', 'aaw-11')
def test_job_as_printed_is_valid_and_trains(finished):
    program, done = finished
    program.run('lint', JOB)
    assert 'Using distributed PyTorch with gloo backend' in done.stdout
    assert LOSS.search(done.stdout) and 'accuracy=' in done.stdout


@row('aaw-11')
def test_args_are_appended_to_the_command(muster):
    done = muster.run('run', '-f', JOB, '--no-gpu', '--image', f'{IMAGE}=echo called with')
    assert done.stdout.count('called with --backend gloo') == 2


@row('aaw-12')
def test_tabs_are_named(muster):
    done = muster.run('lint', DATA / 'aaw-note-4.yaml', code=65)
    said = done.stdout + done.stderr
    assert re.search(r'aaw-note-4\.yaml:2(:\d+)?: ', said) and 'tab' in said, said


@row('aaw-13')
def test_world_is_one_master_and_n_workers(muster):
    (muster.work / 'job.yaml').write_text(JOB.read_text().replace('replicas: 1  # <--- Note 6', 'replicas: 4'))
    done = muster.run('run', '-f', 'job.yaml', '--no-gpu', '--image', f"{IMAGE}=sh -c 'echo rank $RANK of $WORLD_SIZE'")
    assert sorted(re.findall(r'rank \d of \d', done.stdout)) == [f'rank {rank} of 5' for rank in range(5)]


@row('aaw-14')
def test_create_takes_a_file_without_f(muster):
    (muster.work / 'myfile.yaml').write_text(re.sub(r' *resources:\n *limits:\n *nvidia.*\n', '', JOB.read_text()))
    done = muster.run('create', 'myfile.yaml', '--image', f'{IMAGE}=true')
    assert done.stdout == f'pytorchjob.kubeflow.org/{NAME} created\n'


@row('aaw-15')
def test_get_pytorchjob(finished):
    lines = finished[0].run('get', 'pytorchjob').stdout.splitlines()
    assert lines[0].split() == ['NAME', 'STATE', 'AGE'] and lines[1].split()[:2] == [NAME, 'Succeeded']


@row('aaw-16')
def test_pods_carry_the_labels_of_the_old_operator(finished):
    lines = finished[0].run('get', 'pods', '-l', 'controller-name=pytorch-operator').stdout.splitlines()
    assert [line.split()[0] for line in lines] == ['NAME', f'{NAME}-master-0', f'{NAME}-worker-0']
    none = finished[0].run('get', 'pods', '-l', 'controller-name=somebody-else')
    assert NAME not in none.stdout


@row('aaw-17')
def test_logs_of_a_pod_are_followed_to_its_end(finished):
    assert 'accuracy=' in finished[0].run('logs', '-f', f'{NAME}-master-0').stdout


@row('aaw-18')
def test_describe_takes_a_pod_without_its_kind(finished):
    text = finished[0].run('describe', f'{NAME}-worker-0').stdout
    assert re.search(rf'^Name: +{NAME}-worker-0$', text, re.M) and 'Containers:' in text, text


@row('aaw-19')
def test_results_are_there_after_the_job(finished, muster):
    folder = finished[0].work / 'results'
    assert any('accuracy=' in path.read_text(errors='replace') for path in folder.rglob('*') if path.is_file()), list(folder.rglob('*'))
    muster.run('run', '-n', 1, '--name', 'results', '--', 'sh', '-c', 'echo 42 > answer')
    muster.run('cp', 'results:answer', 'copied')
    assert (muster.work / 'copied').read_text() == '42\n'


@row('aaw-20')
def test_only_the_master_tells_of_progress(finished):
    program, _ = finished
    assert LOSS.search(program.run('logs', f'{NAME}-master-0').stdout)
    assert not LOSS.search(program.run('logs', f'{NAME}-worker-0').stdout)


@row('aaw-21')
def test_run_is_a_step_of_a_pipeline(muster):
    done = muster.run('run', '-o', 'json', '-n', 2, '--name', 'step', '--', 'sh', '-c', 'echo log; exit 3', code=3)
    answer = json.loads(done.stdout)
    assert (answer['name'], answer['state'], answer['exitCode']) == ('step', 'Failed', 3)
    assert 'log' in done.stderr


# --------------------------------------------------------------------------------------------------------- batch size

SCALING = [  # ranks, images per step, steps per epoch, learning rate in proportion
    (1, 32, 4, '0.01'),
    (2, 64, 2, '0.02'),
    (4, 128, 1, '0.04'),
]


@row('aaw-22', 'aaw-23', 'aaw-24', 'aaw-25')
@pytest.mark.parametrize('ranks, effective, steps, rate', SCALING)
def test_effective_batch_size(tmp_path, ranks, effective, steps, rate):
    output = run_by_hand(tmp_path, ranks, '--images', 128, '--batch-size', 32, '--scale-lr')[0]
    assert (f'effective batch size {effective} (32 x {ranks} ranks), {steps} steps per epoch, 128 images per epoch, '
            f'learning rate {rate} ') in output


@row('aaw-23')
@pytest.mark.parametrize('kind, effective, steps, rate', [('weak', 64, 2, '0.02'), ('strong', 32, 4, '0.01')])
def test_scaling_jobs_print_it(muster, kind, effective, steps, rate):
    muster.cwd = SOURCE
    output = muster.run('run', '-f', SOURCE / f'examples/scaling/{kind}.yaml').stdout
    assert f'effective batch size {effective} ' in output and f'{steps} steps per epoch' in output and f'learning rate {rate} ' in output
