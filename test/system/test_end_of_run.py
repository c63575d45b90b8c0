"""What `run` does at its end: the newest checkpoint, and a command that gets the result."""
import json
import os
import re
import signal

import pytest
from conftest import LIMIT_S, job, shell, wait_for

TELL = 'echo "$MUSTER_JOB_NAME|$MUSTER_JOB_STATE|$MUSTER_JOB_EXIT_CODE|$MUSTER_JOB_MESSAGE" >> told'


def told(muster):
    path = muster.work / 'told'
    return path.read_text().splitlines() if path.exists() else []


# ---- the newest checkpoint ----

def newest(done):
    """Returns the path and the age in the line about the newest checkpoint, or None if no such line is printed."""
    found = re.findall(r'^muster:   newest checkpoint: (.+) \((.+) before the end\)$', done.stderr, re.M)
    assert len(found) <= 1
    return found[0] if found else None


def test_the_newest_checkpoint_is_said_before_the_verdict(muster):
    script = 'mkdir -p runs/a; for e in 1 2 3; do echo $e > runs/a/e$e.pt; echo "epoch $e: saved runs/a/e$e.pt."; done; exit 3'
    done = muster.run('run', '-n', '1', '--name', 'ckpt', '-o', 'json', '--', 'sh', '-c', script, code=3)
    path, age = newest(done)
    assert path == 'runs/a/e3.pt' and age.endswith(' s')
    assert 'job ckpt failed' in done.stderr.splitlines()[-1]
    assert json.loads(done.stdout)['checkpoint'] == f'{muster.work}/runs/a/e3.pt'


@pytest.mark.parametrize('script', [
    'echo x > new.pt; exit 0',                      # the run succeeded
    'echo saved no-such.pt; exit 3',                # the file does not exist
    'echo loaded old.pt; exit 3',                   # the file is older than the run
    'echo x > "$0.notes"; echo "$0.notes"; exit 3',
])
def test_nothing_is_said_where_there_is_none(muster, script):
    old = muster.work / 'old.pt'
    old.write_text('x')
    os.utime(old, (1, 1))
    assert newest(muster.run('run', '-n', '1', '--', 'sh', '-c', script, code=None)) is None


def test_other_ways_to_say_where_it_is(muster):
    script = 'mkdir -p "out/my runs" out/checkpoint-20; echo x > "out/my runs/epoch=3-step=1.ckpt"; ' \
        'echo "\033[1mSaving to \'out/my runs/epoch=3-step=1.ckpt\'\033[0m"; exit 3'
    assert newest(muster.run('run', '-n', '1', '--', 'sh', '-c', script, code=3))[0] == 'out/my runs/epoch=3-step=1.ckpt'
    script = 'rm -rf out; mkdir -p out/checkpoint-20; echo "Saving model checkpoint to $PWD/out/checkpoint-20/"; exit 3'
    assert newest(muster.run('run', '-n', '1', '--', 'sh', '-c', script, code=3))[0] == 'out/checkpoint-20'


def test_a_volume_is_looked_at(muster):
    script = 'mkdir -p /kept/a/b; echo x > /kept/a/b/last.safetensors; ln -s /etc /kept/a/etc; exit 3'
    done = muster.run('run', '-n', '2', '--claim', 'kept:/kept', '--', 'sh', '-c', f'[ $RANK = 1 ] || sleep 1000; {script}', code=3)
    assert newest(done)[0].endswith('volumes/default/kept/a/b/last.safetensors')
    # a path that was printed is a path in the container
    done = muster.run('run', '-n', '1', '--claim', 'kept:/kept', '--', 'sh', '-c', 'echo y > /kept/n.pth; echo /kept/n.pth; exit 3', code=3)
    assert newest(done)[0].endswith('volumes/default/kept/n.pth')


def test_an_interrupted_run_says_it_too(muster):
    process = muster.start('run', '-n', '1', '--', 'sh', '-c', 'echo x > a.pt; echo a.pt; touch up; sleep 1000')
    wait_for((muster.work / 'up').exists, 'the rank starts')
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and 'newest checkpoint: a.pt (' in err


# ---- --notify ----

def test_how_it_went_is_told(muster):
    muster.run('run', '-n', '2', '--name', 'good', '--notify', TELL, '--', 'true')
    muster.run('run', '-n', '2', '--name', 'bad', '--notify', TELL, '--', 'sh', '-c', '[ $RANK = 1 ] && exit 3; sleep 1000', code=3)
    good, bad = told(muster)
    assert good.startswith('good|Succeeded|0|')
    assert bad == 'bad|Failed|3|bad-worker-0 (rank 1) exited with code 3'


def test_each_job_of_a_file_is_told(muster):
    muster.write('job.yaml', job('one', shell('true')), job('two', shell('exit 4')))
    muster.run('run', '-f', 'job.yaml', '--notify', TELL, code=4)
    assert sorted(line.split('|')[:3] for line in told(muster)) == [['one', 'Succeeded', '0'], ['two', 'Failed', '4']]


def test_a_run_that_came_to_no_job_is_told(muster):
    muster.write('job.yaml', job('none', shell('true')))
    muster.run('run', '-f', 'job.yaml', '--cpu', 'many', '--notify', TELL, code=64)
    assert told(muster)[0].startswith('none|Error|64|')
    muster.run('run', '-f', 'missing.yaml', '--notify', TELL, code=66)
    assert told(muster)[1].startswith('|Error|66|')
    assert '--notify has no effect' in muster.run('run', '-f', 'job.yaml', '--dry-run', '--notify', TELL, code=64).stderr
    assert len(told(muster)) == 2


def test_after_ctrl_c_too(muster):
    process = muster.start('run', '-n', '1', '--name', 'long', '--notify', TELL, '--', 'sh', '-c', 'touch up; sleep 1000')
    wait_for((muster.work / 'up').exists, 'the rank starts')
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and told(muster)[0].startswith('long|Failed|130|')


@pytest.mark.parametrize('command, says', [
    ('exit 7', "warning: --notify 'exit 7' exited with code 7"),
    ('kill -KILL $$', 'was killed by signal 9'),
    ('no-such-program', 'exited with code 127'),
])
def test_its_failure_is_a_warning(muster, command, says):
    done = muster.run('run', '-n', '1', '--notify', command, '--', 'true')
    assert says in done.stderr


def test_no_command_is_an_error(muster):
    assert '--notify needs a command' in muster.run('run', '-n', '1', '--notify', '', '--', 'true', code=64).stderr


def test_its_output_is_not_the_jobs(muster):
    done = muster.run('run', '-n', '1', '-o', 'json', '--notify', 'echo hello; cat', '--', 'true')
    assert json.loads(done.stdout)['state'] == 'Succeeded' and 'hello' in done.stderr


@pytest.mark.heavy
def test_it_has_half_a_minute(muster):
    done = muster.run('run', '-n', '1', '--notify', 'trap "" TERM; sleep 300 & sleep 300; sleep 300', '--', 'true')
    assert 'was ended: it took longer than 30 s' in done.stderr
    wait_for(lambda: not [p for p in muster.processes() if 'sleep 300' in p[1]], 'what it started has ended')
