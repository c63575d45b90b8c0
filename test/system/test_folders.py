"""A job's files in MUSTER_HOME/jobs are deleted with the job, and not before."""
import json
import os
import signal

from conftest import LIMIT_S, job, shell, wait_for


def folders(muster):
    return sorted(p.name for p in (muster.home / 'jobs').iterdir())


def uid(muster, name):
    return muster.get('job', name)['metadata']['uid']


def test_a_deleted_job_takes_its_folder_with_it(muster):
    muster.run('create', muster.write('jobs.yaml', job('gone', shell('echo a')), job('kept', shell('echo b'))))
    muster.wait_condition('gone', 'Succeeded')
    muster.wait_condition('kept', 'Succeeded')
    kept = uid(muster, 'kept')
    muster.run('delete', 'job', 'gone')
    wait_for(lambda: folders(muster) == [kept], 'one folder is left')
    assert muster.run('logs', 'kept').stdout == '[rank 0] b\n'


def test_a_replaced_job_leaves_no_folder(muster):
    path = muster.write('job.yaml', job('again', shell('echo a')))
    muster.run('run', '-f', path)
    muster.run('run', '-f', path)
    wait_for(lambda: folders(muster) == [uid(muster, 'again')], 'the older one goes')


def test_a_folder_goes_after_the_last_process(muster):
    script = 'trap "touch bye; while [ ! -e go ]; do sleep 0.02; done; exit 0" TERM; touch up; while :; do sleep 0.02; done'
    muster.run('create', muster.write('job.yaml', job('slow', shell(script))))
    wait_for((muster.work / 'up').exists, 'the rank runs')
    old = uid(muster, 'slow')
    muster.run('delete', 'job', 'slow', '--no-wait')
    wait_for((muster.work / 'bye').exists, 'the rank is told')
    os.kill(muster.status(), signal.SIGKILL)
    assert muster.get('jobs') == []
    assert folders(muster) == [old]
    (muster.work / 'go').touch()
    wait_for(lambda: muster.status() and folders(muster) == [], 'the next controller removes it')


def test_a_run_reads_the_logs_of_a_job_that_its_ttl_deleted(muster):
    training = job('brief', shell('echo last words'), run_policy={'ttlSecondsAfterFinished': 0})
    done = muster.run('run', '-f', muster.write('job.yaml', training), '-o', 'json', '--results', 'out')
    assert json.loads(done.stdout)['state'] == 'Succeeded'
    assert '[rank 0] last words' in done.stderr
    assert (muster.work / 'out/logs/brief-master-0.log').read_text() == 'last words\n'
    wait_for(lambda: muster.get('jobs') == [] and folders(muster) == [], 'it goes after the run')


def test_so_does_one_that_comes_after_the_deletion(muster):
    """`muster run` learns of the second worker, and asks where its files are, after the pod and its job were deleted."""
    script = 'case $RANK in 0) touch up; while [ ! -e go ]; do sleep 0.05; done;; 1) ;; 2) echo last words; touch said;; esac'
    training = job('brief', shell(script), workers=1, run_policy={'ttlSecondsAfterFinished': 0})
    process = muster.start('run', '-f', muster.write('job.yaml', training), '-o', 'json', '--results', 'out')
    assert 'started' in process.stderr.readline()  # run follows the job
    wait_for(lambda: (muster.work / 'up').exists(), 'the master runs')
    process.send_signal(signal.SIGSTOP)
    muster.run('scale', 'brief', '--replicas', '2')
    wait_for(lambda: (muster.work / 'said').exists(), 'the second worker runs')
    (muster.work / 'go').touch()
    wait_for(lambda: muster.get('jobs') == [], 'the job is deleted')
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert json.loads(out)['state'] == 'Succeeded' and '[rank 2] last words' in err
    assert (muster.work / 'out/logs/brief-worker-1.log').read_text() == 'last words\n'
    wait_for(lambda: folders(muster) == [], 'its folder goes after the run')


def test_a_run_does_not_wait_for_a_job_that_was_gone_before_it_looked(muster, api):
    """`muster run` is stopped as soon as its job exists, mostly before its first listing, and continued when the job is deleted."""
    training = job('brief', shell('echo last words'), run_policy={'ttlSecondsAfterFinished': 0})
    process = muster.start('run', '-f', muster.write('job.yaml', training), '-o', 'json')
    seen = '/apis/kubeflow.org/v1/namespaces/default/pytorchjobs'
    while process.poll() is None and not api.call('GET', seen)[1]['items']:
        pass
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: muster.get('jobs') == [], 'the job is deleted')
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, json.loads(out)['state']) == (0, 'Succeeded'), err
    assert '[rank 0] last words' in err


def test_logs_are_kept_when_the_store_is_moved_away(muster):
    muster.run('run', '-f', muster.write('job.yaml', job('old', shell('echo a'))))
    muster.run('down')
    (muster.home / 'store.db').rename(muster.work / 'old.db')
    muster.run('run', '-f', muster.write('job.yaml', job('new', shell('echo b'))))
    muster.run('down')
    assert len(folders(muster)) == 2
