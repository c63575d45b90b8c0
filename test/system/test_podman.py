"""`--runtime podman`, as root and rootless: real containers from an image made here (a static busybox), and from a real registry that requires
a password."""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from conftest import wait_for
from podman_engine import claim, container_job, containers_of, data, engine, muster, run  # noqa: F401 (fixtures, too)
from registry import PASSWORD, USER, registry

pytestmark = pytest.mark.heavy  # .ci/suite-podman; half a minute


def test_env_volumes_and_exit_code(engine, muster):
    script = 'echo "$GREETING $RANK of $WORLD_SIZE"; echo kept >/data/file; test ! -e /usr/bin/env; exit 7'
    done = run(muster, container_job(engine, 'seven', script, env={'GREETING': 'hello, two words'}), code=7)
    assert '[rank 0] hello, two words 0 of 1' in done.stdout
    assert data(muster, 'file').read_text() == 'kept\n'
    assert data(muster, 'file').stat().st_uid == (engine.who.get('user') or os.geteuid())


def test_ranks_meet_and_know_their_names(engine, muster):
    script = ('grep -q "$(hostname)" /etc/hosts && echo known; if [ $RANK = 0 ]; then echo hi | nc -l -p $MASTER_PORT; '
              'else until nc $MASTER_ADDR $MASTER_PORT </dev/null; do sleep 0.1; done; fi')
    done = run(muster, container_job(engine, 'meet', script, workers=1))
    assert '[rank 1] hi' in done.stdout
    assert done.stdout.count('known') == 2


def test_without_a_command_the_image_decides(engine, muster):
    made = container_job(engine, 'entry', '')
    del containers_of(made)[0]['command']
    assert '[rank 0] of the image' in run(muster, made).stdout


def test_an_image_that_is_not_there_and_never_pulled(engine, muster):
    made = container_job(engine, 'never', 'true')
    containers_of(made)[0]['image'] = 'localhost/muster-test-no-such-image:1'
    done = run(muster, made, code=125)
    assert 'localhost/muster-test-no-such-image:1' in done.stdout + done.stderr


def sleepers(word):
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            found += [int(entry.name)] if entry.name.isdigit() and word in (entry / 'cmdline').read_text() else []
        except OSError:
            continue
    return found


def test_a_killed_runner_leaves_no_container(engine, muster):
    long = f'98{os.getpid()}'
    script = f'setsid sleep {long} & touch /data/up-$RANK; sleep {long}'
    path = muster.write('job.yaml', claim('data'), container_job(engine, 'killed', script, workers=1))
    runner = muster.start('run', '-f', path, '--runtime', 'podman')
    wait_for(lambda: data(muster, 'up-0').exists() and data(muster, 'up-1').exists(), 'both ranks run')
    os.kill(runner.pid, signal.SIGKILL)
    wait_for(lambda: not sleepers(long), 'no process of a container is left')
    wait_for(lambda: not engine.containers(), 'podman lists no container')


def test_a_deleted_job_gets_its_grace(engine, muster):
    script = 'trap "echo asked >/data/asked; exit 0" TERM; touch /data/up; while :; do sleep 0.1; done'
    muster.run('create', '-f', muster.write('job.yaml', claim('data'), container_job(
        engine, 'polite', script, annotations={'muster.dev/runtime': 'podman'})))
    wait_for(lambda: data(muster, 'up').exists(), 'it runs')
    muster.run('delete', 'job', 'polite')
    wait_for(lambda: not muster.get('pods'), 'the pod is gone')
    assert data(muster, 'asked').exists(), [p.read_text() for p in muster.home.glob('jobs/*/containers/*/*/0/exit.json')]
    assert data(muster, 'asked').read_text() == 'asked\n'


# ---- A registry that requires a password ----

@pytest.fixture
def address(tmp_path):
    """The address of a registry."""
    with registry(tmp_path) as found:
        yield found


def secret(address, password):
    login = base64.b64encode(f'{USER}:{password}'.encode()).decode()
    text = json.dumps({'auths': {address: {'auth': login}}})
    return {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'login'}, 'type': 'kubernetes.io/dockerconfigjson',
            'data': {'.dockerconfigjson': base64.b64encode(text.encode()).decode()}}


def pulled_job(engine, image, policy):
    made = container_job(engine, 'pulled', 'echo came from afar')
    containers_of(made)[0].update(image=image, imagePullPolicy=policy)
    made['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['imagePullSecrets'] = [{'name': 'login'}]
    return made


def test_pull_secrets_and_policy(engine, muster, address):
    image = f'{address}/team/private:1'
    engine.podman('push', '--tls-verify=false', f'--creds={USER}:{PASSWORD}', engine.image, f'docker://{image}')
    muster.env['MUSTER_PODMAN_FLAGS'] += ' --tls-verify=false'
    try:
        refused = run(muster, secret(address, 'guessed'), pulled_job(engine, image, 'IfNotPresent'), code=125)
        assert 'unauthorized' in refused.stdout + refused.stderr or 'authentication required' in refused.stdout + refused.stderr
        muster.run('delete', 'secret', 'login')
        pulled = run(muster, secret(address, PASSWORD), pulled_job(engine, image, 'IfNotPresent'))
        assert '[rank 0] came from afar' in pulled.stdout
        assert engine.podman('image', 'exists', image).returncode == 0
    finally:
        engine.podman('rmi', '--force', image, code=None)
