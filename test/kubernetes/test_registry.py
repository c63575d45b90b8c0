"""Images as a team makes them: built by buildah from deploy/images, pushed to a registry that requires a password, pulled by a node with pull
secrets.

MUSTER_DOCKERFILES=1 builds both Dockerfiles completely, from a Debian that debootstrap makes here (this takes twenty minutes and 8 GB); without it,
the operator's last stage uses a root file system that is made outside (deploy/images/operator), and ranks are this machine's programs.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import node
import node_jobs
from buildah import buildah_store
from jobs import deployed
from node_fixtures import cluster, kubectl  # noqa: F401 (fixtures)
from node_jobs import WORKER, create, get_pod, rank, wait_end, wait_operator
from pages import read_commands, type_line
from program import BUILD, LIMIT_S, SOURCE, wait_for
from registry import PASSWORD, USER, registry

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(node.missing() is not None, reason=str(node.missing())),
              pytest.mark.skipif(not shutil.which('buildah'), reason='NOT TESTED: buildah is missing; tools/deps node')]
WHOLE = bool(os.environ.get('MUSTER_DOCKERFILES'))
DEBIAN = 'localhost/debian:12'
IMAGES = SOURCE / 'deploy/images'


@pytest.fixture(scope='module')
def address(cluster, tmp_path_factory):
    """The address of a registry with a certificate of the cluster's authority, which the node knows."""
    file = cluster.authority.file
    with registry(tmp_path_factory.mktemp('registry'), cluster.address, (file('server.crt'), file('server.key'))) as found:
        (cluster.registries / found).mkdir()
        (cluster.registries / found / 'hosts.toml').write_text(f'server = "https://{found}"\n[host."https://{found}"]\nca = "{file("ca.crt")}"\n')
        yield found


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    with buildah_store(tmp_path_factory.mktemp('buildah') / 'all', 'overlay' if WHOLE else 'vfs') as made:
        yield made


@pytest.fixture(scope='module')
def login(cluster, store, address, tmp_path_factory):
    """Returns buildah's options for the registry after `login`, as in the Azure tutorial; checks that a wrong password is refused."""
    folder = tmp_path_factory.mktemp('login')
    shutil.copy(cluster.authority.file('ca.crt'), folder / 'ca.crt')
    options = ('--authfile', folder / 'login.json', '--cert-dir', folder)
    refused = store.attempt('login', *options, '--username', USER, '--password', 'guessed', address)
    assert refused.returncode != 0 and 'invalid username/password' in refused.stderr
    store('login', *options, '--username', USER, '--password', PASSWORD, address)
    return options


def debian(store):
    """Makes an image of a bare Debian as a base, and returns its name."""
    if not store.attempt('inspect', '--type', 'image', DEBIAN).returncode == 0:
        root = store.folder / 'debian'
        mirror = subprocess.run(['apt-get', 'indextargets', '--format', '$(SITE) $(RELEASE)', 'Created-By: Packages'], stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        subprocess.run(['debootstrap', '--variant=minbase', 'bookworm', root, re.search(r'^(\S+) bookworm$', mirror, re.M)[1]], check=True,
                       stdout=subprocess.DEVNULL)
        store.from_folder(root, DEBIAN)
        shutil.rmtree(root)
    return DEBIAN


def build(store, name, *words):
    return store('build', '--quiet', '--isolation', 'chroot', '--pull=never', '--tag', name, *words)


@pytest.fixture(scope='module')
def operator_image(store, login, address, tmp_path_factory):
    """Pushes the operator's image, and returns its name in the registry."""
    name = f'{address}/muster-operator:0.1.0'
    stage = ['--build-arg', f'BASE={debian(store)}'] if WHOLE else ['--build-context', f'build={made_outside(tmp_path_factory)}']
    build(store, name, *stage, '--file', IMAGES / 'Dockerfile.operator', SOURCE)
    store('push', '--quiet', *login, name)
    return name


def made_outside(tmp_path_factory):
    """Makes the files of the first stage of Dockerfile.operator, and returns their folder."""
    folder = tmp_path_factory.mktemp('stage')
    subprocess.run([IMAGES / 'operator', folder / 'root-of-image'], check=True, stdout=subprocess.DEVNULL)
    return folder


def secret(kubectl, address, name, password, namespace='default'):
    kubectl('create', 'secret', 'docker-registry', name, f'--docker-server={address}', f'--docker-username={USER}', f'--docker-password={password}',
            '-n', namespace)


@pytest.fixture(scope='module')
def operator(cluster, kubectl, address, operator_image):
    """Installs the operator from the registry, with the output of `muster deploy --print`. The pod reaches its API server by name, so that it needs
    CoreDNS."""
    kubectl('create', 'namespace', 'muster-system')
    secret(kubectl, address, 'login', PASSWORD, 'muster-system')
    objects = deployed('--image', operator_image, '--image-pull-secret', 'login')
    pod = next(o for o in objects if o['kind'] == 'Deployment')['spec']['template']['spec']
    pod['containers'][0]['env'].append({'name': 'KUBERNETES_SERVICE_HOST', 'value': 'kubernetes.default.svc'})
    kubectl('apply', '--server-side', '-f', '-', text=listed(objects))
    wait_operator(cluster, kubectl)
    return cluster.request('GET', '/api/v1/namespaces/muster-system/pods')['items'][0]


def listed(objects):
    return json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': objects})


@pytest.fixture(scope='module')
def worker_image(store, login, address, tmp_path_factory):
    """Pushes an image of links to this machine's programs, and returns its name in the registry."""
    name = f'{address}/team/worker:1'
    store('pull', '--quiet', f'docker-archive:{node_jobs.worker_image(tmp_path_factory.mktemp("worker"))}')
    store('tag', WORKER, name)
    store('push', '--quiet', *login, name)
    return name


def pulled(image, secret_name, *words):
    return rank(1, *words, container={'image': image, 'imagePullPolicy': 'Always'}, imagePullSecrets=[{'name': secret_name}] if secret_name else [])


def test_nobody_pushes_without_the_password(store, address, login, worker_image):
    refused = store.attempt('push', '--quiet', *login[2:], worker_image, f'docker://{address}/team/other:1')
    assert refused.returncode != 0 and 'authentication required' in refused.stderr


def test_the_operator_runs_from_the_registry(cluster, kubectl, address, operator):
    """It runs under its own service account without an admin's rights, and as a user without rights."""
    assert operator['spec']['serviceAccountName'] == 'muster-operator'
    assert operator['status']['containerStatuses'][0]['imageID'].startswith(f'{address}/muster-operator@sha256:')
    who = 'system:serviceaccount:muster-system:muster-operator'
    assert kubectl.attempt('auth', 'can-i', '*', '*', '--as', who).stdout.strip() == 'no'
    create(kubectl, 'hello', Master=rank(1, 'sh', '-c', 'echo rank $RANK of $WORLD_SIZE'), Worker=rank(1, 'true'))
    assert wait_end(cluster, kubectl, 'hello') == 'Succeeded'
    assert kubectl('logs', 'hello-master-0') == 'rank 0 of 2\n'
    assert 'forbidden' not in kubectl('logs', '-n', 'muster-system', 'deployment/muster-operator')


def test_a_wrong_password_is_said_and_mended(cluster, kubectl, address, operator, worker_image, tmp_path):
    """The pod's event reports it, and so does `muster run`: the same job continues after the user types the command that it prints, with the right
    password."""
    secret(kubectl, address, 'mine', 'guessed')
    job = {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'private'},
           'spec': {'pytorchReplicaSpecs': {'Master': pulled(worker_image, 'mine', 'echo', 'came from afar')}}}
    (tmp_path / 'job.json').write_text(listed([job]))
    log = tmp_path / 'log'
    with open(log, 'w', encoding='utf-8') as out:
        run = subprocess.Popen([BUILD / 'bin/muster', 'run', '--kubeconfig', cluster.kubeconfig, '-f', tmp_path / 'job.json'], stdin=subprocess.DEVNULL,
                               stdout=out, stderr=out, env={**os.environ, 'HOME': str(tmp_path)})
    try:
        command = wait_for(lambda: re.search(r'this makes it: (.*)\n', log.read_text()), 'it says what to do')[1]
        assert (f'rank 0 waits: the registry {address} does not give the image {worker_image}: '
                'it takes no password that is in imagePullSecrets: mine\n') in log.read_text()
        wait_for(lambda: '401 Unauthorized' in kubectl('events', '--for', 'pod/private-master-0', '--types=Warning'), 'the event')
        wait_for(lambda: get_pod(cluster, 'private-master-0')['status']['containerStatuses'][0]['state']['waiting']['reason'] == 'ImagePullBackOff', 'turns')
        command = command.replace('=USER', f'={USER}').replace('=PASSWORD', f'={PASSWORD}')
        path = f'{pathlib.Path(kubectl.words[0]).parent}:{os.environ["PATH"]}'
        subprocess.run(['sh', '-c', command], check=True, env={**os.environ, 'PATH': path, 'KUBECONFIG': str(cluster.kubeconfig)}, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert run.wait(LIMIT_S) == 0, log.read_text()
    finally:
        run.kill()
        run.wait()
    assert '[rank 0] came from afar\n' in log.read_text()
    assert log.read_text().count('waits: the registry') == 1, log.read_text()


def test_an_image_that_is_not_there_is_named(cluster, kubectl, address, operator, tmp_path):
    secret(kubectl, address, 'right', PASSWORD)
    create(kubectl, 'typo', Master=pulled(f'{address}/team/wroker:1', 'right', 'true'))
    wait_for(lambda: 'not found' in kubectl('events', '--for', 'pod/typo-master-0', '--types=Warning'), 'the event')
    kubectl('delete', 'pytorchjob', 'typo')


# This program replaces PyTorch if no Debian is made.
SPEAKER = """#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{
    printf("Using distributed PyTorch with %s backend\\n", count > 2 ? words[2] : "no");
    printf("rank %s of %s\\n", getenv("RANK"), getenv("WORLD_SIZE"));
}
"""
DEMO = 'pytorch-dist-mnist-gloo-demo'


@pytest.fixture(scope='module')
def docker(cluster, store, login):
    """A command `docker` for lines of the tutorial: it runs buildah, which trusts the registry's certificate."""
    _, passwords, _, folder = login
    script = cluster.folder / 'docker'
    script.write_text('#!/bin/sh\nexport BUILDAH_ISOLATION=chroot BUILDAH_LAYERS=false '
                      f'REGISTRY_AUTH_FILE={passwords} SSL_CERT_FILE={folder}/ca.crt\nexec {" ".join(map(str, store.words))} "$@"\n')
    script.chmod(0o755)


@pytest.fixture(scope='module')
def demo_build(store, tmp_path_factory):
    """Returns the arguments of the tutorial's `docker build`: for examples/mnist, based on the worker's image, or for a small program that prints its
    rank."""
    if WHOLE:
        base = 'localhost/muster-worker:0.1.0'
        build(store, base, '--build-arg', f'BASE={debian(store)}', '--file', IMAGES / 'Dockerfile.worker', SOURCE)
        return f'--build-arg BASE={base} --pull=never examples/mnist'
    folder = tmp_path_factory.mktemp('demo')
    (folder / 'main.c').write_text(SPEAKER)
    subprocess.run(['cc', '-static', '-o', folder / 'main', folder / 'main.c'], check=True)
    (folder / 'Dockerfile').write_text('FROM scratch\nCOPY main /main\nENTRYPOINT ["/main"]\n')
    return str(folder)


def test_the_azure_tutorial_as_it_is_typed(cluster, kubectl, address, operator, docker, demo_build):
    """Runs each line of docs/seeds.md, with the job's file, few training images, and this registry's name."""
    few = ', '.join(f'"{word}"' for word in ('gloo', '--images', 1280, '--test-images', 500))
    changes = {'docker login registry.example': f'echo {PASSWORD} | docker login --username {USER} --password-stdin registry.example',
               ' examples/mnist': f' {demo_build}', 'registry.example': address, '=USER': f'={USER}', '=PASSWORD': f'={PASSWORD}',
               'kubectl create -f -': f"sed 's|\"gloo\"|{few}|' | kubectl create -f -", '--timeout=10m': f'--timeout={LIMIT_S}s'}
    lines = read_commands('seeds.md', 'PyTorch on Kubeflow on Azure Stack')
    said = {line: type_line(cluster, line, changes) for line in lines}
    seen = dict(zip(('crd', 'login', 'build', 'push', 'secret', 'account', 'create', 'wait', 'pods', 'job', 'describe', 'pod', 'logs'), said.values()))
    assert len(said) == 13 and 'Login Succeeded!' in seen['login']
    assert seen['crd'].startswith('pytorchjobs.kubeflow.org ') and seen['create'] == f'pytorchjob.kubeflow.org/{DEMO} created\n'
    rows = [line.split() for line in seen['pods'].splitlines()]
    assert rows[0] == ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE']
    assert [row[0] for row in rows if row[0].startswith(DEMO)] == [f'{DEMO}-master-0', *(f'{DEMO}-worker-{at}' for at in range(3))]
    assert re.search(rf'^NAME +STATE +AGE\n(?:.*\n)*{DEMO} +Succeeded +', seen['job'], re.M)
    for text in (f'PyTorchJob {DEMO} is created.', f'PyTorchJob {DEMO} is successfully completed.', f'Created pod: {DEMO}-worker-2',
                 f'Created service: {DEMO}-master-0'):
        assert text in seen['describe']
    assert f'Successfully pulled image "{address}/team/pytorch-dist-mnist-test:1.0"' in seen['pod']
    assert seen['logs'].startswith('Using distributed PyTorch with gloo backend\n')
    assert re.search('accuracy=' if WHOLE else 'rank 0 of 4\n', seen['logs'])


@pytest.mark.skipif(not WHOLE, reason='MUSTER_DOCKERFILES=1 builds the worker\'s image')
def test_the_tutorials_job_trains_by_muster(cluster, kubectl, address, operator, docker, demo_build):
    """The image is the same, and the back end is muster's package in it."""
    text = (SOURCE / 'examples/azure-stack/pytorch_job_mnist_gloo_demo.yaml').read_text().replace('kubeflow/', f'{address}/team/')
    few = 'args: ["--backend", "muster", "--images", "1280", "--test-images", "500"]'
    kubectl('create', '-f', '-', text=text.replace(DEMO, 'by-muster').replace('args: ["--backend", "gloo"]', few))
    assert wait_end(cluster, kubectl, 'by-muster') == 'Succeeded', kubectl('logs', 'by-muster-master-0')
    assert 'accuracy' in kubectl('logs', 'by-muster-master-0')
