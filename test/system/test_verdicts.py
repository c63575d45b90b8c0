"""The table of verdicts (test/data/verdicts.md): scripts that end in different ways, in seven shapes of a job."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import LIMIT_S, SOURCE, job, wait_for
from program import PATIENCE

DATA = SOURCE / 'test/data'
CASES = json.loads((DATA / 'verdicts.json').read_text())
GRACE_S = 1
LATE_S = str(0.7 * PATIENCE)  # the time between two ends, so that the first is known; torchrun's ranks take 0.7 s
TORCHRUN_PYTHON = os.environ.get('MUSTER_TORCH2_PYTHON')


def command_of(case):
    script = str(DATA / 'verdicts' / case['script'])
    return [sys.executable, script] if script.endswith('.py') else ['sh', script]


def file_of(case, name, kind, policy):
    """Returns a PyTorchJob of two ranks that run the script."""
    run_policy = {} if policy == 'Never' else {'backoffLimit': 1}
    master = kind == 'master'
    # Without a Master nobody sets RANK, as upstream.
    command = command_of(case) if master else ['sh', '-c', 'RANK=${POD##*-} exec "$0" "$@"', *command_of(case)]
    doc = job(name, command, workers=1 if master else 2, master=master, restart=policy, run_policy=run_policy)
    for replica in doc['spec']['pytorchReplicaSpecs'].values():
        spec = replica['template']['spec']
        spec['terminationGracePeriodSeconds'] = GRACE_S
        spec['containers'][0]['env'] = [{'name': 'POD', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}}, {'name': 'LATE_S', 'value': LATE_S}]
        if 'memory' in case:
            spec['containers'][0]['resources'] = {'limits': {'memory': case['memory']}}
    return doc


def start(muster, case, shape):
    """Starts `muster run` of the script in that shape, in a folder of its own; returns the job's name and the process."""
    kind, _, policy = shape.partition('/')
    name = re.sub('[^a-z0-9]+', '-', f'{case["script"].rpartition(".")[0]}-{shape}'.lower())
    folder = muster.work / name
    folder.mkdir()
    options = case.get('options', {})
    own = options.get(shape, options.get(kind, options.get('*', [])))
    words = ['run', '--name', name, '-o', 'json', *(re.sub(r'^(\d+)s$', lambda found: f'{int(found[1]) * PATIENCE}s', word) for word in own)]
    if kind == 'n':
        muster.env['LATE_S'] = LATE_S
        words += ['-n', '2', *(['--memory', case['memory']] if 'memory' in case else []), '--', *command_of(case)]
    else:
        words += ['-f', muster.write(name + '.json', file_of(case, name, kind, policy))]
    return name, muster.start(*words, cwd=folder)


def pod_names(name, shape):
    return [f'{name}-worker-0', f'{name}-worker-1'] if shape.startswith('workers') else [f'{name}-master-0', f'{name}-worker-0']


def ranks_differ(doc, pods, expected):
    """Yields what is not as expected in the replicas."""
    found = {r['name']: (r['state'], r['exitCode']) for r in doc['replicas']}
    for rank, text in expected.items():
        phase, code = text.split()
        state = found.get(pods[int(rank)], (None, None))
        if state[1] != int(code) or phase not in ('*', state[0]):
            yield f'rank {rank} is {state}, not {text}'


def differs(muster, name, shape, process, expected):
    """Yields what is not as expected in a run, as lines."""
    out, err = process.communicate(timeout=muster.limit_s)
    if process.returncode != expected['exit']:
        yield f'exit status {process.returncode}, not {expected["exit"]}'
    doc = json.loads(out)
    if doc['state'] != expected['state']:
        yield f'state {doc["state"]}, not {expected["state"]}'
    if doc['exitCode'] != process.returncode:
        yield f'the object says exit status {doc["exitCode"]}, it was {process.returncode}'
    if muster.condition(name) != expected['state']:
        yield f'the API says {muster.condition(name)}, not {expected["state"]}'
    says, pods = expected['says'], pod_names(name, shape)
    for rank, pod in enumerate(pods):
        says = says.replace(f'{{{rank}}}', rf'{pod} \(rank {rank}\)')
    last = [line for line in err.splitlines() if line.startswith(f'muster: job {name} ')]
    if len(last) != 1 or not re.search(says, last[0]):
        yield f'says {last}, not "{says}"'
    yield from ranks_differ(doc, pods, expected.get('ranks', {}))


@pytest.mark.parametrize('case', CASES, ids=lambda case: case['script'])
def test_verdict(muster, case):
    muster.limit_s = 90 * PATIENCE
    runs = [(shape, *start(muster, case, shape)) for shape in case['expect']]
    wrong = [f'{shape}: {line}' for shape, name, process in runs
             for line in differs(muster, name, shape, process, case['expect'][shape])]
    assert not wrong, '\n'.join(wrong)


def test_table_is_whole():
    """Every script of the folder has its row, and every row all shapes."""
    shapes = {'n'} | {f'{kind}/{policy}' for kind in ('master', 'workers') for policy in ('Never', 'OnFailure', 'ExitCode')}
    assert {case['script'] for case in CASES} | {'order.sh'} == {path.name for path in (DATA / 'verdicts').iterdir()}
    assert len(CASES) >= 30 and all(set(case['expect']) == shapes for case in CASES)


def torchrun(case, folder):
    """Returns the exit status of torchrun for the script."""
    folder.mkdir()
    script = str(DATA / 'verdicts' / case['script'])
    words = ['--no_python', 'sh', script] if script.endswith('.sh') else [script]
    process = subprocess.Popen([TORCHRUN_PYTHON, '-m', 'torch.distributed.run', '--nproc_per_node=2', '--standalone', *words],
                               cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        process.communicate(timeout=LIMIT_S)
        return process.returncode
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


# torchrun of Debian's torch 1.13 fails under Python 3.11 whatever it runs.
@pytest.mark.heavy
@pytest.mark.skipif(not TORCHRUN_PYTHON, reason='MUSTER_TORCH2_PYTHON names no python3 with torch 2.x')
@pytest.mark.parametrize('case', [case for case in CASES if case['torchrun'] is not None], ids=lambda case: case['script'])
def test_torchrun_beside_it(tmp_path, case):
    """torchrun really exits as the column torchrun of the table says."""
    assert torchrun(case, tmp_path / 'torchrun') == case['torchrun']


def test_a_rule_is_not_the_last_line_of_a_failure(muster):
    """torchrun and Python's exception groups print a rule below their message."""
    done = muster.run('run', '-n', '1', '--', 'sh', '-c', 'echo "  | TypeError: b"; echo "  +------"; echo ======; exit 1', code=1)
    assert done.stderr.splitlines()[-1].endswith('exited with code 1: "  | TypeError: b"')
    done = muster.run('run', '-n', '1', '--', 'sh', '-c', 'echo ======; exit 1', code=1)
    assert done.stderr.splitlines()[-1].endswith('exited with code 1: "======"')
    done = muster.run('run', '-n', '1', '--', 'sh', '-c', 'echo "in main"; echo "Extension modules: a, b (total: 2)"; exit 1', code=1)
    assert done.stderr.splitlines()[-1].endswith('exited with code 1: "in main"')


LEAVES_SEMAPHORES = """
import multiprocessing, os
spawned = multiprocessing.get_context('spawn')
kept = spawned.Lock(), spawned.Queue()
print('left:', kept[0]._semlock.name, flush=True)
print('went wrong', flush=True)
END
"""


@pytest.mark.parametrize('end, why', [('os._exit(3)', 'exited with code 3'), ('os.kill(os.getpid(), 9)', 'SIGKILL')])
def test_a_rank_that_crashes_leaves_no_semaphore_behind(muster, end, why):
    """Python's resource tracker, a process of the rank, unlinks the semaphore, and has the time for it."""
    done = muster.run('run', '-n', '1', '--', sys.executable, '-c', LEAVES_SEMAPHORES.replace('END', end), code=None)
    name = re.search(r'left: /(\S+)', done.stdout)[1]
    assert done.returncode != 0 and 'went wrong' in done.stderr.splitlines()[-1] and why in done.stderr
    assert not os.path.exists(f'/dev/shm/sem.{name}')


SLOW_TRACKER = """
import time
if b'resource_tracker import main' in open('/proc/self/cmdline', 'rb').read():
    time.sleep(2)
"""


def test_a_resource_tracker_that_starts_slowly_has_the_time_too(muster):
    (muster.work / 'sitecustomize.py').write_text(SLOW_TRACKER)
    dies = LEAVES_SEMAPHORES.replace('END', 'os._exit(3)')
    done = muster.run('run', '-n', '1', '--', sys.executable, '-c', dies, code=3, env={'PYTHONPATH': str(muster.work)})
    assert not os.path.exists('/dev/shm/sem.' + re.search(r'left: /(\S+)', done.stdout)[1])


def test_a_rank_with_the_words_of_a_resource_tracker_is_killed(muster):
    """A resource tracker is spared as a process of a rank, but not as the rank itself."""
    script = "trap '' TERM; touch up; while :; do sleep 0.1; done; : from multiprocessing.resource_tracker import main"
    deaf = job('deaf', ['sh', '-c', script])
    deaf['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['terminationGracePeriodSeconds'] = 1
    muster.run('create', '-f', muster.write('job.yaml', deaf))
    wait_for(lambda: (muster.work / 'up').exists(), 'it runs')
    muster.run('delete', 'job', 'deaf')
    wait_for(lambda: not muster.get('pods'), 'it has been killed')
