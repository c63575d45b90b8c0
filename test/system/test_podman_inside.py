"""Ranks in podman containers, observed and entered from outside: exec, standard input, logs, restarts, subPath, stacks, memory."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import LIMIT_S, wait_for
from podman_engine import claim, container_job, containers_of, data, engine, muster, run  # noqa: F401 (fixtures, too)

pytestmark = pytest.mark.heavy  # .ci/suite-podman


def start(muster, made, *words):
    """Starts a run in the background, and waits until each rank has touched /data/up-RANK."""
    ranks = sum(replica['replicas'] for replica in made['spec']['pytorchReplicaSpecs'].values())
    process = muster.start('run', '-f', muster.write('job.yaml', claim('data'), made), '--runtime', 'podman', *words)
    wait_for(lambda: process.poll() is not None or all(data(muster, f'up-{rank}').exists() for rank in range(ranks)), 'all ranks run')
    assert process.poll() is None, process.communicate()
    return process


def raw(muster, *words, given=None, code=0):
    """Returns standard output as bytes."""
    done = subprocess.run([muster.binary, *map(str, words)], cwd=muster.work, env=muster.env, input=given, capture_output=True, timeout=LIMIT_S,
                          check=False, stdin=subprocess.DEVNULL if given is None else None, **muster.who)
    assert done.returncode == code, done
    return done.stdout


# ---- exec ----

UP = 'touch /data/up-$RANK; exec sleep 1000'


def test_exec_runs_in_the_container_of_the_rank(engine, muster):
    start(muster, container_job(engine, 'a', UP, workers=1, env={'COLOUR': 'deep green'}))
    done = muster.run('exec', 'a:1', '--', 'sh', '-c', 'echo $RANK $COLOUR; test ! -e /usr/bin/env; echo $?; echo oops >&2; exit 5', code=5)
    assert (done.stdout, done.stderr) == ('1 deep green\n0\n', 'oops\n')
    assert muster.run('exec', 'a', '--', 'sh', '-c', 'echo $RANK').stdout == '0\n'
    assert 'no-such-program' in muster.run('exec', 'a', '--', 'no-such-program', code=127).stderr
    assert muster.run('exec', 'a', '--', 'sh', '-c', 'kill -TERM $$', code=143).stderr == ''
    assert muster.run('exec', 'a', '--', 'sh', '-c', 'echo a; sleep 1000 & exit 0').stdout == 'a\n'


def test_exec_passes_bytes_both_ways(engine, muster):
    start(muster, container_job(engine, 'a', UP))
    sent = os.urandom(3_000_000)
    assert raw(muster, 'exec', 'a', '-i', '--', 'cat', given=sent) == sent
    assert raw(muster, 'exec', 'a', '--', 'cat', given=b'not for it') == b''


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGINT])
def test_exec_leaves_nothing_when_its_client_goes(engine, muster, how):
    start(muster, container_job(engine, 'a', UP))
    mark = f'97{os.getpid()}'
    client = muster.start('exec', 'a', '--', 'sh', '-c', f'trap "" INT TERM HUP; setsid sleep {mark} & echo on; sleep {mark}')
    assert client.stdout.readline() == 'on\n'
    client.send_signal(how)
    wait_for(lambda: mark not in raw(muster, 'exec', 'a', '--', 'ps').decode(), 'none is left')
    assert muster.condition('a') == 'Running'


def test_exec_when_the_rank_ends(engine, muster):
    run_ = start(muster, container_job(engine, 'a', UP))
    client = muster.start('exec', 'a', '--', 'sh', '-c', 'echo on; exec sleep 1000')
    assert client.stdout.readline() == 'on\n'
    run_.send_signal(signal.SIGINT)
    run_.communicate()
    assert client.wait(30) == 137
    assert 'the rank ended while the command ran' in client.stderr.read()
    assert 'ended' in muster.run('exec', 'a', '--', 'true', code=75).stderr


def test_exec_on_a_terminal(engine, muster):
    start(muster, container_job(engine, 'a', UP))
    script = f'exec "{muster.binary}" exec a -it -- sh -c "tty; stty size; exit 7"'
    done = subprocess.run(['script', '-qec', f'stty rows 33 cols 77; {script}', '/dev/null'], cwd=muster.work, env=muster.env,
                          stdin=subprocess.PIPE, capture_output=True, text=True, timeout=LIMIT_S, check=False, **muster.who)
    assert '/dev/pts/' in done.stdout and '33 77' in done.stdout and done.returncode == 7, done


# ---- standard input ----


def test_one_rank_reads_standard_input(engine, muster):
    path = muster.write('job.yaml', claim('data'), container_job(engine, 'a', 'echo $(cat | wc -c) in $RANK', workers=2))
    said = raw(muster, 'run', '-q', '-f', path, '--runtime', 'podman', '--stdin', 1, given=b'hello\n').decode()
    assert sorted(said.splitlines()) == ['[rank 0] 0 in 0', '[rank 1] 6 in 1', '[rank 2] 0 in 2']


def test_bytes_of_standard_input_arrive_as_they_are(engine, muster):
    sent = os.urandom(2_000_000)
    path = muster.write('job.yaml', claim('data'), container_job(engine, 'a', 'cat >/data/copy'))
    raw(muster, 'run', '-q', '-f', path, '--runtime', 'podman', '--stdin', 0, given=sent)
    assert data(muster, 'copy').read_bytes() == sent


# ---- logs ----


def sha(text):
    return hashlib.sha256(text).hexdigest()


def test_logs_are_byte_exact(engine, muster):
    script = 'cat /data/nasty; echo to stderr >&2'
    made = container_job(engine, 'exact', script)
    muster.run('create', '-f', muster.write('claim.yaml', claim('data')))
    nasty = b'\0\xff\xfe no newline \r\n\x1b[31m\xc3(\n\n\r' + b'x' * 200000 + os.urandom(3000000) + b'end \xe2\x82'
    data(muster, '').mkdir(parents=True, exist_ok=True)
    data(muster, 'nasty').write_bytes(nasty)
    path = muster.write('job.yaml', made)
    raw(muster, 'run', '-q', '-f', path, '--runtime', 'podman')
    assert sha(raw(muster, 'logs', 'exact-master-0')) == sha(nasty + b'to stderr\n')


def test_partial_lines_are_seen_before_they_end(engine, muster):
    process = start(muster, container_job(engine, 'dots', 'echo -n "no newline"; touch /data/up-$RANK; exec sleep 1000'))
    wait_for(lambda: raw(muster, 'logs', 'dots-master-0') == b'no newline', 'the partial line is there')
    process.send_signal(signal.SIGINT)
    process.communicate()


def test_rotation_says_that_the_beginning_is_gone(engine, muster):
    muster.run('create', '-f', muster.write('claim.yaml', claim('data')))
    data(muster, '').mkdir(parents=True, exist_ok=True)
    written = os.urandom(70_000_000)
    data(muster, 'much').write_bytes(written)
    path = muster.write('job.yaml', container_job(engine, 'long', 'cat /data/much; echo; echo last'))
    raw(muster, 'run', '-q', '-f', path, '--runtime', 'podman')
    printed = raw(muster, 'logs', 'long-master-0')
    assert (written + b'\nlast\n').endswith(printed) and 30_000_000 < len(printed) < 60_000_000
    done = subprocess.run([muster.binary, 'logs', 'long-master-0'], env=muster.env, capture_output=True, timeout=LIMIT_S, check=True, **muster.who)
    assert b"long-master-0's log were rotated away" in done.stderr


# ---- restarts ----


def test_all_ranks_restart_together(engine, muster):
    script = 'echo try $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; ' \
             '[ $RANK = 1 ] && exit 3; exec sleep 1000'
    path = muster.write('job.yaml', claim('data'), container_job(engine, 'tries', script, workers=1))
    done = muster.run('run', '-f', path, '--runtime', 'podman', '--max-restarts', '2')
    assert 'muster: restart 1 of 2: tries-worker-0 (rank 1) exited with code 3' in done.stderr
    assert '[rank 0] try 1 of 2' in done.stdout and '[rank 1] try 1 of 2' in done.stdout


# ---- subPath ----


def with_sub_path(engine, name, script, sub_path):
    made = container_job(engine, name, script)
    containers_of(made)[0]['volumeMounts'] = [{'name': 'v', 'mountPath': '/data', 'subPath': sub_path}]
    return made


def test_sub_path_is_made_in_its_volume(engine, muster):
    run(muster, with_sub_path(engine, 'a', 'echo x >/data/file', 'runs/one'))
    assert data(muster, 'runs/one/file').read_text() == 'x\n'


def test_sub_path_follows_no_symlink_out_of_its_volume(engine, muster):
    """A container may have put a symlink anywhere in the volume: it is resolved as if the volume were the root."""
    outside = muster.folder / 'outside'
    outside.mkdir()
    outside.chmod(0o777)
    run(muster, container_job(engine, 'a', f'ln -s {outside} /data/link; ln -s ../../../../../.. /data/up'))
    done = run(muster, with_sub_path(engine, 'b', 'touch /data/written', 'link'), code=1)
    assert 'volume v: subPath link cannot be opened in ' in done.stderr and not list(outside.iterdir())
    run(muster, with_sub_path(engine, 'c', 'touch /data/written', f'up{outside}'))
    assert not list(outside.iterdir())


# ---- stacks and stalls ----


def with_usr(made):
    """Mounts this machine's /usr in each container, so that /usr/bin/python3 runs there."""
    for replica in made['spec']['pytorchReplicaSpecs'].values():
        spec = replica['template']['spec']
        container = spec['containers'][0]
        spec['volumes'] = [*spec['volumes'], {'name': 'usr', 'hostPath': {'path': '/usr'}}]
        container['volumeMounts'] = [*container['volumeMounts'], {'name': 'usr', 'mountPath': '/usr', 'readOnly': True}]
    return made


SLEEPER = 'touch /data/up-$RANK; exec /usr/bin/python3 {} -c "import time; time.sleep(1000)"'


def stacks(muster, word='a'):
    ranks = json.loads(muster.run('stacks', word, '-o', 'json').stdout)['ranks']
    return {rank['rank']: rank for rank in ranks}


@pytest.mark.parametrize('options', ['', '-I'])
def test_stacks_say_what_a_container_runs_and_harm_nobody(engine, muster, options):
    """Neither Python without our handler nor sh is sent a signal whose default action kills."""
    made = with_usr(container_job(engine, 'a', f'if [ $RANK = 0 ]; then {SLEEPER.format(options)}; fi; touch /data/up-1; sleep 1000 & wait',
                                  workers=1))
    process = start(muster, made)
    python = wait_for(lambda: [p for p in stacks(muster)[0]['processes'] if 'python3' in p['command']], 'python runs')[0]
    assert python['parent'] == 0 and python['state'] == 'sleeping'
    assert python['why'] == "it runs in a container, where no Python has muster's handler: no stacks"
    commands = [p['command'].split()[0] for p in stacks(muster)[1]['processes']]
    assert commands == ['sh', 'sleep']  # neither podman nor conmon
    shown = muster.run('stacks', 'a').stdout
    assert 'rank 0 (a-master-0): sleeping' in shown and 'it runs in a container' in shown
    assert process.poll() is None and muster.condition('a') == 'Running'
    assert {p['pid'] for p in stacks(muster)[0]['processes']} == {python['pid']}


def test_py_spy_reads_the_stacks_of_a_container_from_outside(engine, muster):
    """py-spy is a program of this machine, and gets the PIDs that the processes have in the container."""
    start(muster, with_usr(container_job(engine, 'a', SLEEPER.format(''))))
    folder = muster.work / 'bin'
    folder.mkdir()
    (folder / 'py-spy').write_text(f'#!/bin/sh\necho "native of $* $(cat /proc/$3/comm) $(test -d {folder} && echo outside)"\n')
    (folder / 'py-spy').chmod(0o755)
    env = {'PATH': f'{folder}:{os.environ["PATH"]}'}
    shown = wait_for(lambda: [line for line in muster.run('stacks', 'a', env=env).stdout.splitlines() if 'native of' in line], 'python runs')
    assert shown == ['    native of dump --pid 1 --native python3 outside']


def test_a_silent_rank_in_a_container_is_said(engine, muster):
    script = 'touch /data/up-$RANK; [ $RANK = 0 ] && while :; do echo on; sleep 0.2; done; exec sleep 1000'
    process = start(muster, container_job(engine, 'a', script, workers=1), '--stall', '1s')
    line = ''
    while 'has printed nothing' not in line:
        line = process.stderr.readline()
        assert line, 'it ended'
    assert 'rank 1 has printed nothing and used no processor time for 1 s: sleeping' in line
    (event,) = [e for e in muster.get('events') if e['reason'] == 'RankStalled']
    assert event['involvedObject']['name'] == 'a-worker-0'


# ---- memory ----


EAT = '/usr/bin/python3 -c "b = bytearray({0} << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\n{1}"'
HOLD = 'open(\'/data/up-\' + __import__(\'os\').environ[\'RANK\'], \'w\')\n__import__(\'time\').sleep(1000)'


def test_top_counts_what_is_in_the_container(engine, muster):
    start(muster, with_usr(container_job(engine, 'a', f'exec {EAT.format(150, HOLD)}')))
    (rank,) = json.loads(muster.run('top', 'a', '-o', 'json').stdout)['ranks']
    assert rank['state'] == 'Running' and rank['processes'] == 1 and rank['cpuPercent'] < 50
    assert 150 << 20 < rank['memoryBytes'] <= rank['peakMemoryBytes'] < 220 << 20, rank
    assert rank['memoryLimitBytes'] is None


def test_peak_memory_is_that_of_the_container(engine, muster):
    path = muster.write('job.yaml', claim('data'), with_usr(container_job(engine, 'a', EAT.format(300, '__import__(\'time\').sleep(1)'))))
    doc = json.loads(muster.run('run', '-f', path, '--runtime', 'podman', '-o', 'json').stdout)
    assert 300 << 20 < doc['replicas'][0]['peakMemoryBytes'] < 380 << 20
    assert 'Peak Memory:' in muster.run('describe', 'pod', 'a-master-0').stdout


def test_out_of_memory_names_the_limit(engine, muster):
    made = with_usr(container_job(engine, 'a', f'exec {EAT.format(300, "")}'))
    containers_of(made)[0]['resources'] = {'limits': {'memory': '96Mi'}}
    path = muster.write('job.yaml', claim('data'), made)
    unlimited = engine.who and not pathlib.Path('/sys/fs/cgroup/cgroup.controllers').exists()  # only root can use cgroups of version 1
    done = muster.run('run', '-f', path, '--runtime', 'podman', '-o', 'json', code=0 if unlimited else 137)
    if unlimited:
        assert 'Resource limits are not supported and ignored' in muster.run('logs', 'a').stdout
        return
    (rank,) = json.loads(done.stdout)['replicas']
    assert rank['reason'] == 'OOMKilled' and 90 << 20 < rank['peakMemoryBytes'] <= 96 << 20
    assert 'ran out of memory and was killed (exit code 137): 96 MiB limit of resources.limits.memory (peak 96 MiB)' in done.stderr
