"""Signals that reach `muster run` before it follows its job: it reports them, exits as it does later, and no rank is left."""
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import LIMIT_S, job, listens, shell, wait_for

CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
LONG = ('run', '-n', '2', '--name', 'early', '--', 'sh', '-c', 'exec sleep 1000')


def ranks(muster):
    return [process for process in muster.processes() if 'sleep 1000' in process[1] and 'muster' not in process[1]]


def is_over(muster):
    """Whether no rank is left and none will start: the job does not exist, or has ended."""
    return not ranks(muster) and muster.condition('early') in ('', 'Failed')


@pytest.mark.parametrize('number, code', CODES)
def test_while_the_file_is_read(muster, number, code):
    process = muster.start('run', '-f', '-', '-o', 'json', stdin=subprocess.PIPE)
    wait_for(lambda: listens(process), 'it waits for its file')
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert f'ended by {number.name}' in err and 'before the job was created' in err
    result = json.loads(out)
    assert (result['state'], result['exitCode'], result['replicas']) == ('Error', code, [])


def test_nohup_holds_then_too(muster):
    process = muster.start('run', '-f', '-', stdin=subprocess.PIPE, hangup=signal.SIG_IGN)
    wait_for(lambda: listens(process), 'it waits for its file')
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(json.dumps(job('after', shell('echo it ran'))), timeout=LIMIT_S)
    assert process.returncode == 0, err


@pytest.mark.parametrize('number, code', CODES)
def test_while_the_controller_does_not_answer(muster, number, code):
    muster.run('get', 'jobs')
    controller = muster.status()
    os.kill(controller, signal.SIGSTOP)
    try:
        process = muster.start(*LONG)
        wait_for(lambda: listens(process), 'it asks the controller')
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        os.kill(controller, signal.SIGCONT)
    assert process.returncode == code and 'before the job was created' in err
    assert muster.condition('early') == '' and not ranks(muster)


@pytest.mark.parametrize('number, code', CODES[:2])
def test_at_every_step_of_the_way(muster, number, code):
    """The number of descriptors that `muster run` has opened shows how far it is; on a slow machine it is further when the signal arrives,
    and the tests above cover both sides of the creation. The message says on which side the signal arrived: that there was no job yet, or
    that the job is being ended."""
    muster.run('get', 'jobs')
    for opened in range(3, 16):
        muster.run('delete', 'job', 'early', '--ignore-not-found')
        process = muster.start(*LONG)
        descriptors = pathlib.Path(f'/proc/{process.pid}/fd')
        wait_for(lambda: listens(process), 'it hears signals')
        wait_for(lambda: len(list(descriptors.iterdir())) >= opened or ranks(muster), f'{opened} descriptors')
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == code, (opened, err)
        wait_for(lambda: is_over(muster), 'the job has ended, or never was')
        created = muster.condition('early') != ''
        assert ('before the job was created' in err, 'ending' in err) == (not created, created), (opened, err)


def test_while_a_second_job_waits_for_its_name(muster):
    """The first job of the file already runs."""
    old = job('second', shell('true'))
    old['metadata']['finalizers'] = ['example.org/stays']
    muster.run('create', '-f', muster.write('old.yaml', old))
    muster.wait_condition('second', 'Succeeded')
    both = muster.write('both.yaml', job('early', shell('exec sleep 1000')), job('second', shell('exec sleep 1000')))
    process = muster.start('run', '-f', both)
    wait_for(lambda: ranks(muster), 'the first job runs')
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    wait_for(lambda: is_over(muster), 'the first job has ended')
