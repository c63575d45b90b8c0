"""Which variables a rank has from the shell's environment, -e and --env-file; where the values are stored meanwhile, and that they are nowhere
afterwards (docs/environment.md)."""
import functools
import hashlib
import json
import os
import resource
import signal
import stat
import subprocess

import pytest
from conftest import LIMIT_S, job, wait_for

CANARY = 'c4n4ry-5up3r-53cr3t'
DIGEST = hashlib.sha256(CANARY.encode()).hexdigest()
# The values are not printed, for the log is under MUSTER_HOME.
SAY = 'for name in BY_SHELL BY_NAME BY_VALUE BY_FILE; do printenv $name | tr -d "\\n" | sha256sum; done'


def holders(folder):
    """Returns the files below the folder in whose bytes or name the canary is."""
    found = []
    for path in folder.rglob('*'):
        try:
            if CANARY in path.name or (path.is_file() and CANARY.encode() in path.read_bytes()):
                found.append(path)
        except FileNotFoundError:
            continue
    return found


def shell(**more):
    return {**more, 'BY_SHELL': CANARY, 'BY_NAME': CANARY}


def give(muster):
    (muster.work / 'secrets.env').write_text(f'# a comment\nBY_FILE={CANARY}\n')
    return ['-e', 'BY_NAME', '-e', f'BY_VALUE={CANARY}', '--env-file', 'secrets.env']


def ends(muster, command, restart='Never', workers=1, name='secret'):
    return muster.write(f'{name}.yaml', job(name, command, workers=workers, restart=restart))


def test_n_gives_the_whole_environment_less_a_launchers(muster):
    strays = {'RANK': '7', 'LOCAL_RANK': '7', 'MASTER_PORT': '1', 'OMPI_COMM_WORLD_RANK': '7', 'PMI_RANK': '7', 'PMIX_RANK': '7',
              'PRTE_X': '7', 'SLURM_PROCID': '7', 'TORCHELASTIC_RUN_ID': '7', 'PET_LOG_DIR': '7', 'GROUP_RANK': '7',
              'ROLE_NAME': '7', 'MUSTER_BACKEND': '7'}
    kept = {'WANDB_MODE': 'offline', 'A_B': 'c d', 'TORCH_DISTRIBUTED_DEBUG': 'INFO', 'EMPTY': ''}
    names = ' '.join([*strays, *kept])
    script = f'import os; print([(n, os.environ.get(n)) for n in "{names}".split()])'
    done = muster.run('run', '-n', '2', '--', 'python3', '-c', script, env={**strays, **kept})
    lines = dict(line[1:].split('] ', 1) for line in done.stdout.splitlines())
    seen = dict(eval(lines['rank 1']))  # pylint: disable=eval-used
    assert {n: seen[n] for n in kept} == kept
    assert seen['RANK'] == '1' and seen['LOCAL_RANK'] == '0' and seen['MASTER_PORT'] != '1'
    assert {n for n in strays if seen[n] is not None} == {'RANK', 'LOCAL_RANK', 'MASTER_PORT'}


def test_f_keeps_its_list_and_takes_what_is_given(muster):
    path = ends(muster, ['sh', '-c', 'echo $LC_ALL,$STRAY,$A,$B,$C'])
    (muster.work / 'f.env').write_text('A=file\nB=file\nC\n')
    done = muster.run('run', '-f', path, '--env-file', 'f.env', '-e', 'A=e', '-e', 'A=last',
                      env={'LC_ALL': 'C', 'STRAY': 'x', 'C': 'shell'})
    assert sorted(done.stdout.splitlines()) == ['[rank 0] C,,last,file,shell', '[rank 1] C,,last,file,shell']


def test_train_keeps_the_list_and_takes_envs(muster):
    done = muster.run('train', '--num_workers', '1', '--envs', 'GIVEN=1,2', '--', 'sh', '-c', 'echo "$LC_ALL+$STRAY+$GIVEN"; exit 3',
                      code=None, env={'LC_ALL': 'C', 'STRAY': 'x'})
    assert '[rank 0] C++1,2' in done.stdout.splitlines(), done


def test_e_wins_over_the_file_and_the_file_over_the_shell(muster):
    made = job('order', ['sh', '-c', 'echo $(A) $A $B $LC_ALL'])
    for replica in made['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec']['containers'][0]['env'] = [{'name': n, 'value': 'file'} for n in ('A', 'B', 'LC_ALL')]
    path = muster.write('order.yaml', made)
    done = muster.run('run', '-f', path, '-e', 'A=e', env={'LC_ALL': 'C'})
    assert done.stdout == '[rank 0] e e file file\n'


@pytest.mark.parametrize('words,env,says', [
    (['-e', 'NOT_SET'], {}, '-e NOT_SET is not set in this shell'),
    (['-e', '=x'], {}, '-e must be NAME or NAME=VALUE'),
    (['-e', 'RANK=3'], {}, '-e RANK is set by muster for each rank'),
    (['--env-file', 'nowhere.env'], {}, '--env-file: cannot open nowhere.env: No such file or directory'),
    (['--env-file', 'bad.env'], {}, 'bad.env:2: white space in the name'),
    (['--env-file', 'unset.env'], {}, 'unset.env:1: NOT_SET is not set in this shell'),
])
def test_what_is_wrong_with_an_option_is_said_without_its_value(muster, words, env, says):
    (muster.work / 'bad.env').write_text(f'A=1\nB C={CANARY}\n')
    (muster.work / 'unset.env').write_text('NOT_SET\n')
    path = ends(muster, ['true'])
    for verb in (['run', '-n', '1', *words, '--', 'true'], ['run', '-f', path, *words], ['create', '-f', path, *words]):
        done = muster.run(*verb, code=None, env=env)
        assert done.returncode in (64, 65, 66), done
        assert says in done.stderr and CANARY not in done.stderr
    assert not muster.home.exists()  # the error is found before a controller is needed


@pytest.mark.parametrize('way', ['-n', '-f'])
def test_values_lie_in_one_file_and_then_nowhere(muster, way):
    """While a rank waits, the canary is in one file of mode 0600; after the end it is in no file. muster never prints it."""
    hold = f'{SAY}; until test -e {muster.work}/go; do sleep 0.02; done'
    what = ['-n', '2', '--name', 'secret', *give(muster)] if way == '-n' else ['-f', ends(muster, ['sh', '-c', hold]), *give(muster)]
    tail = ['--', 'sh', '-c', hold] if way == '-n' else []
    muster.env.update(shell())
    running = muster.start('run', *what, '--results', 'out', *tail)
    pods = wait_for(lambda: [p for p in muster.get('pods') if p.get('status', {}).get('phase') == 'Running'], 'a rank runs')
    held = holders(muster.home)
    assert len(held) == 1 and held[0].parent.name == 'environments'
    assert stat.S_IMODE(held[0].stat().st_mode) == 0o600 and stat.S_IMODE(held[0].parent.stat().st_mode) == 0o700
    said = [muster.run('get', 'job,pods,events', '-o', 'yaml').stdout, muster.run('describe', 'secret').stdout,
            muster.run('describe', pods[0]['metadata']['name']).stdout, muster.run('events', 'secret').stdout]
    (muster.work / 'go').touch()
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, err
    wait_for(lambda: not holders(muster.home), 'the values are gone')
    assert not holders(muster.work / 'out')
    said += [out, err, muster.run('get', 'job', '-o', 'yaml').stdout, muster.run('describe', 'secret').stdout,
             muster.run('logs', 'secret').stdout]
    assert not any(CANARY in text for text in said)
    empty = hashlib.sha256(b'').hexdigest()
    expected = [DIGEST if way == '-n' else empty, DIGEST, DIGEST, DIGEST]
    for rank in (0, 1):
        assert [line.split()[2] for line in out.splitlines() if line.startswith(f'[rank {rank}]')] == expected


def test_restarts_have_it_also_after_a_kill_of_the_controller(muster):
    once = (f'{SAY}; if ! test -e {muster.work}/again; then touch {muster.work}/again; until test -e {muster.work}/go; '
            'do sleep 0.02; done; exit 1; fi')
    muster.run('create', '-f', ends(muster, ['sh', '-c', once], restart='OnFailure', workers=0), *give(muster), env=shell())
    wait_for(lambda: (muster.work / 'again').exists(), 'the first attempt')
    os.kill(muster.status(), signal.SIGKILL)
    assert len(holders(muster.home)) == 1
    muster.wait_condition('secret', 'Running')  # starts another controller
    assert len(holders(muster.home)) == 1
    (muster.work / 'go').touch()
    muster.wait_condition('secret', 'Succeeded')
    wait_for(lambda: not holders(muster.home), 'the values are gone')
    empty = hashlib.sha256(b'').hexdigest()
    assert [line.split()[-2] for line in muster.run('logs', 'secret').stdout.splitlines()] == [empty, DIGEST, DIGEST, DIGEST]


def test_a_pod_made_after_a_kill_of_the_supervisor_has_it(muster):
    """The pods of the killed supervisor are lost; the job creates them again, under another supervisor."""
    hold = f'{SAY}; touch {muster.work}/up; until test -e {muster.work}/go; do sleep 0.02; done'
    muster.run('create', '-f', ends(muster, ['sh', '-c', hold], restart='ExitCode', workers=0), *give(muster), env=shell())
    wait_for(lambda: (muster.work / 'up').exists(), 'the first pod')
    first = muster.get('pods')[0]['metadata']['uid']
    started, = muster.home.glob('jobs/*/containers/*/*/0/started.json')
    os.kill(int(json.loads(started.read_text())['supervisor'].split('-')[0]), signal.SIGKILL)
    wait_for(lambda: [p for p in muster.get('pods') if p['metadata']['uid'] != first and
                      p.get('status', {}).get('phase') == 'Running'], 'another pod')
    assert len(holders(muster.home)) == 1
    (muster.work / 'go').touch()
    muster.wait_condition('secret', 'Succeeded')
    wait_for(lambda: not holders(muster.home), 'the values are gone')
    assert [line.split()[-2] for line in muster.run('logs', 'secret-master-0').stdout.splitlines()][1:] == [DIGEST] * 3


def test_a_suspended_job_keeps_it(muster):
    say = f'{SAY}; test -e {muster.work}/go || sleep 1000'
    muster.run('create', '-f', ends(muster, ['sh', '-c', say], workers=0), *give(muster), env=shell())
    wait_for(lambda: DIGEST in muster.run('logs', 'secret', code=None).stdout, 'the rank says it')
    muster.run('suspend', 'secret')
    wait_for(lambda: not muster.get('pods'), 'no pod is left')
    assert len(holders(muster.home)) == 1
    (muster.work / 'go').touch()
    muster.run('resume', 'secret')
    muster.wait_condition('secret', 'Succeeded')
    assert [line.split()[-2] for line in muster.run('logs', 'secret-master-0').stdout.splitlines()][1:] == [DIGEST] * 3
    wait_for(lambda: not holders(muster.home), 'the values are gone')


def test_a_container_gets_it_by_name(muster):
    """A stand-in for podman prints what it gets: the values are in its environment, and on no command line."""
    stand_in = muster.work / 'bin/podman'
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\n'
                        f'{SAY}\nfor word in "$@"; do case $word in --env=*) echo "$word";; esac; done\n')
    stand_in.chmod(0o755)
    path = f'{stand_in.parent}:{os.environ["PATH"]}'
    muster.run('up', env={'PATH': path})
    done = muster.run('run', '-n', '1', '--runtime', 'podman', *give(muster), '--', 'train', env={**shell(), 'PATH': path})
    lines = [line.removeprefix('[rank 0] ') for line in done.stdout.splitlines()]
    assert [line.split()[0] for line in lines[:4]] == [DIGEST] * 4
    assert {f'--env={name}' for name in ('BY_SHELL', 'BY_NAME', 'BY_VALUE', 'BY_FILE', 'RANK')} <= set(lines)
    assert not [line for line in lines if line.startswith(('--env=PATH', '--env=HOME', '--env=MUSTER_HOME', '--env=BY_NAME='))]
    assert CANARY not in done.stdout and not holders(muster.home)


def test_exec_has_it(muster):
    muster.env.update(shell())
    muster.run('create', '-f', ends(muster, ['sleep', '1000'], workers=0), *give(muster))
    muster.wait_condition('secret', 'Running')
    assert muster.run('exec', 'secret', '--', 'printenv', 'BY_FILE').stdout == CANARY + '\n'
    muster.run('delete', 'job', 'secret', '--grace-period', '0')


def test_deletion_and_a_refused_creation_leave_nothing(muster):
    path = ends(muster, ['sleep', '1000'], workers=0)
    muster.run('create', '-f', path, *give(muster), env=shell())
    assert len(holders(muster.home)) == 1
    done = muster.run('create', '-f', path, *give(muster), env=shell(), code=None)
    assert 'already exists' in done.stderr
    assert len(holders(muster.home)) == 1
    muster.run('delete', 'job', 'secret', '--grace-period', '0')
    wait_for(lambda: not holders(muster.home), 'the values are gone')


def test_orphans_go_when_a_controller_starts(muster):
    muster.run('up')
    muster.run('down')
    orphan = muster.home / 'environments' / ('0' * 32)
    draft = muster.home / 'environments' / ('.' + '1' * 32)
    for path in (orphan, draft):
        path.write_text(f'A={CANARY}\0')
    muster.run('up')
    assert not orphan.exists() and not draft.exists()


def test_a_job_that_another_names_the_environment_of_is_refused(muster):
    made = job('stray', ['true'])
    made['metadata']['annotations'] = {'muster.dev/environment': 'f' * 32}
    muster.run('up')
    socket = ['curl', '-s', '--unix-socket', str(muster.home / 'api.sock'), '-H', 'Content-Type: application/json', '-d', '@-',
              'http://muster/apis/kubeflow.org/v1/namespaces/default/pytorchjobs']
    path = muster.write('stray.json', made)
    answer = subprocess.run(socket, stdin=path.open(), capture_output=True, text=True, check=True).stdout
    assert 'names an environment that went with its job (remove it)' in answer
    muster.run('run', '-f', path)  # run gives the job an environment of its own


def test_the_same_file_applied_again_is_unchanged(muster):
    path = ends(muster, ['sleep', '1000'], workers=0)
    assert 'created' in muster.run('apply', '-f', path, '-e', 'A=1').stdout
    assert 'unchanged' in muster.run('apply', '-f', path, '-e', 'A=2').stdout
    held, = (muster.home / 'environments').iterdir()
    assert b'\0A=2\0' in held.read_bytes()


def test_bytes_and_odd_names_survive(muster):
    script = 'import os; e = os.environb; print([e[n] for n in (b"ODD", b"BASH_FUNC_x%%", b"a.b-c", b"LINES2")])'
    odd = {b'ODD': b'\xff\xfe \xc3(', b'BASH_FUNC_x%%': b'() {  :\n}', b'a.b-c': b'1', b'LINES2': b'a\nb'}
    env = {**{os.fsencode(k): os.fsencode(v) for k, v in muster.env.items()}, **odd}
    done = subprocess.run([muster.binary, 'run', '-n', '2', '--', 'python3', '-c', script], cwd=muster.work, env=env,
                          capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert sorted(done.stdout.splitlines()) == [f'[rank {r}] {list(odd.values())}' for r in (0, 1)]


def test_threads_of_the_user_win(muster):
    say = ['--', 'sh', '-c', 'echo $OMP_NUM_THREADS']
    muster.env.pop('OMP_NUM_THREADS', None)
    assert set(muster.run('run', '-n', '2', *say).stdout.split()) == {'[rank', '0]', '1]', '1'}
    assert '[rank 1] 5\n' in muster.run('run', '-n', '2', *say, env={'OMP_NUM_THREADS': '5'}).stdout
    assert '[rank 1] 6\n' in muster.run('run', '-n', '2', '-e', 'OMP_NUM_THREADS=6', *say, env={'OMP_NUM_THREADS': '5'}).stdout


def test_visible_devices_limit_the_pool(muster):
    muster.env['MUSTER_GPUS'] = '0,1,2,3'
    say = ['--', 'sh', '-c', 'echo [$CUDA_VISIBLE_DEVICES]']
    done = muster.run('run', '-n', '2', '--gpus', '1', *say, env={'CUDA_VISIBLE_DEVICES': '2,3'})
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == ['[2]', '[3]']
    for visible, count in (('2', 1), ('', 0), ('-1', 0), ('NoDevFiles', 0), ('1,-1,2', 1), ('1,1', 0)):
        done = muster.run('run', '-n', '2', '--gpus', '1', *say, env={'CUDA_VISIBLE_DEVICES': visible}, code=None)
        assert done.returncode == 65, done
        assert f'needs 2 GPUs (nvidia.com/gpu), this machine has 4, and CUDA_VISIBLE_DEVICES of the shell that submits it ' \
               f'allows {count} of them: "{visible}"' in done.stderr
    path = muster.write('gpus.yaml', {**job('gpus', ['sh', '-c', 'echo [$CUDA_VISIBLE_DEVICES]'])})
    done = muster.run('run', '-f', path, env={'CUDA_VISIBLE_DEVICES': '2'})
    assert done.stdout == '[rank 0] []\n'  # the job requests no GPU


def test_a_dry_run_names_what_the_file_lacks(muster):
    muster.env.update(shell())
    done = muster.run('run', '-n', '2', *give(muster), '--dry-run', '--', 'true')
    given, inherited = done.stderr.splitlines()
    assert given == 'muster: note: the file lacks 3 variables that -e or --env-file gives the ranks here: BY_VALUE, BY_NAME, BY_FILE'
    assert 'of this shell that the ranks have here: ' in inherited and ' BY_SHELL' in inherited
    assert CANARY not in done.stdout + done.stderr and 'muster.dev/environment' not in done.stdout
    done = muster.run('run', '-f', ends(muster, ['true']), '-e', 'ONE', '--dry-run', env={'ONE': 'x'})
    assert 'the file lacks 1 variable that -e or --env-file gives the ranks here: ONE\n' in done.stderr
    assert 'PATH' in done.stderr and 'BY_SHELL' not in done.stderr


def test_too_much_is_one_error_before_anything_is_created(muster):
    (muster.work / 'large.env').write_text('LARGE=' + 'x' * (128 << 10) + '\n')
    done = muster.run('run', '-n', '2', '--env-file', 'large.env', '--', 'true', code=None)
    assert done.returncode in range(64, 79)
    assert done.stderr == 'muster: large.env:1: LARGE has 128 KiB: the kernel allows a variable 128 KiB\n'
    (muster.work / 'many.env').write_text(''.join(f'LARGE_{i}={"x" * (100 << 10)}\n' for i in range(20)) + 'L=' + 'x' * (120 << 10))
    done = muster.run('run', '-n', '2', '--env-file', 'many.env', '--', 'true', code=None)
    assert len(done.stderr.splitlines()) == 1 and 'the largest variable, L, has 120)' in done.stderr
    fits = 'LARGE=' + 'x' * ((128 << 10) - len('LARGE=') - 1) + '\n'
    (muster.work / 'fits.env').write_text(fits + ''.join(f'LARGE_{i}={"x" * (100 << 10)}\n' for i in range(17)))
    done = muster.run('run', '-n', '2', '--env-file', 'fits.env', '--', 'sh', '-c', 'echo ${#LARGE} ${#LARGE_16}')
    assert '[rank 1] 131065 102400\n' in done.stdout


def test_ranks_have_the_limits_of_the_shell(muster):
    """The limits are those of the shell in which `run` is typed; the limits of the shell that started the controller do not end the controller."""
    def set_limits(core, cpu, files):
        resource.setrlimit(resource.RLIMIT_CORE, (core, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    for core, cpu, files in (0, 1000, 200), (1 << 20, 2000, 300):
        process = muster.start('run', '-n', '1', '-q', '--', 'sh', '-c', 'ulimit -Sc; ulimit -St; ulimit -Sn',
                               preexec_fn=functools.partial(set_limits, core, cpu, files))
        out, err = process.communicate(timeout=LIMIT_S)
        assert out.split('\n')[:3] == [f'[rank 0] {limit}' for limit in (core // 512, cpu, files)], err
    assert resource.prlimit(muster.status(), resource.RLIMIT_CPU)[0] == resource.prlimit(muster.status(), resource.RLIMIT_CPU)[1]


def test_files_of_ranks_have_the_modes_of_the_shells_umask(muster):
    """It is the umask of the shell in which `run` is typed, not of the shell that started the controller."""
    muster.run('up')
    process = muster.start('run', '-n', '1', '--', 'sh', '-c', 'umask; touch made', preexec_fn=lambda: os.umask(0o077))
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (0, '[rank 0] 0077\n'), err
    assert (muster.work / 'made').stat().st_mode & 0o777 == 0o600
    process = muster.start('run', '-n', '1', '--', 'sh', '-c', 'umask', preexec_fn=lambda: os.umask(0o022))
    assert process.communicate(timeout=LIMIT_S)[0] == '[rank 0] 0022\n'


def test_a_variable_that_ranks_would_read_is_said_not_to_be_passed(muster):
    """Ranks do not get the MUSTER_* variables of the shell (docs/pytorch.md)."""
    env, said = {'MUSTER_TRANSPORT': 'tcp'}, 'note: MUSTER_TRANSPORT of this shell is not passed to the ranks; -e MUSTER_TRANSPORT passes it'
    words = 'sh', '-c', 'echo "it is ${MUSTER_TRANSPORT-not set}"'
    done = muster.run('run', '-n', '1', '--', *words, env=env)
    assert said in done.stderr and 'it is not set' in done.stdout
    for given in ('MUSTER_TRANSPORT', 'MUSTER_TRANSPORT=shm'):
        done = muster.run('run', '-n', '1', '-e', given, '--', *words, env=env)
        assert said not in done.stderr and f'it is {given.partition("=")[2] or "tcp"}' in done.stdout
