"""Bad files, and missing or broken parts of the system: muster prints one clear message, exits with the code of the table, and leaves
nothing half created."""
import json
import os
import re
import shutil
import socket
import subprocess

import pytest
from conftest import LIMIT_S, job, shell

from ports import held_port

CLAIM = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'kept'},
         'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}
CONFIG = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'settings'}, 'data': {'a': 'b'}}
KINDS = 'jobs,pods,services,configmaps,pvc'


def only_line(done):
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def spec_of(training):
    return training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']


def missing_volume(training):
    spec_of(training)['volumes'] = [{'name': 'data', 'persistentVolumeClaim': {'claimName': 'nonesuch'}}]


def no_command(training):
    del spec_of(training)['containers'][0]['command']


def too_many_gpus(training):
    spec_of(training)['containers'][0]['resources'] = {'limits': {'nvidia.com/gpu': 1000}}


def long_word(training):
    spec_of(training)['containers'][0]['command'] = shell(f'true {"x" * (128 << 10)}')


REFUSED = {
    long_word: '.command[2]: 128 KiB are too long: the kernel takes less than 128 KiB of a word',
    missing_volume: 'there is no persistentvolumeclaim "nonesuch"',
    no_command: "container pytorch has no command, and muster cannot read the ENTRYPOINT of image test: add command:, or the annotation "
                "muster.dev/command (or say what it runs: --image 'test=COMMAND')",
    too_many_gpus: 'the job needs 1000 GPUs (nvidia.com/gpu), this machine has ',
}
# A job that was created waits for its claim, as on a cluster: somebody may create the claim later.
CASES = [('run', spoil) for spoil in REFUSED] + [(verb, spoil) for verb in ('create', 'apply') for spoil in (no_command, too_many_gpus, long_word)]


@pytest.mark.parametrize('verb, spoil', CASES)
def test_what_this_machine_refuses_leaves_nothing_of_its_file(muster, verb, spoil):
    bad = job('bad', shell('true'))
    spoil(bad)
    path = muster.write('job.yaml', CONFIG, CLAIM, job('good', shell('touch ran')), bad)
    muster.run('up')
    place, said = muster.run(verb, '-f', path, code=65).stderr.splitlines()
    assert re.search(r'/job\.yaml:\d+:\d+: error: spec\.pytorchReplicaSpecs\.Master\.', place) and REFUSED[spoil] in place
    # The client does not send an object in which it finds an error itself.
    assert said == f'muster: 1 error; {"nothing was created" if spoil is long_word else "PyTorchJob bad was refused"}'
    assert muster.get(KINDS) == []
    assert not (muster.work / 'ran').exists()


def test_a_name_that_is_taken_leaves_nothing_of_its_file(muster):
    muster.run('create', muster.write('old.yaml', job('taken', shell('exec sleep 1000'))))
    path = muster.write('job.yaml', CONFIG, CLAIM, job('good', shell('touch ran')), job('taken', shell('true')))
    for verb in ('create', 'run'):
        assert 'taken' in only_line(muster.run(verb, '-f', path, code=73))
        assert muster.get('configmaps,pvc') == []
        assert [j['metadata']['name'] for j in muster.get('jobs')] == ['taken']
    assert not (muster.work / 'ran').exists()


@pytest.mark.parametrize('verb', ['run', 'create', 'apply'])
def test_what_is_given_twice_is_not_half_created(muster, verb):
    one, two = muster.write('one.yaml', CONFIG, job('good', shell('touch ran'))), muster.write('two.yaml', CONFIG)
    both = muster.write('both.yaml', CONFIG, job('good', shell('touch ran')), CONFIG)
    assert 'configmap settings is in two of the files' in only_line(muster.run(verb, '-f', one, '-f', two, code=65))
    assert 'duplicate ConfigMap "settings" in this file' in muster.run(verb, '-f', both, code=65).stderr
    assert muster.get(KINDS) == []
    assert not (muster.work / 'ran').exists()


def negative_limit(training):
    training['spec']['runPolicy'] = {'backoffLimit': -1}


def negative_deadline(training):
    training['spec']['runPolicy'] = {'activeDeadlineSeconds': -1}


def negative_cpu(training):
    spec_of(training)['containers'][0]['resources'] = {'limits': {'cpu': '-1'}}


def negative_replicas(training):
    training['spec']['pytorchReplicaSpecs']['Master']['replicas'] = -1


def long_name(training):
    training['metadata']['name'] = 'a' * 60


def invalid_name(training):
    training['metadata']['name'] = 'My_Job'


def unmounted(training):
    spec_of(training)['containers'][0]['volumeMounts'] = [{'name': 'data', 'mountPath': '/data'}]


@pytest.mark.parametrize('verb', ['run', 'create', 'apply', 'lint'])
@pytest.mark.parametrize('spoil, message', [
    (negative_limit, 'spec.runPolicy.backoffLimit: -1 must be 0 or more'),
    (negative_deadline, 'spec.runPolicy.activeDeadlineSeconds: -1 must be 0 or more'),
    (negative_cpu, 'resources.limits.cpu: '),
    (negative_replicas, 'pytorchReplicaSpecs.Master.replicas: -1'),
    (long_name, 'metadata.name: too long: with "-master-0" appended, pod names may not exceed 63 characters'),
    (invalid_name, 'did you mean "my-job"?'),
    (unmounted, 'unknown volume "data"'),
])
def test_a_wrong_field_is_one_error_with_its_place(muster, verb, spoil, message):
    bad = job('bad', shell('true'))
    spoil(bad)
    path = muster.write('job.yaml', CONFIG, bad)
    done = muster.run(verb, '-f', path, code=65)
    errors = [line for line in (done.stdout + done.stderr).splitlines() if ': error: ' in line]
    assert len(errors) == 1 and message in errors[0], done
    assert errors[0].split(':')[1].isdigit() and errors[0].split(':')[2].isdigit()
    assert not (muster.home / 'store.db').exists()


@pytest.mark.parametrize('text, message', [
    (b'', 'there is nothing in this file'),
    (b'\xff\xfe\x00', 'save the file as UTF-8'),
    (b'a: [1, 2', 'job.yaml:1:4: error: this [ is never closed'),
    (b'a:\n\t- b\n', 'job.yaml:2'),
    (b'just words', 'job.yaml:1'),
    (b'{"kind": "PyTorchJob"', 'job.yaml:1:1: error: this { is never closed'),
    (b'a: &a [*a]', 'job.yaml:1'),
    (b'kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}\n', 'Deployment'),
])
def test_a_malformed_file_is_said_with_its_line(muster, text, message):
    (muster.work / 'job.yaml').write_bytes(text)
    for verb in ('run', 'create', 'apply', 'lint'):
        done = muster.run(verb, '-f', 'job.yaml', code=65)
        assert message in done.stdout + done.stderr
    assert not (muster.home / 'store.db').exists()


def test_a_missing_python_is_said_in_one_line(muster):
    path = muster.write('job.yaml', job('train', ['python9', 'train.py']))
    done = muster.run('run', '-q', '-f', path, code=127)
    line = [line for line in done.stderr.splitlines() if 'failed' in line]
    assert len(line) == 1 and 'exec: "python9": executable file not found' in line[0], done.stderr


def test_the_results_folder_is_tried_before_the_training(muster):
    path = muster.write('job.yaml', job('train', shell('touch ran')))
    assert 'cannot make the directory job.yaml' in only_line(muster.run('run', '-f', path, '--results', 'job.yaml', code=73))
    assert not (muster.work / 'ran').exists()
    assert muster.get('jobs') == []


def test_more_jobs_than_can_be_followed_are_not_begun(muster):
    path = muster.write('job.yaml', *(job(f'j{i}', shell('true')) for i in range(65)))
    assert 'at most 64 jobs' in only_line(muster.run('run', '-f', path, code=65))
    assert muster.get('jobs') == []


def damage(muster, how):
    muster.run('create', muster.write('job.yaml', *(job(f'j{i}', shell('true')) for i in range(20))))
    muster.run('down')
    store = muster.home / 'store.db'
    bytes_ = bytearray(store.read_bytes())
    if how == 'garbage':
        bytes_[:] = b'x' * len(bytes_)
    elif how == 'cut':
        del bytes_[len(bytes_) // 2:]
    else:
        for page in range(2 * 4096, len(bytes_), 4096):
            bytes_[page:page + 2000] = b'\xff' * 2000
    store.write_bytes(bytes_)


@pytest.mark.parametrize('how', ['garbage', 'cut', 'pages'])
def test_a_corrupted_store_is_refused_in_one_line(muster, how):
    damage(muster, how)
    for words in (['get', 'jobs'], ['run', '-f', 'job.yaml'], ['up']):
        line = only_line(muster.run(*words, code=69))
        assert str(muster.home / 'store.db') in line and 'is damaged' in line and 'move it away' in line
    assert not [p for p in muster.processes() if ' daemon' in p[1]]
    (muster.home / 'store.db').rename(muster.work / 'damaged.db')
    assert muster.get('jobs') == []


def test_a_port_in_use_is_said_and_everything_else_works(muster):
    with held_port() as port:
        muster.home.mkdir(mode=0o700)
        (muster.home / 'server.json').write_text(json.dumps({'server': f'https://127.0.0.1:{port}'}))
        with socket.create_server(('127.0.0.1', port)):
            up = muster.run('up')
            assert 'another program has the port for kubectl' in only_line(up) and str(port) in up.stderr
            done = muster.run('kubeconfig', code=69)
            assert 'another program has the port for kubectl' in only_line(done) and not done.stdout
            assert muster.run('run', '-f', muster.write('job.yaml', job('works', shell('echo yes')))).stdout == '[rank 0] yes\n'
        muster.run('down', '--keep')
        assert f'127.0.0.1:{port}' in muster.run('kubeconfig').stdout


@pytest.mark.skipif(os.geteuid() != 0, reason='NOT TESTED: only root can become another user')
def test_an_unwritable_state_folder_is_said_in_one_line(muster):
    """muster runs as a user who is not root, because root may write everywhere."""
    muster.home.mkdir(mode=0o555)
    muster.folder.chmod(0o755)
    binary = shutil.copy(muster.binary, muster.folder)
    path = muster.write('job.yaml', job('train', shell('true')))
    for words in (['get', 'jobs'], ['run', '-f', str(path)], ['up'], ['version', '-o', 'json'], ['lint', str(path)]):
        done = subprocess.run([binary, *words], cwd='/', env=muster.env, user=65534, group=65534, extra_groups=[],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if words[0] in ('version', 'lint'):
            assert done.returncode == 0, done
        else:
            assert done.returncode == 73 and str(muster.home) in only_line(done), done
    assert list(muster.home.iterdir()) == []
    muster.home.chmod(0o700)


def test_a_folder_that_was_deleted_says_where_to_go(muster):
    folder = muster.work / 'gone'
    folder.mkdir()
    done = subprocess.run(['sh', '-c', 'cd "$1" && rmdir "$1" && exec "$2" run -n 1 -- true', 'sh', folder, muster.binary],
                          env=muster.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, only_line(done)) == (66, 'muster: the folder that this shell is in was deleted, and the ranks would start there: '
                                                      'cd to one that exists')


def test_an_unknown_command_is_one_line(muster):
    assert only_line(muster.run('frobnicate', code=64)) == "muster: unknown command 'frobnicate' (muster --help lists them)"
    assert not muster.home.exists()


def test_a_verb_that_only_kubectl_has_says_how_kubectl_comes_here(muster):
    assert only_line(muster.run('patch', 'job', 'a', code=64)) == ("muster: unknown command 'patch', which kubectl has: muster kubeconfig "
                                                                   '--write FILE, then kubectl --kubeconfig FILE patch …')


@pytest.mark.parametrize('word, here', [('stop', 'delete job NAME'), ('status', 'get jobs'), ('ps', 'get pods'), ('ls', 'get jobs'), ('-v', 'version'),
                                        ('-V', 'version')])
def test_a_word_of_another_tool_says_what_does_it_here(muster, word, here):
    assert only_line(muster.run(word, code=64)) == f"muster: unknown command '{word}'; here it is: muster {here} (muster --help lists all)"


def test_an_address_is_not_fetched(muster):
    assert only_line(muster.run('apply', '-f', 'https://example.com/a.yaml', code=64)) == \
        'muster: apply: https://example.com/a.yaml is an address, and muster fetches none: curl -L ADDRESS | muster apply -f -'


def test_an_unknown_kind_says_which_there_are(muster):
    assert only_line(muster.run('get', 'things', code=64)).startswith("muster: get: unknown kind 'things'; there are configmaps, events, ")
    assert only_line(muster.run('get', 'podz', code=64)) == "muster: get: unknown kind 'podz'; did you mean 'pods'?"


@pytest.mark.parametrize('words', [['daemon'], ['supervisor', '--dir', '{folder}']])
def test_a_program_without_an_event_loop_says_so(muster, words):
    """For example, there are no descriptors left: the program serves nothing and reports no success."""
    source, shim, folder = (muster.folder / name for name in ('shim.c', 'shim.so', 'job'))
    folder.mkdir()
    source.write_text('int uv_loop_init(void *loop) { (void)loop; return -24; }\n')
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source], check=True)
    done = muster.run(*[word.format(folder=folder) for word in words], code=None, env={'LD_PRELOAD': str(shim)})
    assert words == ['supervisor', '--dir', '{folder}'] or done.returncode > 0  # the supervisor's parent exits after the fork with 0
    assert 'cannot start an event loop: too many open files' in done.stderr


def test_a_change_that_the_api_refuses_is_shown_with_the_line(muster):
    first = job('queue', shell('true'))
    first['spec']['runPolicy'] = {'suspend': True, 'managedBy': 'kubeflow.org/training-operator'}
    muster.run('apply', '-f', muster.write('job.yaml', first))
    first['spec']['runPolicy']['managedBy'] = 'kueue.x-k8s.io/multikueue'
    path = muster.write('job.yaml', first)
    line = 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if 'managedBy' in text)
    said = muster.run('apply', '-f', path, code=65).stderr
    assert f'job.yaml:{line}:' in said and 'spec.runPolicy.managedBy: field is immutable (delete the job and make it anew)' in said, said
    assert 'muster: 1 error; PyTorchJob queue was refused' in said


def test_a_refusal_of_a_command_names_no_file(muster):
    said = muster.run('run', '-n', 2, '--gpus', 500, '--', 'true', code=65).stderr
    assert said.startswith('muster: the job needs 1000 GPUs (nvidia.com/gpu), this machine has ') and '--no-gpu runs without' in said


def test_a_word_that_the_kernel_does_not_take_is_refused_of_any_client(muster, api):
    training = job('long', shell('true'))
    long_word(training)
    status, answer = api.call('POST', '/apis/kubeflow.org/v1/namespaces/default/pytorchjobs', training)
    assert status == 422 and '.containers[0].command[2]: 128 KiB are too long' in answer['message']
