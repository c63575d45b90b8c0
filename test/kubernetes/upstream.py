"""Kubeflow's training-operator as a process, with which muster operator is compared. It is built from its Go module (tools/kubernetes/build);
the tests read the definition of PyTorchJobs and the examples from the module's sources. Its webhook is switched off: the API server does not
call it.
"""
import base64
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from cluster import HOST, die_with_parent, programs
from jobs import wait_served
from ports import held_port
from program import LIMIT_S, SOURCE, wait_for

SPACE = 'kubeflow'
SECRET = f'/api/v1/namespaces/{SPACE}/secrets/training-operator-webhook-cert'
WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
WEBHOOK = 'validator.training-operator.kubeflow.org'
DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
# Where it looks for its certificate, whatever its flags say; it has its own folder as /tmp.
CERTIFICATES = 'k8s-webhook-server/serving-certs'
EXAMPLES = ('simple', 'smoke-dist/pytorch_job_sendrecv', 'mnist/v1/pytorch_job_mnist_gloo', 'mnist/v1/pytorch_job_mnist_nccl',
            'mnist/v1/pytorch_job_mnist_mpi', 'cpu-demo/demo', 'deepspeed-demo/pytorch_deepspeed_demo', 'elastic/echo/echo',
            'elastic/imagenet/imagenet')


def module():
    """Returns the folder of the module's sources."""
    found = subprocess.run([SOURCE / 'tools/kubernetes/build', '--module', 'training-operator'], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(found.stdout.strip())


def definition():
    """Returns the definition of PyTorchJobs, as YAML."""
    return (module() / 'manifests/base/crds/kubeflow.org_pytorchjobs.yaml').read_bytes()


def example(cluster, name):
    """Returns one of EXAMPLES as an object, parsed by the API server in a dry run: nothing is created."""
    text = module().joinpath('examples', 'pytorch', f'{name}.yaml').read_bytes()
    made = cluster.request('POST', f'/apis/kubeflow.org/v1/namespaces/{SPACE}/pytorchjobs?dryRun=All', data=text, content_type='application/yaml')
    return {'apiVersion': made['apiVersion'], 'kind': made['kind'], 'metadata': {'name': made['metadata'].get('name', '')}, 'spec': made['spec']}


def make_or_keep(cluster, path, body):
    try:
        cluster.request('POST', path, body)
    except urllib.error.HTTPError as refused:
        assert refused.code == 409, refused


def prepare(cluster):
    """Makes the objects that the training-operator expects: its namespace, a Secret to fill, a webhook configuration (without webhooks)."""
    make_or_keep(cluster, '/api/v1/namespaces', {'metadata': {'name': SPACE}})
    make_or_keep(cluster, SECRET.rpartition('/')[0], {'metadata': {'name': SECRET.rpartition('/')[2]}})
    make_or_keep(cluster, WEBHOOKS, {'metadata': {'name': WEBHOOK}, 'webhooks': []})


def install(cluster):
    """Installs the definition of PyTorchJobs that is part of the training-operator."""
    cluster.request('POST', DEFINITIONS, data=definition(), content_type='application/yaml')
    wait_served(cluster)


class Upstream:
    """The process, until it is closed. `options`: flags, after those that a test needs."""

    def __init__(self, cluster, kubeconfig, *options):
        self.cluster = cluster
        self.bin = programs('training-operator')
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='muster-upstream-'))
        (self.folder / CERTIFICATES).mkdir(parents=True)
        shutil.copy(kubeconfig, self.folder / 'kubeconfig')
        self.holders = [held_port(), held_port()]
        webhook, health = (holder.__enter__() for holder in self.holders)
        self.health = f'http://{HOST}:{health}/readyz'
        self.words = ['--kubeconfig=/tmp/kubeconfig', '--enable-scheme=pytorchjob', f'--webhook-server-port={webhook}', '--metrics-bind-address=0',
                      f'--health-probe-bind-address={HOST}:{health}', '--zap-log-level=error', *options]
        self.process = None

    def start(self):
        prepare(self.cluster)
        # The process gets its own /tmp with the files that it looks for there, and with the program, which may itself lie in /tmp. It is a direct
        # child of this process.
        (self.folder / 'training-operator').touch()
        own_tmp = ['unshare', '--mount', *([] if os.geteuid() == 0 else ['--user', '--map-root-user']), 'sh', '-c',
                   'mount --bind "$1" "$0/training-operator" && mount --rbind "$0" /tmp && shift && exec /tmp/training-operator "$@"', str(self.folder)]
        with open(self.folder / 'log', 'ab') as log:
            self.process = subprocess.Popen([*own_tmp, self.bin / 'training-operator', *self.words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, 'MY_POD_NAMESPACE': SPACE, 'MY_POD_NAME': 'upstream'}, preexec_fn=die_with_parent)
        return self

    def log(self):
        return (self.folder / 'log').read_text(errors='replace')[-4000:]

    def write_certificate(self):
        """Writes the certificate from the Secret into the folder, as a kubelet would, and returns whether the Secret was filled."""
        self.assert_runs()
        filled = self.cluster.request('GET', SECRET).get('data', {})
        for name, value in filled.items():
            (self.folder / CERTIFICATES / name).write_bytes(base64.b64decode(value))
        return bool(filled)

    def assert_runs(self):
        assert self.process.poll() is None, f'the training-operator ended: {self.log()}'

    def is_ready(self):
        self.assert_runs()
        try:
            with urllib.request.urlopen(self.health, timeout=LIMIT_S) as answer:
                return answer.status == 200
        except OSError:
            return False

    def wait_ready(self):
        wait_for(self.write_certificate, 'its certificate is in its Secret')
        wait_for(self.is_ready, 'the training-operator is ready')
        return self

    def end(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        return self.process.wait(LIMIT_S)

    def close(self):
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        for holder in self.holders:
            holder.__exit__(None, None, None)
        shutil.rmtree(self.folder, ignore_errors=True)
