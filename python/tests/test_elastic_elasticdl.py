"""Scripts written for ElasticDL, with real processes: the tutorial's unchanged script, and tests of ElasticDL's defects, by their numbers."""
import json
import re
import signal
import subprocess
import sys

import pytest
from conftest import PACKAGE

from program import SOURCE

EXAMPLE = SOURCE / 'examples/elastic-mnist'
SEED = {'MUSTER_DETERMINISTIC': '5', 'MUSTER_MICRO_BATCHES': '4', 'PYTHONPATH': f'{PACKAGE}:{EXAMPLE}'}


@pytest.fixture(scope='session')
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp('pictures')
    subprocess.run([sys.executable, EXAMPLE / 'write_pictures.py', '--images', '700', folder], check=True, capture_output=True)
    return folder / 'mnist_png'


@pytest.fixture
def world(world):
    def make(*args, **kwargs):
        one = world(*args, **kwargs)
        one.env.update(SEED)
        return one
    return make


def words(pictures):
    """Returns the tutorial's flags, with a smaller network."""
    return ['--batch_size', '64', '--num_epochs', '6', f'--training_data={pictures}/training', f'--validation_data={pictures}/testing',
            '--width', '4', '--log_interval', '1', '--test_images', '200']


@pytest.mark.heavy
def test_the_tutorials_script(world, python, pictures):
    """One worker alone, two workers, and a job in which two workers die and one joins in a later epoch give the same bits."""
    job = world(1, python)
    alone = job.start('-m', 'model_zoo.mnist.mnist_pytorch', *words(pictures))
    alone.end()
    assert len(alone.lines('loss = ')) == 6 * 11 and len(alone.lines('Test set: ')) == 5
    weights, = alone.lines('weights ')
    job.coordinators[0].end()
    evaluated, = job.coordinators[0].lines('mnist_validation: ')
    assert re.match(r'\d+ records evaluated: correct \d+ ', evaluated)

    job = world(2, python)
    both = [job.start('-m', 'model_zoo.mnist.mnist_pytorch', *words(pictures)) for _ in range(2)]
    for worker in both:
        worker.end()
        assert worker.lines('weights ') == [weights] and len(worker.lines('Test set: ')) == 5
    job.coordinators[0].end()
    once, = job.coordinators[0].lines('mnist_validation: ')
    assert once.split(', ')[0] == evaluated.split(', ')[0], 'each picture once, whoever looked at it'

    job = world(2, python)
    job.env['PACE'] = '0.5'  # gives a worker enough time to join, however slow the machine is
    first, second, third = (job.start_held('elastic_seed.py', *words(pictures)) for _ in range(3))
    job.let(first, second)
    second.wait_for_line('Test set: ')
    job.let(third)
    third.wait_for_line('loss = ', 2)
    first.signal(signal.SIGKILL)
    third.wait_for_line('loss = ', 4)
    second.signal(signal.SIGKILL)
    job.go()
    third.end()
    assert third.lines('weights ') == [weights]
    job.coordinators[0].end()
    once, = job.coordinators[0].lines('mnist_validation: ')
    assert once.split(', ')[0] == evaluated.split(', ')[0]


@pytest.mark.heavy
def test_the_tutorials_accuracy(world, python, tmp_path):
    """The unchanged script, with the tutorial's two workers and its flags, is as accurate as plain runs of one process over the same global
    batches: it differs from their mean by at most twice the spread of five plain runs with different seeds."""
    subprocess.run([sys.executable, EXAMPLE / 'write_pictures.py', '--images', '4000', tmp_path], check=True, capture_output=True)
    pictures, epochs, width = tmp_path / 'mnist_png', '4', '8'
    job = world(2, python)
    job.env.pop('MUSTER_DETERMINISTIC')
    job.env['MUSTER_MICRO_BATCHES'] = '2'
    flags = ['--batch_size', '16', '--num_epochs', epochs, f'--training_data={pictures}/training', f'--validation_data={pictures}/testing']
    for worker in [job.start('-m', 'model_zoo.mnist.mnist_pytorch', *flags, '--width', width) for _ in range(2)]:
        worker.end()
    job.coordinators[0].end()
    correct, = re.findall(r'4,000 records evaluated: correct (\d+)', job.coordinators[0].text())
    plain = job.start('seed_plain.py', pictures, 32, epochs, width, *range(1, 6))
    plain.end()
    ones = [float(line) for line in plain.lines('accuracy ')]
    spread, middle = max(ones) - min(ones), sum(ones) / len(ones)
    print(f'accuracy: {int(correct) / 4000:.4f}; plain, five seeds: {min(ones):.4f} to {max(ones):.4f}')
    assert len(ones) == 5 and middle > 0.6
    assert abs(int(correct) / 4000 - middle) <= 2 * spread, (correct, ones)


@pytest.fixture
def result(world):
    def run(what):
        job = world(1, sys.executable)
        job.env['MUSTER_MICRO_BATCHES'] = '1'
        worker = job.start('elastic_elasticdl.py', what)
        worker.end()
        return json.loads(worker.wait_for_line('end '))
    return run


@pytest.mark.parametrize('workers', [1, 2])
def test_the_global_batch_is_fixed_or_follows_the_workers(world, python, workers):
    """The argument fixed_global_batch_size decides; it is False by default, as in ElasticDL. An epoch has 13 micro-batches. If it is False, a
    step has one micro-batch for each worker, or MUSTER_MICRO_BATCHES_PER_WORKER; if it is True, a step has MUSTER_MICRO_BATCHES in all."""
    for what, each, whole in (('follows', '', workers), ('follows', '2', 2 * workers), ('stays', '2', 4)):
        job = world(workers, python)
        job.env['MUSTER_MICRO_BATCHES_PER_WORKER'] = each
        job.env.pop('MUSTER_DETERMINISTIC')
        results = []
        for worker in [job.start('elastic_elasticdl.py', what) for _ in range(workers)]:
            worker.end()
            results.append(json.loads(worker.wait_for_line('end ')))
        job.coordinators[0].end()
        assert max(result['steps'][-1] for result in results) == whole
        assert all(result['steps'] == sorted({whole, 13 % whole} - {0}) for result in results)
        assert {record for result in results for record in result['seen']} == set(range(101))


def test_what_follows_the_workers_is_not_deterministic(world, python):
    job = world(1, python)
    worker = job.start('elastic_elasticdl.py', 'follows')
    worker.end(1)
    assert 'fixed_global_batch_size=True' in worker.text()


def test_defects_10_14_15_16_23_24_records(result):
    """There are not more calls than batches, the partial batch counts, epochs do not mix, the seed determines the order, and no record is lost
    at the end of the data with two loader workers."""
    first = result('order')
    assert first == result('order')
    assert first['calls'] == 2 * ([8] * 12 + [5]) and first['results'] == ['result']
    assert first['batches'] == 26 and first['per_epoch'] == 13
    epochs = [first['seen'][:13], first['seen'][13:]]
    for number, batches in enumerate(epochs):
        assert sorted(sum((records for _, records in batches), [])) == list(range(101))
        assert [epoch for epoch, _ in batches] == [number] * 12 + [number + 1]
    assert epochs[0][0][1] != epochs[1][0][1], 'each epoch has an order of its own'


def test_defects_11_12_errors(result):
    """An error of the function is not taken for a network fault, and scope() ends correctly after it."""
    assert result('error') == {'error': 'shapes do not match', 'calls': 1, 'left': True, 'soon': True}


def test_defect_13_a_batch_is_done_when_it_is_trained(result):
    assert 'was skipped' in result('skip')['error']


def test_defect_19_no_polls(result):
    """ElasticDL serves 146 records a second in the tutorial's configuration."""
    served = result('rate')
    print(f"{served['per_second']:.0f} records/s by fetch_record_index")
    assert served['count'] == 200_000 and served['per_second'] > 10_000


def test_shard_checkpoint(result):
    """For a job that trains in steps, ElasticDL's JSON describes the job's position; model and records can only go back together."""
    end = result('position')
    after, within, done = end['told']
    assert after == {'dataset_name': 'x', 'todo': [[24, 101]], 'doing': [], 'current_epoch': 0, 'num_epochs': 2, 'records_per_task': 8,
                     'dataset_size': 101, 'shuffle_shards': False, 'version': 'v1.0', 'current_subepoch': 0}
    assert (within['doing'], within['todo']) == ([[24, 32]], [[32, 101]])
    assert (done['current_epoch'], done['todo'], done['doing']) == (2, [], [])
    assert end['stands'] == [True, False, False, False, False, False]


def test_shards_are_passes(result):
    assert sorted(sum(result('shards')['seen'], [])) == sorted(2 * list(range(101)))


def test_an_image_folder_and_the_optimizers_methods(result):
    end = result('folder')
    assert end['lengths'] == [101, sys.maxsize]
    assert sorted(end['seen']) == [[record, record % 3] for record in range(101)]


def test_processes_of_the_loader_may_be_spawned(result):
    assert sorted(result('spawned')['seen']) == list(range(101))


def test_mistakes_are_said_where_they_are_made(result):
    told = result('mistakes')['told']
    assert [line.split(':')[0] for line in told] == ['RuntimeError', 'TypeError', 'ValueError', 'ValueError', 'RuntimeError']
    assert 'set_broadcast_model' in told[0] and 'batches of 9' in told[3] and '2 times' in told[4]
