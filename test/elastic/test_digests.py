"""A bit that changes by itself, among C workers: the coordinator's log and its status name the worker in which it changed."""
import json

from job import Job

FLIPPED = 7  # the step in which the bit changes; the digests of the state before that step are compared


def run(folder, workers):
    job = Job(folder, first_size=workers, status_file=folder / 'status')
    job.environment['MUSTER_DIGEST_STEPS'] = '1'
    with job:
        for number in range(workers):
            job.environment['MUSTER_TEST_FLIP'] = str(FLIPPED if number == 1 else 0)
            job.environment['MUSTER_POD'] = f'worker-{number}'
            job.add_worker()
        code = job.wait_for_end()
    return job, code, json.loads((folder / 'status').read_text())


def test_who_was_healed_is_named(tmp_path):
    job, code, status = run(tmp_path, 3)
    assert code == 0, job.log()
    said, = [line for line in job.log().splitlines() if 'changed by itself' in line]
    assert f'after step {FLIPPED - 1} the state of worker-1 was not that of the others' in said
    assert [(each['kind'], each['worker']) for each in status['recoveries']] == [('healed', 'worker-1')]
    assert len({worker.end()[1]['model'] for worker in job.workers}) == 1
    assert all(worker.end()[1]['wrong'] == '0' for worker in job.workers)


def test_of_two_nobody_is_named_and_the_job_fails(tmp_path):
    job, code, status = run(tmp_path, 2)
    why = f'the states of 2 workers differ after step {FLIPPED - 1}'
    assert code == 65 and why in job.log()
    assert status['phase'] == 'Failed' and why in status['message']
