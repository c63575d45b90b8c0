"""Options have an effect, or cause an error that gives the reason and what to write instead."""
import json
import os
import re

import pytest
from conftest import SOURCE, job, shell

CLAIM = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'data'},
         'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}


def a_job(**options):
    """Returns a job whose init container names no command."""
    made = job('file', shell('pwd; ls -d /kept'), workers=1, **options)
    for replica in made['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec']['initContainers'] = [{'name': 'before', 'image': 'repo/before:1.0'}]
    return made


# For each option of `run`: its words, and its effect with -f and with -n. A regular expression matches an error; True means that the
# printed objects change; a name is the test that shows the effect, if only a running job has the effect.
NO_GPUS = 'no container requests GPUs'
OPTIONS = {
    'filename': (['-f', 'job.yaml'], True, 'exclude each other'),
    'ranks': (['-n', '3'], 'exclude each other', True),
    'nproc-per-node': (['--nproc-per-node', '3'], 'exclude each other', True),
    'name': (['--name', 'other'], True, True),
    'namespace': (['--namespace', 'team'], True, True),
    'image': (['--image', 'repo/before:1.0=true'], True, 'with -n the command stands behind --'),
    'gpus': (['--gpus', '1'], True, True),
    'cpu': (['--cpu', '500m'], True, True),
    'memory': (['--memory', '1Gi'], True, True),
    'workdir': (['--workdir', '/tmp'], True, True),
    'claim': (['--claim', 'kept:/kept'], True, True),
    'network': (['--network', 'private'], True, True),
    'runtime': (['--runtime', 'podman'], True, True),
    'backend': (['--backend', 'muster'], True, True),
    'share-gpu': (['--share-gpu'], NO_GPUS, NO_GPUS),
    'no-gpu': (['--no-gpu'], NO_GPUS, NO_GPUS),
    'timeout': (['--timeout', '10s'], True, True),
    'output': (['-o', 'yaml'], True, True),
    'env': (['-e', 'A=b'], 'test_variables.py', 'test_variables.py'),
    'env-file': (['--env-file', 'names'], 'test_variables.py', 'test_variables.py'),
    'notify': (['--notify', 'true'], '--dry-run runs nothing', '--dry-run runs nothing'),
    'max-restarts': (['--max-restarts', '2'], True, True),
    'all-ranks': (['--all-ranks'], True, 'test_success_policy.py'),
    'dry-run': (['--dry-run'], 'test_run.py', 'test_run.py'),
    'after-end': (['--after-end', '3s'], '--dry-run runs nothing', '--after-end limits Workers'),
    'stall': (['--stall', '5s'], True, True),
    'stdin': (['--stdin', '0'], 'test_inside.py', 'test_inside.py'),
    'results': (['--results', 'out'], '--dry-run runs nothing', '--dry-run runs nothing'),
    'quiet': (['--quiet'], 'test_run.py', 'test_run.py'),
    'context': (['--context', 'team'], 'kubernetes/test_verbs.py', 'kubernetes/test_verbs.py'),
    'kubeconfig': (['--kubeconfig', 'file'], 'kubernetes/test_verbs.py', 'kubernetes/test_verbs.py'),
}


def options_of(muster, verb):
    text = muster.run(verb, '--help').stdout.split('\nOptions:\n')[1]
    return re.findall(r'^\s+(?:-\w, )?--([a-z-]+)', text.split('\n\n')[0], re.M)


def test_the_table_has_every_option_of_run(muster):
    missing = sorted(set(options_of(muster, 'run')) - set(OPTIONS) - {'help'})
    assert not missing, f'say in OPTIONS what these do with -f and with -n: {missing}'


@pytest.mark.parametrize('mode', ['-f', '-n'])
def test_an_option_changes_the_objects_or_is_an_error(muster, mode):
    muster.write('job.yaml', a_job())
    muster.write('other.yaml', a_job())
    for name, (words, with_file, with_ranks) in OPTIONS.items():
        effect = with_file if mode == '-f' else with_ranks
        if isinstance(effect, str) and effect.endswith('.py'):
            continue
        head = ['run', '--dry-run']
        tail = ['-f', 'other.yaml'] if mode == '-f' else ['-n', '2', '--', 'true']
        if name in ('ranks', 'nproc-per-node') and mode == '-n':
            tail = ['--', 'true']
            plain = muster.run(*head, '-n', '2', *tail)
        else:
            plain = muster.run(*head, '-o', 'json', *tail)
        done = muster.run(*head, *([] if name == 'output' else ['-o', 'json']), *words, *tail, code=None)
        if effect is True:
            assert done.returncode == 0 and done.stdout != plain.stdout, (name, done)
        else:
            assert done.returncode == 64 and re.search(effect, done.stderr), (name, done)


def container(muster, name, role='Worker'):
    spec = muster.get('job', name)['spec']['pytorchReplicaSpecs'][role]['template']['spec']
    return spec, spec['containers'][0]


def test_limits_folder_and_claim_reach_the_ranks_of_a_file(muster):
    muster.write('job.yaml', job('limits', shell('pwd; ls -d /kept'), workers=1))
    done = muster.run('run', '-f', 'job.yaml', '--cpu', '1', '--memory', '1Gi', '--workdir', muster.folder, '--claim', 'kept:/kept')
    assert sorted(done.stdout.splitlines()) == sorted(f'[rank {r}] {word}' for r in (0, 1) for word in (muster.folder, '/kept'))
    spec, main = container(muster, 'limits')
    assert main['resources']['limits'] == {'cpu': '1', 'memory': '1Gi'}
    assert spec['volumes'] == [{'name': 'claim', 'persistentVolumeClaim': {'claimName': 'kept'}}]
    assert [c['metadata']['name'] for c in muster.get('pvc')] == ['kept']
    muster.run('run', '-f', 'job.yaml', '--claim', 'kept:/kept', '--workdir', '/tmp')  # the claim exists already


def test_a_relative_folder_begins_here(muster):
    (muster.work / 'sub').mkdir()
    muster.write('job.yaml', job('sub', shell('pwd')))
    assert muster.run('run', '-n', '1', '--workdir', 'sub', '--', 'pwd').stdout == f'[rank 0] {muster.work}/sub\n'
    assert muster.run('run', '-f', 'job.yaml', '--workdir', 'sub').stdout == f'[rank 0] {muster.work}/sub\n'


def test_a_claim_of_the_file_is_not_made_twice(muster):
    muster.write('job.yaml', CLAIM, job('own', shell('ls -d /kept /more')))
    done = muster.run('run', '-f', 'job.yaml', '--claim', 'data:/kept', '--claim', 'more:/more')
    assert done.stdout == '[rank 0] /kept\n[rank 0] /more\n'


def test_gpus_of_a_file_can_be_asked_for_and_left_out(muster):
    muster.env['MUSTER_GPUS'] = '0,1'
    muster.write('job.yaml', job('gpus', shell('echo see $CUDA_VISIBLE_DEVICES'), workers=1))
    done = muster.run('run', '-f', 'job.yaml', '--gpus', '1')
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == ['0', '1']
    done = muster.run('run', '-f', 'job.yaml', '--gpus', '0')
    assert sorted(done.stdout.splitlines()) == ['[rank 0] see', '[rank 1] see']


@pytest.mark.parametrize('words, says', [
    (['--image', 'repo/befor:1.0=true'], r'--image repo/befor:1.0=…: no container has this image; did you mean repo/before:1.0\?'),
    (['--image', 'x=true'], 'no container has this image; those of the file are: repo/before:1.0, test'),
    (['--image', 'test=true'], 'name their own command'),
    (['--image', 'repo/before:1.0'], 'must be IMAGE=COMMAND'),
])
@pytest.mark.parametrize('verb', ['run', 'create', 'apply'])
def test_an_image_without_effect_is_an_error(muster, verb, words, says):
    muster.write('job.yaml', a_job())
    done = muster.run(verb, '--dry-run', '-f', 'job.yaml', *words, code=64)
    assert re.search(says, done.stderr)


@pytest.mark.parametrize('words, says', [
    (['--cpu', 'many'], 'job file: --cpu "many" must be a quantity such as 2 or 500m'),
    (['--memory', '0'], '--memory "0" must be'),
    (['--memory', '4'], '--memory "4" means 4 bytes; write 4Gi or 512Mi'),
    (['--gpus', 'two'], '--gpus "two" must be a number'),
    (['--claim', 'kept'], '--claim must be CLAIM:/PATH'),
    (['--claim', 'Kept:/x'], 'the claim\'s name must'),
    (['--claim', 'a:/x', '--claim', 'b:/x'], '--claim b:/x: volume claim is mounted there already'),
])
def test_a_wrong_value_is_said_with_a_file_as_with_a_command(muster, words, says):
    muster.write('job.yaml', a_job())
    assert says in muster.run('run', '-f', 'job.yaml', *words, code=64).stderr
    assert says.replace('job file: ', '') in muster.run('run', '-n', '2', *words, '--', 'true', code=64).stderr


# ---- options that would have no effect ----

@pytest.mark.parametrize('mode', [['-f', 'gpus.yaml'], ['-n', '2', '--gpus', '1', '--', 'true']])
@pytest.mark.parametrize('option, note', [('--share-gpu', 'share'), ('--no-gpu', 'none')])
def test_gpu_options_count_where_gpus_are_requested(muster, mode, option, note):
    wanted = a_job()
    limits = {'limits': {'nvidia.com/gpu': 1}}
    wanted['spec']['pytorchReplicaSpecs']['Worker']['template']['spec']['containers'][0]['resources'] = limits
    muster.write('gpus.yaml', wanted)
    done = muster.run('run', '--dry-run', '-o', 'json', option, *mode, code=None)
    if option == '--no-gpu' and '--gpus' in mode:
        assert done.returncode == 64 and '--gpus and --no-gpu exclude each other' in done.stderr
    else:
        assert f'"muster.dev/gpu": "{note}"' in done.stdout


def test_ranks_counted_by_gpus_may_go_without(muster):
    muster.env['MUSTER_GPUS'] = '0,1'
    done = muster.run('run', '-n', 'gpu', '--no-gpu', '--', 'sh', '-c', 'echo "$CUDA_VISIBLE_DEVICES"')
    assert sorted(done.stdout.splitlines()) == ['[rank 0] ', '[rank 1] ']


def test_of_an_option_given_again_the_last_value_counts(muster):
    done = muster.run('run', '--dry-run', '-o', 'yaml', '-n', '2', '--name', 'a', '-o', 'json', '--name', 'b', '--', 'true')
    assert json.loads(done.stdout)['metadata']['name'] == 'b'


ALL = {'runPolicy': {'cleanPodPolicy': 'All'}}


@pytest.mark.parametrize('verb, words, says', [
    ('run', ['-n', '2', '--nproc-per-node', '3', '--', 'true'], "run: -n (--nproc-per-node) is given twice: '2' and '3'"),
    ('run', ['-n', '2', '-n', '3', '--', 'true'], "'2' and '3'"),
    ('run', ['-n', '2', '--image', 'a', '--image', 'b', '--', 'true'], "--image is given twice: 'a' and 'b'"),
    ('run', ['-f', 'job.yaml', '--timeout', '0'], '--timeout 0 would end the job at once'),
    ('run', ['-f', 'job.yaml', '--gpus', '0', '--share-gpu'], 'no container requests GPUs (nvidia.com/gpu; --gpus N requests them)'),
    ('run', ['-f', 'alone.yaml', '--after-end', '3s'], '--after-end has no effect'),
    ('run', ['-f', 'all.yaml', '--after-end', '3s'], 'cleanPodPolicy None'),
    *[(verb, ['claim.yaml', *words], f'{verb}: {words[0]} has no effect: the file contains no PyTorchJob')
      for verb in ('create', 'apply')
      for words in (['--env', 'A=b'], ['--network', 'host'], ['--backend', 'muster'], ['--no-gpu'], ['--share-gpu'], ['--all-ranks'],
                    ['--runtime', 'process'])],
    *[(verb, ['job.yaml', '--no-gpu'], f'{verb}: --no-gpu has no effect: no container requests GPUs (nvidia.com/gpu), and')
      for verb in ('create', 'apply')],
])
def test_an_option_without_effect_is_an_error(muster, verb, words, says):
    muster.write('job.yaml', a_job())
    muster.write('alone.yaml', job('alone', shell('true')))
    every = a_job()
    every['spec'].update(ALL)
    muster.write('all.yaml', every)
    muster.write('claim.yaml', CLAIM)
    assert says in muster.run(verb, *words, code=64).stderr


def test_an_option_may_be_said_twice_alike(muster):
    done = muster.run('run', '-n', '2', '--nproc-per-node=2', '--', 'echo', 'hi')
    assert sorted(done.stdout.splitlines()) == ['[rank 0] hi', '[rank 1] hi']


# ---- words that mean something else ----

TORCHRUN = ['--nnodes=1', '--nnodes', '--standalone', '--master-port=29500', '--master_port', '--rdzv-backend', '--node_rank',
            '--log-dir', '--tee', '--oversubscribe', '-x', '--np']


@pytest.mark.parametrize('words, says', [
    *[(['run', word, '1', '-n', '2', 'x'], f"run's {word.split('=')[0].replace('_', '-')}:") for word in TORCHRUN],
    (['run', '-m', 'pkg.train'], "torchrun's --module: write the command as it is behind --"),
    (['get', 'pods', '-n', '4'], 'get: -n is the namespace here (the number of ranks in run and perf); if a namespace is called 4: '
                                 '--namespace 4'),
    (['logs', 'job', '-n5'], 'the last lines are --tail 5'),
    (['create', '-n', '2', '-f', 'job.yaml'], 'create: -n is the namespace here'),
    (['run', '-n', 'default', '-f', 'job.yaml'], "run: -n is the number of ranks (a number, auto, gpu or cpu), not 'default'; a "
                                                 'namespace is --namespace default'),
    (['run', '-n', 'default', '--', 'true'], 'a namespace is --namespace default'),
    (['run', '-n', '2', '-f', 'job.yaml'], 'exclude each other: a file says itself'),
    (['perf', 'allreduce', '-n', 'default'], '-n is the number of ranks, from 1; invalid: default'),
    (['run', '-np', '2', '--', 'true'], "mpirun's -np: the number of ranks is -n N"),
    (['run', 'train.py'], "run: 'train.py' is a script: muster run -n N -- python3 train.py (on N ranks)"),
    (['run', 'train.py', '--lr', '3'], "run: 'train.py' is a script: muster run -n N -- python3 train.py --lr … (on N ranks)"),
    (['run', 'train.py', '-lr', '3'], 'muster run -n N -- python3 train.py -lr …'),
    (['run', 'train.sh', '3'], 'muster run -n N -- sh train.sh … (on N ranks)'),
    (['run', 'python3', 'train.py', 'x'], "run: 'python3' is a program: muster run -n N -- python3 train.py … (on N ranks)"),
    (['run', 'torchrun', '--nproc-per-node', '2', 'train.py'], "'torchrun' is a program: muster run -n 2 -- python3 train.py"),
    (['run', '--nproc_per_node', '2', 'train.py'], "'train.py' is a script: muster run -n 2 -- python3 train.py"),
    (['run', '-n', '2', '--', './train.py'], "'./train.py' is a script: muster run -n 2 -- python3 ./train.py"),
    (['run', '-f', 'job.yaml', 'train.py'], "'train.py' is a script"),
    (['run', '--', 'train.py'], 'the number of ranks is missing'),
    (['run', './program'], "'./program' is a program: muster run -n N -- ./program"),
])
def test_a_misunderstanding_is_explained(muster, words, says):
    muster.write('job.yaml', a_job())
    (muster.work / 'train.py').write_text('print(1)\n')
    (muster.work / 'program').write_text('#!/bin/sh\n')
    (muster.work / 'program').chmod(0o755)
    done = muster.run(*words, code=64)
    assert says in done.stderr


def test_a_file_needs_no_letter(muster):
    muster.write('job.yaml', job('plain', shell('echo hi')))
    (muster.work / 'job').write_text((muster.work / 'job.yaml').read_text())
    (muster.work / 'job').chmod(0o755)  # as the mode of a file from another system may be
    assert muster.run('run', 'job.yaml').stdout == '[rank 0] hi\n'
    assert muster.run('run', 'job').stdout == '[rank 0] hi\n'
    assert 'no-such.yaml' in muster.run('run', 'no-such.yaml', code=66).stderr


def test_ranks_of_the_machine(muster):
    muster.env['MUSTER_GPUS'] = 'none'
    for word in ('cpu', 'auto'):
        assert len(muster.run('run', '-n', word, '--', 'echo').stdout.splitlines()) == len(os.sched_getaffinity(0))
    assert 'this machine has no GPU' in muster.run('run', '--nproc-per-node', 'gpu', '--', 'true', code=64).stderr


def test_a_rank_for_each_gpu(muster):
    muster.env['MUSTER_GPUS'] = '0,1,2'
    done = muster.run('run', '--nproc_per_node=gpu', '--', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES')
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == ['0', '1', '2']


@pytest.mark.parametrize('words, message', [(['--overlay', 'none'], 'one of cluster|ha|namespaced|webhook|images'), (['-o', 'name'], 'one of json|yaml'),
                                            (['--overlay', 'namespaced', '-n', 'Team_A'], '--namespace must be made of a-z'),
                                            (['--image', ''], '--image must'), (['--image', 'muster 2'], '--image must')])
def test_deploy_refuses_what_no_cluster_would_take(muster, words, message):
    refused = muster.run('deploy', '--print', *words, code=64)
    assert message in refused.stderr and not refused.stdout


# ---- options that messages recommend exist ----

# A file of src/ makes the messages of the verb whose folder and name it has, or of these verbs. Files that name options of other programs
# are left out.
JOB_VERBS = ['run', 'create', 'apply']
OTHERS = {'gpu_memory.c', 'podman.c', 'pyspy.c', 'paste.c', 'podman.h', 'supervisor.c', 'supervisor_start.c', 'cgroup.c', 'protobuf.c', 'strategic.c', 'torchrun.c',
          'cluster.c', 'completion.c', 'help.c', 'help_verb.c', 'markdown.c', 'manual.c', 'args.c', 'args_values.c', 'dispatch.c', 'help.h', 'main.c',
          'describe.def', 'commands.def'}
SPEAKERS = {'admission.c': JOB_VERBS, 'image.c': JOB_VERBS, 'submit.c': JOB_VERBS, 'images.c': JOB_VERBS, 'generated.c': ['run'],
            'overrides.c': ['run'], 'endpoint.c': ['down'], 'program.c': ['run'], 'override.c': ['run'], 'operator.c': ['deploy'], 'up.c': ['kubeconfig']}
FOREIGN = {'docker-password', 'docker-server', 'docker-username', 'force-conflicts', 'from-literal', 'interactive', 'server-side', 'tty'}  # kubectl's
FOLDERS = {'job': JOB_VERBS}
ELSEWHERE = {('down.c', 'prune'): ['history']}  # options of another verb, which the message names


def recommended(path):
    """Returns the options in the string literals of a file, which is C or a table in C; neighbouring literals are joined."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/', '', path.read_text(), flags=re.S)
    joined = re.sub(r'"\s*"', '', text)
    literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
    sentences = [literal for literal in literals if ' ' in literal.strip()]  # others are words of a command that is run
    return {word for sentence in sentences for word in re.findall(r'(?<![\w-])--([a-z][a-z-]+)', sentence)}


def test_each_option_that_a_message_recommends_exists(muster):
    verbs = {v: set(options_of(muster, v)) for v in re.findall(r'^  (\w+) ', muster.run('--help').stdout.split('Commands:')[1]
                                                             .split('\n\n')[0], re.M)}
    wrong, seen = [], 0
    for path in sorted((SOURCE / 'src').rglob('*')):
        folder = path.parent.name
        if path.suffix not in ('.c', '.h', '.def') or path.name in OTHERS or path.stem.endswith('_test') or folder == 'perf':
            continue
        speakers = SPEAKERS.get(path.name) or FOLDERS.get(folder) or ([path.stem] if folder == 'verb' and path.stem in verbs else list(verbs))
        for word in recommended(path) - FOREIGN:
            seen += 1
            own = ELSEWHERE.get((path.name, word), speakers)
            lacking = [v for v in own if word not in verbs[v]] if len(own) < len(verbs) else \
                [] if any(word in options for options in verbs.values()) else ['any']
            if lacking:
                wrong.append(f'{path.relative_to(SOURCE)} recommends --{word}, which is no option of {", ".join(lacking)}')
    assert seen > 10 and not wrong, '\n'.join(wrong)


@pytest.mark.parametrize('verb', ['create', 'apply'])
def test_create_takes_its_own_hints(muster, verb):
    muster.env['MUSTER_GPUS'] = 'none'
    training = job('gpu', shell('true'))
    training['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['resources'] = {
        'limits': {'nvidia.com/gpu': 1}}
    muster.write('job.yaml', training)
    assert '--no-gpu runs without' in muster.run(verb, '-f', 'job.yaml', code=None).stderr
    muster.run(verb, '-f', 'job.yaml', '--no-gpu', '--network', 'private', '--backend', 'muster')
    muster.wait_condition('gpu', 'Succeeded')
    assert muster.get('job', 'gpu')['metadata']['annotations']['muster.dev/network'] == 'private'
