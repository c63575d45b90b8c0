"""A worker that is slower than the others gets fewer micro-batches of a step, and the model has the same bits."""
from job import Job
from test_faults import check_ends, quiet_run

SHAPE = {'records': 96, 'batch': 4, 'micro_batches': 8, 'epochs': 30}


def steps_of(worker):
    """How long each of its steps has taken, in ms. The least of them is the one that a loaded machine has spoiled least."""
    times = [time for _, _, time in worker.steps()]
    return [(then - now) / 1e6 for now, then in zip(times, times[1:])]


def test_work_is_moved_from_a_slow_worker_to_the_faster_one(tmp_path):
    """By equal shares each step would take four passes of the slow one, 80 ms; with one of them seven of the other, some 35."""
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    (tmp_path / 'two').mkdir()
    with Job(tmp_path / 'two', first_size=2, **SHAPE) as job:
        quick = job.add_worker(sleep_ms=5)
        job.add_worker(sleep_ms=20)
        assert job.wait_for_end() == 0
        check_ends(job, model)
        took = steps_of(quick)
        assert min(took[-40:]) < 0.75 * min(took[4:14]), took


def test_two_workers_take_little_more_than_half_the_time_of_one(tmp_path):
    """Not everybody computes everything: that would give the same bits, too."""
    took = {}
    for size in (1, 2):
        folder = tmp_path / str(size)
        folder.mkdir()
        with Job(folder, first_size=size, **{**SHAPE, 'epochs': 8}) as job:
            workers = [job.add_worker(sleep_ms=20) for _ in range(size)]
            assert job.wait_for_end() == 0
            check_ends(job)
            took[size] = min(steps_of(workers[0]))
    assert took[1] > 1.6 * took[2], took
