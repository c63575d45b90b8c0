"""A real kube-apiserver with its etcd, for a test: it has its own ports and certificates, and an admin's kubeconfig; at the end everything is
removed. The programs come from tools/kubernetes/build.
"""
import base64
import ctypes
import json
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import urllib.request

from ports import held_port
from program import LIMIT_S, SOURCE, wait_for

PR_SET_PDEATHSIG = 1
HOST = '127.0.0.1'


def die_with_parent():
    """Runs in the child before it becomes the program, so that the program never outlives the test."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def programs(*names):
    """Returns the folder of the programs; builds them first if they are missing."""
    built = subprocess.run([SOURCE / 'tools/kubernetes/build', *names], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(built.stdout.strip())


class Authority:
    """A certificate authority in a folder, made by openssl."""

    def __init__(self, folder):
        self.folder = folder
        self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=test',
                     '-keyout', self.file('ca.key'), '-out', self.file('ca.crt'))
        self.openssl('genrsa', '-out', self.file('accounts.key'), '2048')
        self.openssl('rsa', '-in', self.file('accounts.key'), '-pubout', '-out', self.file('accounts.pub'))

    def file(self, name):
        return str(self.folder / name)

    def openssl(self, *words):
        done = subprocess.run(['openssl', *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f'openssl {" ".join(words)}: {done.stderr}'

    def issue(self, name, subject, extension):
        """Makes NAME.key and NAME.crt."""
        (self.folder / f'{name}.ext').write_text(extension)
        self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', subject, '-keyout', self.file(f'{name}.key'),
                     '-out', self.file(f'{name}.csr'))
        self.openssl('x509', '-req', '-in', self.file(f'{name}.csr'), '-CA', self.file('ca.crt'), '-CAkey', self.file('ca.key'), '-CAcreateserial',
                     '-days', '2', '-extfile', self.file(f'{name}.ext'), '-out', self.file(f'{name}.crt'))


class Cluster:
    """etcd and kube-apiserver, as processes. `options`: additional options of the API server, as {name: value}."""

    def __init__(self, **options):
        self.bin = programs('etcd', 'kube-apiserver')
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='muster-kubernetes-'))
        self.processes = {}
        self.holders = []
        self.etcd_port, self.peer_port, self.port = (self.hold_port() for _ in range(3))
        self.url = f'https://{HOST}:{self.port}'
        self.authority = Authority(self.folder)
        self.authority.issue('server', '/CN=kube-apiserver', f'subjectAltName=IP:{HOST},DNS:kubernetes.default.svc')
        self.authority.issue('admin', '/O=system:masters/CN=admin', 'extendedKeyUsage=clientAuth')
        self.kubeconfig = self.write_kubeconfig('kubeconfig', self.url)
        self.tls = ssl.create_default_context(cafile=self.authority.file('ca.crt'))
        self.tls.load_cert_chain(self.authority.file('admin.crt'), self.authority.file('admin.key'))

    def hold_port(self):
        holder = held_port()
        self.holders.append(holder)
        return holder.__enter__()

    def write_kubeconfig(self, name, server, user=None, **context):
        """Writes a kubeconfig and returns its path. `user`: the user in it; without one, the admin's certificate."""
        def data(file):
            return base64.b64encode((self.folder / file).read_bytes()).decode()
        admin = {'client-certificate-data': data('admin.crt'), 'client-key-data': data('admin.key')}
        cluster = {'server': server}
        if server.startswith('https'):
            cluster['certificate-authority-data'] = data('ca.crt')
        path = self.folder / name
        path.write_text(json.dumps({'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'test',
                                    'clusters': [{'name': 'test', 'cluster': cluster}],
                                    'users': [{'name': 'test', 'user': admin if user is None else user}],
                                    'contexts': [{'name': 'test', 'context': {'cluster': 'test', 'user': 'test', **context}}]}))
        return path

    def start(self):
        self.start_etcd()
        self.start_server()
        return self

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    def run(self, name, *words):
        log = open(self.folder / f'{name}.log', 'ab')  # noqa: SIM115 (the process keeps it)
        self.processes[name] = subprocess.Popen([self.bin / name, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                                preexec_fn=die_with_parent)
        log.close()

    def start_etcd(self):
        client, peer = f'http://{HOST}:{self.etcd_port}', f'http://{HOST}:{self.peer_port}'
        self.run('etcd', '--data-dir', str(self.folder / 'etcd'), '--unsafe-no-fsync', '--log-level', 'warn', '--listen-client-urls', client,
                 '--advertise-client-urls', client, '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
                 '--initial-cluster', f'default={peer}')

    def start_server(self):
        file = self.authority.file
        options = {
            'etcd-servers': f'http://{HOST}:{self.etcd_port}', 'secure-port': self.port, 'bind-address': HOST, 'advertise-address': HOST,
            'tls-cert-file': file('server.crt'), 'tls-private-key-file': file('server.key'), 'client-ca-file': file('ca.crt'),
            'service-account-issuer': 'https://kubernetes.default.svc', 'service-account-key-file': file('accounts.pub'),
            'service-account-signing-key-file': file('accounts.key'), 'authorization-mode': 'RBAC', 'allow-privileged': 'true',
            'service-cluster-ip-range': '10.96.0.0/16', 'cert-dir': str(self.folder / 'certificates'),
            # Without a controller manager no program makes the service account that each pod needs.
            'disable-admission-plugins': 'ServiceAccount', **self.options,
        }
        self.run('kube-apiserver', *(f'--{name}={value}' for name, value in options.items()))
        wait_for(self.is_ready, 'the API server is ready')

    def stop(self, name, signal_number=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(signal_number)
        process.wait(LIMIT_S)

    def check_alive(self):
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.on_ended(name)

    def on_ended(self, name):
        """Is called when a program has ended by itself."""
        raise AssertionError(f'{name} ended: {self.log(name)}')

    def is_ready(self):
        self.check_alive()
        try:
            return self.request('GET', '/readyz', raw=True) == 'ok'
        except OSError:
            return False

    def log(self, name):
        return (self.folder / f'{name}.log').read_text(errors='replace')[-4000:]

    def request(self, method, path, body=None, content_type='application/json', raw=False, data=None):
        """Sends a request as the admin, independently of the client under test. `data`: bytes of that content type, instead of a body."""
        data = data if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, {'Content-Type': content_type}, method=method)
        with urllib.request.urlopen(asked, timeout=LIMIT_S, context=self.tls) as answer:
            text = answer.read().decode()
        return text if raw else json.loads(text)

    def namespace(self, name):
        """Creates a namespace for one test, and returns its name."""
        self.request('POST', '/api/v1/namespaces', {'metadata': {'name': name}})
        return name

    def close(self):
        for name in list(self.processes)[::-1]:  # an API server whose etcd has ended does not end itself
            self.stop(name)
        for holder in self.holders:
            holder.__exit__(None, None, None)
        shutil.rmtree(self.folder, ignore_errors=True)
