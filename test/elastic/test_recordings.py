"""The cores that the simulator tests are those that are shipped: the inputs of live processes' cores under random faults are given to the same
cores in a test program (recording.c), and their answers, and their final states, are compared byte for byte. The programs also do nothing
besides the cores: the journal has exactly what the coordinator's core appended, and workers receive and print only what was decided.
"""
import re
import subprocess

import pytest

from chaos import EPOCHS_A_FAULT, MOST, Chaos
from job import Job
from program import BUILD

FAULTS, SEED = 25, 3
HEAD_BYTES = 8


def replay(*words, program='elastic_recording', **env):
    run = subprocess.run([str(BUILD / 'tests' / program), *map(str, words)], capture_output=True, text=True, timeout=120, env=env)
    return run.returncode, run.stdout, run.stderr


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """Runs a job under random faults, and returns (job, its recordings in the order in which they were begun)."""
    folder = tmp_path_factory.mktemp('recorded')
    records = folder / 'records'
    records.mkdir()
    with Job(folder, records=97, batch=4, micro_batches=5, epochs=(FAULTS + 2) * EPOCHS_A_FAULT, max_size=MOST + 2) as job:
        job.kill_coordinator()  # this coordinator was started without recordings
        job.environment['MUSTER_RECORD'] = str(records)
        job.start_coordinator()
        chaos = Chaos(job, SEED)
        job.add_worker()
        for number in range(FAULTS):
            chaos.strike(number)
        chaos.end()
        assert job.wait_for_end() == 0
    assert {'kill', 'coordinator'} <= set(chaos.done)
    return job, sorted(records.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def of(files, name):
    return [path for path in files if path.name.startswith(name)]


def test_the_cores_answer_as_they_did_live(recorded):
    job, files = recorded
    code, _, said = replay(*files)
    assert code == 0, said
    steps, effects, passes = map(int, re.match(r'(\d+) steps, (\d+) effects, (\d+) passes are alike', said).groups())
    assert len(of(files, 'worker')) == len(job.workers) and len(of(files, 'coordinator')) > 1
    assert steps > 1000 and effects > 1000 and passes > 500


def entries(data):
    at = 0
    while at + HEAD_BYTES <= len(data):
        kind, count = (int.from_bytes(data[at + i:at + i + 4], 'little') for i in (0, 4))
        yield kind, at + HEAD_BYTES, count
        at += HEAD_BYTES + count


@pytest.mark.parametrize('name, kind', [('worker', 1), ('worker', 3), ('coordinator', 5)], ids=['member', 'pass', 'arbiter'])
def test_a_recording_with_another_effect_is_found(recorded, tmp_path, name, kind):
    """The eighth byte from the end of an entry is changed: in a worker's effect, a record of a pass, or what the coordinator sent or reported
    about itself."""
    _, files = recorded
    path = max(of(files, name), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    places = [at + count - 8 for found, at, count in entries(data) if found == kind and at + count <= len(data)]
    data[places[len(places) // 2]] ^= 1
    (tmp_path / 'altered').write_bytes(data)
    code, _, said = replay(tmp_path / 'altered')
    assert code == 1 and f'of kind {kind}: the core answers otherwise' in said


@pytest.mark.parametrize('mistake, name', [('ACK_BEFORE_JOURNAL', 'coordinator'), ('OPEN_BEFORE_JOURNAL', 'coordinator'),
                                           ('EXIT_BEFORE_ACK', 'worker')])
def test_another_core_is_found(recorded, mistake, name):
    _, files = recorded
    files = of(files, name)
    assert replay(*files, program='elastic_recording_planted')[0] == 0
    code, _, said = replay(*files, program='elastic_recording_planted', MUSTER_TEST_PLANTED=mistake)
    assert code == 1 and 'the core answers otherwise' in said


def said_by(files):
    code, text, said = replay('print', *files)
    assert code == 0, said
    return [line.split() for line in text.splitlines()]


def test_nothing_happens_but_what_the_cores_say(recorded):
    job, files = recorded
    sent = {tuple(words[1:]) for words in said_by(of(files, 'coordinator')) if words[0] == 'sends'}
    bases = {int(words[4]): (int(words[5]), words[6] == '1') for words in (('', *one) for one in sent) if words[2] == 'open'}
    applied = {}
    workers = {f'worker-{worker.process.pid}-0': worker for worker in job.workers}
    for path in of(files, 'worker'):
        worker, words = workers[path.name], said_by([path])
        heard = {tuple(line[1:]) for line in words if line[0] == 'hears'}
        assert heard <= sent, 'a worker heard of what no coordinator decided'
        own = {int(line[3]): int(line[2]) for line in words if line[0] == 'applies'}
        assert {version for version, _, _ in worker.steps()} <= set(own), 'a step was committed beside the core'
        applied[worker] = own
    for own in applied.values():
        for version, generation in own.items():
            base, restores = bases.get(generation + 1, (version, False))
            assert restores or version <= base, f'step {version} of generation {generation} was committed, and lost'


def test_the_journal_is_what_the_core_appended(recorded):
    """Only the last record that a killed coordinator appended may be missing in the journal."""
    job, files = recorded
    journal, at = (job.folder / 'journal' / 'journal').read_bytes(), 0
    for path in of(files, 'coordinator'):
        appended = [bytes.fromhex(words[2]) if len(words) > 2 else b'' for words in said_by([path]) if words[0] == 'appends']
        for number, record in enumerate(appended):
            found = journal.find(record, at)
            assert found >= 0 or number == len(appended) - 1, f'{path.name} appended what the journal does not have'
            at = found + len(record) if found >= 0 else at
    assert len(journal) - at < 64, 'the journal has what nobody appended'
