"""Every other verb, with the real controller."""
import json
import os
import re
import signal
import subprocess

import pytest
from conftest import BUILD, LIMIT_S, SOURCE, job, shell, wait_for

CLAIM = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'kept'},
         'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}


def submit(muster, *words, name='mnist', **options):
    """Creates a job, and waits until it runs."""
    options.setdefault('command', shell('echo started; exec sleep 1000'))
    path = muster.write('job.yaml', job(name, options.pop('command'), **options))
    muster.run('create', '-f', path, *words)
    muster.wait_condition(name, 'Running')


def test_create_takes_a_file_as_in_the_seeds(muster):
    path = muster.write('job.yaml', job('mnist', shell('exec sleep 1000')))
    assert muster.run('create', path).stdout == 'pytorchjob.kubeflow.org/mnist created\n'
    assert 'already exists' in muster.run('create', '-f', path, code=73).stderr


def test_get_forms_of_the_seeds(muster):
    submit(muster, workers=1)
    head, row = muster.run('get', 'pytorchjob').stdout.splitlines()
    assert head.split() == ['NAME', 'STATE', 'AGE'] and row.split()[:2] == ['mnist', 'Running']
    pods = muster.run('get', 'pods', '-l', 'controller-name=pytorch-operator').stdout
    assert [line.split()[0] for line in pods.splitlines()[1:]] == ['mnist-master-0', 'mnist-worker-0']
    assert muster.run('get', 'pods', '-o', 'name').stdout.split() == ['pod/mnist-master-0', 'pod/mnist-worker-0']
    assert 'mnist' in muster.run('get', 'job/mnist', '-o', 'yaml').stdout
    assert muster.run('get', 'pods', '-n', 'other').stderr == 'No resources found in other namespace.\n'
    assert 'default' in muster.run('get', 'jobs,pods', '-A').stdout
    tables = [[line.split()[0] for line in table.splitlines()] for table in muster.run('get', 'all').stdout.split('\n\n')]
    assert tables == [['NAME', 'mnist-master-0', 'mnist-worker-0']] * 2 + [['NAME', 'mnist']]
    assert muster.run('get', 'secrets,all', '-o', 'name').stdout == muster.run('get', 'all', '-o', 'name').stdout != ''
    assert 'did you mean' in muster.run('get', 'podz', code=64).stderr


def test_get_watch_prints_changes(muster):
    muster.run('up')
    watch = muster.start('get', 'jobs', '-w')
    submit(muster)
    wait_for(lambda: 'Running' in watch.stdout.readline(), 'the watch shows the running job')
    watch.send_signal(signal.SIGKILL)


def test_describe_has_the_sections_of_the_seed(muster):
    submit(muster, workers=1)
    text = muster.run('describe', 'pytorchjob', 'mnist').stdout
    sections = [line.split(':')[0] for line in text.splitlines() if line and not line[0].isspace()]
    assert sections == ['Name', 'Namespace', 'Labels', 'Annotations', 'API Version', 'Kind', 'Metadata', 'Spec', 'Status',
                        'Events'], text
    assert 'Created pod: mnist-master-0' in text
    pod = muster.run('describe', 'mnist-worker-0').stdout
    assert 'Controlled By:' in pod and 'RANK:' in pod


def test_logs_of_pods_and_jobs(muster):
    muster.run('run', '-f', muster.write('job.yaml', job('say', shell('echo 1; echo 2; echo $RANK'), workers=1)))
    assert muster.run('logs', 'say-worker-0').stdout == '1\n2\n1\n'
    lines = muster.run('logs', 'say').stdout.splitlines()
    for rank in (0, 1):
        assert [line for line in lines if line.startswith(f'[rank {rank}]')] == [f'[rank {rank}] {x}' for x in ('1', '2', rank)]
    assert len(lines) == 6
    assert sorted(muster.run('logs', 'say', '--tail', '1').stdout.splitlines()) == ['[rank 0] 0', '[rank 1] 1']
    assert muster.run('logs', '-l', 'training.kubeflow.org/replica-type=worker').stdout.startswith('[rank 1] 1')
    assert muster.run('logs', 'say-master-0', '--timestamps', '--tail=1').stdout.split()[0].endswith('Z')
    assert "no job or pod 'nothing'" in muster.run('logs', 'nothing', code=66).stderr
    assert ("no job or pod 'mnist:1' in namespace default; logs takes the pod of rank 1 by its name, which muster get pods shows"
            in muster.run('logs', 'mnist:1', code=66).stderr)


def test_logs_and_files_outlast_the_pods(muster):
    training = job('gone', shell('echo "rank $RANK"; echo deep > /results/model.$RANK'), workers=1,
                   run_policy={'cleanPodPolicy': 'All'},
                   volumes=[{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}],
                   mounts=[{'name': 'data', 'mountPath': '/results'}])
    muster.run('create', muster.write('job.yaml', CLAIM, training))
    muster.wait_condition('gone', 'Succeeded')
    wait_for(lambda: not muster.get('pods'), 'the pods are cleaned up')
    both = ['[rank 0] rank 0', '[rank 1] rank 1']
    for words in (['gone'], ['-f', 'gone'], ['gone', '--all'], ['--all'], ['-l', 'training.kubeflow.org/job-name=gone']):
        assert sorted(muster.run('logs', *words).stdout.splitlines()) == both, words
    assert muster.run('logs', 'gone-worker-0', '--tail', '1').stdout == 'rank 1\n'
    assert muster.run('logs', '-f', 'gone-worker-0').stdout == 'rank 1\n'
    assert 'no previous' in muster.run('logs', 'gone', '--previous', code=66).stderr
    muster.run('cp', 'gone:/results/model.0', 'zero')
    muster.run('cp', 'gone-worker-0:/results/model.1', 'one')
    assert (muster.work / 'zero').exists() and (muster.work / 'one').exists()
    muster.run('down')
    assert sorted(muster.run('logs', 'gone').stdout.splitlines()) == both


def test_logs_of_a_pod_that_stood_there_before(muster):
    script = 'echo "run $(ls | wc -l)"; mkdir run-$(ls | wc -l); [ $(ls -d run-* | wc -l) = 2 ] || exit 137'
    muster.work = muster.work / 'empty'
    muster.work.mkdir()
    (muster.work / 'job.yaml').write_text(json.dumps(job('again', shell(script), restart='ExitCode')))
    muster.run('run', '-f', 'job.yaml')
    assert muster.run('logs', 'again').stdout == '[rank 0] run 2\n'
    assert muster.run('logs', 'again', '--previous').stdout == '[rank 0] run 1\n'
    assert muster.run('logs', 'again-master-0', '-p').stdout == 'run 1\n'
    assert muster.run('logs', 'again', '--all').stdout == '[rank 0] run 1\n[rank 0] run 2\n'


def test_logs_of_a_container_that_has_not_started(muster):
    waits = job('waits', shell('echo hi'))
    waits['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['initContainers'] = [
        {'name': 'before', 'image': 'test', 'command': shell('until [ -e go ]; do sleep 0.05; done')}]
    muster.run('create', muster.write('job.yaml', waits))
    wait_for(lambda: muster.get('pods'), 'the pod is made')
    for words in (['waits'], ['waits-master-0'], ['--all']):
        said = muster.run('logs', *words, code=75).stderr
        assert 'is waiting to start; muster logs -f waits for it' in said, words
    assert 'it has: [pytorch' in muster.run('logs', 'waits', '-c', 'nope', code=64).stderr
    (muster.work / 'go').touch()
    assert muster.run('logs', '-f', 'waits').stdout == '[rank 0] hi\n'


def test_logs_follow_to_the_end(muster):
    path = muster.write('job.yaml', job('count', shell('for i in 1 2 3; do echo $i; sleep 0.3; done')))
    muster.run('create', path)
    assert muster.run('logs', '-f', 'count').stdout == '[rank 0] 1\n[rank 0] 2\n[rank 0] 3\n'


def test_events_are_in_order(muster):
    submit(muster)
    text = muster.run('events', 'mnist').stdout
    assert text.index('Created pod') < text.index('Created service')
    assert json.loads(muster.run('events', '-o', 'json').stdout)['items']


def test_wait_for_conditions_and_deletion(muster):
    muster.run('create', muster.write('job.yaml', job('short', shell('sleep 0.3'))))
    assert 'condition met' in muster.run('wait', '--for=condition=Succeeded', 'job/short', '--timeout', f'{LIMIT_S}s').stdout
    muster.run('create', muster.write('job.yaml', job('long', shell('sleep 1000'))))
    assert 'timed out' in muster.run('wait', '--for=condition=Failed', 'long', '--timeout', '200ms', code=75).stderr
    assert 'there is no pytorchjob' in muster.run('wait', 'nothing', code=66).stderr
    assert 'which events? give a name, or job/ev for a job' in muster.run('wait', 'ev', code=64).stderr
    muster.run('wait', '--for=delete', 'job/nothing')


def test_a_wait_ends_with_a_job_that_ends_otherwise(muster):
    muster.run('create', muster.write('job.yaml', job('bad', shell('while [ ! -e go ]; do sleep 0.05; done; exit 3'))))
    waiting = muster.start('wait', 'bad', '--timeout', f'{2 * LIMIT_S}s')
    muster.wait_condition('bad', 'Running')
    (muster.work / 'go').touch()
    out, err = waiting.communicate(timeout=LIMIT_S)
    assert (waiting.returncode, out) == (1, '')
    assert err.startswith('muster: job bad is over and will not be Succeeded: ') and 'exited with code 3' in err
    assert 'job bad is over and will not be Running' in muster.run('wait', '--for=condition=Running', 'bad', code=1).stderr
    assert 'condition met' in muster.run('wait', '--for=condition=Failed', 'bad').stdout


def test_scale_suspend_resume(muster):
    submit(muster, workers=1)
    muster.run('scale', '--replicas=2', 'mnist')
    wait_for(lambda: len(muster.get('pods')) == 3, 'a third pod')
    muster.run('suspend', 'mnist')
    wait_for(lambda: not muster.get('pods'), 'no pods while suspended')
    muster.run('resume', 'mnist')
    wait_for(lambda: len(muster.get('pods')) == 3, 'pods again')


def test_scale_suspend_resume_take_a_kind(muster):
    """They take `job NAME`, as delete, get and describe do. A job may be called "job"."""
    submit(muster, name='job', workers=1)
    submit(muster, name='other')
    assert muster.run('scale', 'job', 'job', '--workers', '2').stdout == 'pytorchjob.kubeflow.org/job scaled\n'
    wait_for(lambda: len(muster.get('pods')) == 4, 'a third pod of it')
    assert 'muster suspend ends its pods and keeps the job' in muster.run('scale', 'job', 'job', '--workers', '0', code=64).stderr
    assert muster.run('suspend', 'job', 'job', 'other').stdout.count(' suspended') == 2
    assert muster.run('resume', 'job').stdout == 'pytorchjob.kubeflow.org/job resumed\n'
    assert "unexpected operand 'other'" in muster.run('scale', 'job', 'job', 'other', '--workers', '1', code=64).stderr


def test_a_job_that_is_over_is_not_said_to_be_scaled_without_a_word(muster):
    """The change is stored, and a note says that it starts and ends no rank."""
    muster.run('create', muster.write('job.yaml', job('over', shell('exit 3'), workers=1)))
    muster.wait_condition('over', 'Failed')
    for words in (['scale', 'over', '--workers', '2'], ['suspend', 'over'], ['resume', 'over']):
        assert muster.run(*words).stderr == ('muster: note: job over is over: this starts and ends no rank '
                                             '(muster describe job over says how it ended)\n')
    submit(muster, workers=1)
    assert muster.run('scale', 'mnist', '--workers', '2').stderr == ''


def test_delete_waits_until_it_is_gone(muster):
    submit(muster)
    assert muster.run('delete', 'job', 'mnist').stdout == 'pytorchjob.kubeflow.org "mnist" deleted\n'
    assert 'not found' in muster.run('get', 'job', 'mnist', code=66).stderr
    wait_for(lambda: not muster.get('pods'), 'its pods go too')
    muster.run('delete', 'job', 'mnist', '--ignore-not-found')
    assert '--all' in muster.run('delete', 'pods', code=64).stderr


def test_delete_by_file(muster):
    path = muster.write('job.yaml', CLAIM, job('mnist', shell('exec sleep 1000')))
    muster.run('create', path)
    out = muster.run('delete', '-f', path).stdout
    assert out.splitlines() == ['pytorchjob.kubeflow.org "mnist" deleted', 'persistentvolumeclaim "kept" deleted']


def test_apply_changes_what_the_file_says(muster):
    before = job('mnist', shell('exec sleep 1000'), workers=1)
    muster.run('apply', '-f', muster.write('job.yaml', before))
    before['spec']['pytorchReplicaSpecs']['Worker']['replicas'] = 2
    assert muster.run('apply', '-f', muster.write('job.yaml', before)).stdout.endswith('configured\n')
    assert muster.get('job', 'mnist')['spec']['pytorchReplicaSpecs']['Worker']['replicas'] == 2


def test_apply_takes_away_what_the_file_no_longer_says(muster):
    config = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'c', 'labels': {'a': 'b'}}, 'data': {'x': '1', 'y': '2'}}
    assert muster.run('apply', '-f', muster.write('c.yaml', config)).stdout == 'configmap/c created\n'
    del config['data']['x'], config['metadata']['labels']
    assert muster.run('apply', '-f', muster.write('c.yaml', config)).stdout == 'configmap/c configured\n'
    stored = muster.get('configmap', 'c')
    assert stored['data'] == {'y': '2'} and not stored['metadata'].get('labels')
    assert muster.run('apply', '-f', muster.write('c.yaml', config)).stdout == 'configmap/c unchanged\n'

    training = job('mnist', shell('exec sleep 1000'), run_policy={'cleanPodPolicy': 'All', 'ttlSecondsAfterFinished': 60})
    muster.run('apply', '-f', muster.write('job.yaml', training))
    del training['spec']['runPolicy']['ttlSecondsAfterFinished']
    muster.run('apply', '-f', muster.write('job.yaml', training))
    assert muster.get('job', 'mnist')['spec']['runPolicy'] == {'cleanPodPolicy': 'All'}
    assert 'muster.dev/submit' in muster.get('job', 'mnist')['metadata']['annotations']


def test_cp_finds_files_in_mounts_and_cwd(muster):
    training = job('save', shell('echo deep > /results/model.pt; echo near > near.txt'),
                   volumes=[{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}],
                   mounts=[{'name': 'data', 'mountPath': '/results'}])
    muster.run('run', '-f', muster.write('job.yaml', CLAIM, training))
    muster.run('cp', 'save:/results/model.pt', 'a.pt')
    assert (muster.work / 'a.pt').read_text() == 'deep\n'
    muster.run('cp', 'save-master-0:near.txt', 'b.txt')
    assert (muster.work / 'b.txt').read_text() == 'near\n'
    muster.run('cp', 'save:/results', 'folder')
    assert (muster.work / 'folder/model.pt').exists()
    assert 'has no missing' in muster.run('cp', 'save:missing', '.', code=66).stderr
    assert 'JOB:PATH' in muster.run('cp', 'save', '.', code=64).stderr


def test_cp_copies_nothing_over_itself(muster):
    """For a job that ran in this folder, `cp JOB:FILE .` names the file that is already here."""
    muster.run('run', '-n', '1', '--name', 'save', '--', *shell('mkdir out; echo weights > out/model.pt; ln -s out/model.pt link.pt'))
    for words in ('save:out/model.pt out', 'save:out/model.pt out/model.pt', 'save:out/model.pt link.pt', 'save:link.pt .'):
        assert 'are the same file' in muster.run('cp', *words.split(), code=64).stderr, words
    for words in ('save:out out', 'save:out out/new/copy', 'save:. copy'):
        assert 'cannot be copied into itself' in muster.run('cp', *words.split(), code=64).stderr, words
    assert (muster.work / 'out/model.pt').read_text() == (muster.work / 'link.pt').read_text() == 'weights\n'
    assert os.listdir(muster.work / 'out') == ['model.pt'] and not (muster.work / 'copy').exists()
    muster.run('cp', 'save:out', 'output')  # a name with the same beginning is another folder
    assert (muster.work / 'output/model.pt').read_text() == 'weights\n'


def test_cp_replaces_and_removes_no_device_and_no_pipe(muster):
    """This holds when a link should take its place, and when writing to it fails."""
    muster.run('run', '-n', '1', '--name', 'save', '--', *shell('echo weights > model.pt; ln -s model.pt link.pt'))
    os.mkfifo(muster.work / 'pipe')
    assert 'something else lies there, which is not replaced' in muster.run('cp', 'save:link.pt', 'pipe', code=73).stderr
    assert (muster.work / 'pipe').is_fifo()
    (muster.work / 'full').symlink_to('/dev/full')
    assert 'to full: No space left on device' in muster.run('cp', 'save:model.pt', 'full', code=74).stderr
    assert (muster.work / 'full').is_char_device()


def test_cp_writes_to_a_device_and_into_a_pipe(muster):
    """sendfile does not write to them on every kernel."""
    muster.run('run', '-n', '1', '--name', 'save', '--', *shell('head -c 300000 /dev/zero > model.pt'))
    os.mkfifo(muster.work / 'pipe')
    with open(muster.work / 'read', 'wb') as read, subprocess.Popen(['cat', muster.work / 'pipe'], stdout=read):
        muster.run('cp', 'save:model.pt', 'pipe')
    assert (muster.work / 'read').read_bytes() == bytes(300000)
    muster.run('cp', 'save:model.pt', '/dev/null')


def named(name, workers):
    job = {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name}, 'spec': {'pytorchReplicaSpecs': {
        'Worker': {'replicas': workers, 'template': {'spec': {'containers': [{'name': 'pytorch', 'image': 'i', 'command': ['true']}]}}}}}}
    return json.dumps(job)


def test_a_name_that_lint_proposes_passes_lint(muster, tmp_path):
    bad = ['My_Job', 'a' * 60, 'X' * 200, '9lives', 'fine.tune v2', 'a-' * 40, 'é-learning', 'UPPER' * 12, 'a' * 53 + '-' + 'b' * 20]
    cases = [(name, workers) for name in bad for workers in (1, 11, 101)]
    for number, (name, workers) in enumerate(cases):
        (tmp_path / f'{number}.json').write_text(named(name, workers))
    problems = json.loads(muster.run('lint', '-o', 'json', *(str(tmp_path / f'{n}.json') for n in range(len(cases))), code=65).stdout)
    proposals = [re.fullmatch(r'did you mean "(.*)"\?', p['hint']).group(1) for p in problems]
    assert len(proposals) == len(cases)
    for number, (proposal, (_, workers)) in enumerate(zip(proposals, cases)):
        (tmp_path / f'{number}.json').write_text(named(proposal, workers))
    muster.run('lint', *(str(tmp_path / f'{n}.json') for n in range(len(cases))))


def test_lint_prints_every_problem(muster):
    good = muster.write('good.yaml', job('fine', shell('true')))
    assert muster.run('lint', good).stdout == f'{good}: ok\n'
    bad = job('bad', shell('true'))
    bad['spec']['pytorchReplicaSpecs']['Master']['replicas'] = 2
    bad['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['name'] = 'other'
    path = muster.write('bad.yaml', bad)
    lines = muster.run('lint', '-f', path, good, code=65).stdout.splitlines()
    assert len([line for line in lines if line.startswith(f'{path}:') and ': error: ' in line]) == 2
    problems = json.loads(muster.run('lint', path, '-o', 'json', code=65).stdout)
    assert all(p['line'] > 0 and p['file'] == str(path) for p in problems)
    assert not (muster.home / 'store.db').exists()


def test_kubeconfig_and_up_keep_the_controller(muster):
    muster.run('kubeconfig', '--write', 'kubeconfig')
    path = muster.work / 'kubeconfig'
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == muster.run('kubeconfig').stdout
    assert 'stays until muster down' in muster.run('up').stdout
    assert muster.status() > 0
    assert 'has ended' in muster.run('down').stdout
    assert muster.status() == 0
    assert muster.run('down').stdout == 'No controller runs.\n'


def test_a_kubeconfig_is_written_to_what_is_there(muster):
    """It is written to the target of a link, and to a device or a pipe, which is not replaced by a file."""
    link, target, pipe = (muster.work / name for name in ('link', 'target', 'pipe'))
    target.write_text('old')
    target.chmod(0o644)
    link.symlink_to('target')
    os.mkfifo(pipe)
    muster.run('kubeconfig', '--write', 'link')
    text = muster.run('kubeconfig').stdout
    assert link.is_symlink() and target.read_text() == text and target.stat().st_mode & 0o777 == 0o600
    writer = muster.start('kubeconfig', '--write', 'pipe')
    assert pipe.read_text() == text and writer.wait(LIMIT_S) == 0
    assert pipe.is_fifo()
    assert muster.run('kubeconfig', '--write', '/dev/stdout').stdout == text
    assert 'Is a directory' in muster.run('kubeconfig', '--write', '.', code=73).stderr


def test_down_keep_lets_jobs_go_on(muster):
    submit(muster, command=shell('while [ ! -e stop ]; do sleep 0.05; done; echo finished'))
    muster.run('down', '--keep')
    assert muster.status() == 0
    (muster.work / 'stop').touch()
    muster.wait_condition('mnist', 'Succeeded')
    assert muster.run('logs', 'mnist').stdout == '[rank 0] finished\n'


def test_version_starts_nothing(muster):
    assert 'not running' in muster.run('version').stdout
    assert json.loads(muster.run('version', '-o', 'json').stdout)['client']['version']
    assert not muster.processes()


def completed(muster, tool, *words):
    """What the completion of `tool` offers after these words."""
    script = (f'source {BUILD}/share/bash-completion/completions/{tool}; PATH={muster.binary.parent}:$PATH; '
              f'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{tool}; printf "%s\\n" "${{COMPREPLY[@]}}"')
    done = subprocess.run(['bash', '-c', script, 'bash', tool, *words], env=muster.env, text=True, capture_output=True, check=True)
    return done.stdout.split()


def test_completion_offers_verbs_kinds_and_names(muster):
    submit(muster)

    def complete(*words):
        return completed(muster, 'muster', *words)

    assert complete('des') == ['describe']
    assert complete('get', 'pyt') == ['pytorchjobs']
    assert complete('get', 'pods', '') == ['mnist-master-0']
    assert complete('logs', 'mn') == ['mnist-master-0', 'mnist']
    assert complete('get', '--sel') == ['--selector']
    assert complete('run', '--network', 'p') == ['private']
    assert complete('describe', 'job', '') == ['mnist']
    assert complete('delete', 'm') == complete('wait', 'job/', 'm') == ['mnist']
    assert complete('wait', 'job/m') == ['job/mnist']
    assert complete('help', 'sus') == ['suspend']
    assert complete('perf', 'allr') == ['allreduce']
    muster.run('down')
    assert complete('scale', '') == ['mnist']


def test_elasticdl_has_a_completion_and_a_manual(muster, tmp_path):
    assert completed(muster, 'elasticdl', 'tr') == ['train']
    assert completed(muster, 'elasticdl', 'zoo', 'i') == ['init']
    assert completed(muster, 'elasticdl', 'train', '--num_w') == ['--num_workers']
    assert completed(muster, 'elasticdl', 'help', 'ev') == ['evaluate']
    (tmp_path / 'zoo').mkdir()
    (tmp_path / 'zoo.py').touch()
    assert completed(muster, 'elasticdl', 'zoo', '--model_zoo', f'{tmp_path}/zo') == [f'{tmp_path}/zoo']
    assert sorted(completed(muster, 'elasticdl', 'zoo', '--cluster_spec', f'{tmp_path}/zo')) == [f'{tmp_path}/zoo', f'{tmp_path}/zoo.py']
    manual = (BUILD / 'share/man/man1/elasticdl.1').read_text()
    assert manual.startswith('.TH "elasticdl" 1 ') and '\n.SS elasticdl train ' in manual and '\\-\\-num_workers' in manual


def test_completion_makes_no_state_folder(muster):
    script = f'source {BUILD}/share/bash-completion/completions/muster; _muster_names jobs'
    done = subprocess.run(['bash', '-c', script], env={**muster.env, 'PATH': f'{muster.binary.parent}:/usr/bin:/bin'}, text=True,
                          capture_output=True, check=True)
    assert done.stdout == done.stderr == ''
    assert not muster.home.exists()


@pytest.mark.parametrize('words, message', [
    (['gett'], "did you mean 'get'"),
    (['get', 'pods', '--wach'], 'did you mean --watch'),
    (['get'], 'missing operand'),
    (['describe', 'a', 'b', '-o'], 'unknown option -o'),
    (['scale', 'x'], '--replicas=N'),
    (['logs'], 'give a job, a pod'),
    (['scale', 'pods', 'x', '--workers', '2'], 'scale: pods cannot be scaled; only jobs can'),
    (['scale', 'svc/x', '--workers', '2'], 'scale: services cannot be scaled; only jobs can'),
    (['suspend', 'pods', 'x', 'y'], 'suspend: pods cannot be suspended; only jobs can'),
    (['delete', 'job', 'x', '--all'], "delete: give the name 'x' or --all, not both"),
    (['delete', 'x', '-l', 'a=b'], "delete: give the name 'x' or -l, not both"),
    (['get', 'pods', 'x', '--selector', 'a=b'], "get: give the name 'x' or --selector, not both"),
    (['describe', 'pod', 'x', '-l', 'a=b'], "describe: give the name 'x' or -l, not both"),
    (['get', 'job', 'x', '-A'], "get: give the name 'x' or -A, not both"),
    (['get', 'pods', '-n', 'no such'], "get: --namespace must be made of a-z, 0-9 and '-', not 'no such'"),
    (['get', 'pods', '--namespace=..'], "get: --namespace must be made of a-z, 0-9 and '-', not '..'"),
    (['resume', 'job/x', 'node/y'], 'resume: nodes cannot be resumed; only jobs can'),
])
def test_wrong_command_lines(muster, words, message):
    assert message in muster.run(*words, code=64).stderr


@pytest.mark.parametrize('words', [['help'], ['get', '--help'], ['version'], ['get', 'jobs', '-o', 'yaml'],
                                   ['get', 'namespaces', '-w']])
def test_output_that_cannot_be_written_fails(muster, words):
    with open('/dev/full', 'w', encoding='utf-8') as full:
        process = muster.start(*words, stdout=full)
    assert process.wait() == 74
    assert 'cannot write to standard output: No space left on device' in process.stderr.read()
    reader, writer = os.pipe()
    os.close(reader)
    process = muster.start(*words, stdout=writer)
    os.close(writer)
    assert process.wait() == -signal.SIGPIPE


def test_help_is_everywhere(muster):
    whole = muster.run('--help').stdout
    verbs = [line.split()[0] for line in whole.split('Commands:')[1].split('\n\n')[0].strip().splitlines()]
    assert verbs == re.findall(r'^(?:COMMAND|PROGRAM)\((\w+)', (SOURCE / 'src/cli/command/commands.def').read_text(), re.M)
    for verb in verbs:
        assert muster.run(verb, '--help').stdout.lower().startswith(f'usage: muster {verb} ')


def test_the_manual_and_the_completion_have_the_options_of_the_help(muster):
    manual = muster.run('help', '--man').stdout.replace('\\-', '-')
    completion = muster.run('help', '--completion').stdout
    sections = re.findall(r'^\.SS muster (\w+) (.*?)(?=^\.S[SH] )', manual, re.M | re.S)
    assert len(sections) > 20
    for verb, section in sections:
        listed = re.findall(r'^ +(?:-\w, )?--([\w-]+)', muster.run(verb, '--help').stdout.split('Options:')[1], re.M)
        explained = re.findall(r'^\.B .*?--([\w-]+)', section, re.M)
        offered = re.search(rf"^    {verb}\)\n +options='([^']*)'", completion, re.M)[1].replace('--', '').split()
        assert sorted(offered) == sorted(listed) == sorted(explained + ['help']), verb


NAMED = ['get job {}', 'get job {} --watch', 'describe {}', 'describe job {}', 'logs {}', 'logs {} -f', 'logs {} --run 1', 'stacks {}',
         'exec {} -- true', 'top {}', 'cp {}:/x y', 'events {}', 'events job/{}', 'history {}', 'history {} -o json',
         'history {} --run 1', 'history {} --prune', 'history {} --run 1 --prune', 'wait {}', 'scale {} --replicas 2', 'suspend {}',
         'resume {}', 'delete {}', 'delete job {}']


def test_every_verb_says_that_a_job_is_not_there(muster):
    for words in NAMED:
        done = muster.run(*words.format('nosuch').split(), code=66)
        assert 'nosuch' in done.stderr and not done.stdout, words


UNNAMED = ['delete {}', 'delete job {}', 'delete pods {}', 'delete job/{}', 'get job {}', 'get job/{}', 'describe {}', 'logs {}', 'stacks {}',
           'exec {} -- true', 'top {}', 'events {}', 'events job/{}', 'wait {}', 'wait --for=delete {}', 'scale {} --workers 2', 'suspend {}',
           'resume {}']


def test_an_empty_name_means_no_object(muster):
    """A shell variable that is not set gives an empty name: `muster delete job "$NAME"` does not mean all jobs."""
    submit(muster)
    for words in UNNAMED:
        done = muster.run(*[word.format('') for word in words.split()], code=64)
        assert 'there is no name in' in done.stderr and not done.stdout, words
    assert 'neither NAME nor KIND/NAME' in muster.run('delete', 'job/mnist/x', code=64).stderr
    assert muster.condition('mnist') == 'Running' and len(muster.get('pods')) == 1


def test_a_file_without_a_name_deletes_and_changes_nothing(muster):
    submit(muster)
    unnamed = job('x', shell('true'))
    unnamed['metadata'] = {'generateName': 'mnist-'}
    path = muster.write('generated.yaml', job('mnist', shell('true')), unnamed)
    for verb in ('delete', 'apply'):
        assert 'has no metadata.name' in muster.run(verb, '-f', path, code=65).stderr
    assert muster.condition('mnist') == 'Running' and len(muster.get('jobs')) == 1
    (muster.work / 'broken.yaml').write_text('a: [1')
    assert '1 error; nothing was deleted' in muster.run('delete', '-f', 'broken.yaml', code=65).stderr


def test_what_is_there_and_empty_is_no_error(muster):
    for words in ('get jobs', 'get all', 'describe jobs', 'delete jobs --all', 'delete pods -l a=b'):
        assert muster.run(*words.split()).stderr == 'No resources found in default namespace.\n', words
    submit(muster)
    for words in ('events mnist', 'history mnist', 'history mnist --prune', 'history', 'history --prune', 'events'):
        muster.run(*words.split())
    muster.run('delete', 'job', 'mnist')
    assert 'mnist-master-0' in muster.run('events', 'mnist').stdout, 'of a job that is gone the events are left'
    assert 'no run 7 of job mnist' in muster.run('history', 'mnist', '--run', '7', '--prune', code=66).stderr
