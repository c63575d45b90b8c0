"""The images of deploy/images. The operator's image has everything that the operator needs, and nothing else: no shared library, no shell, a user
without rights."""
import subprocess

import pytest

from jobs import Jobs, Operator
from program import SOURCE

pytestmark = pytest.mark.heavy  # curl and GnuTLS are compiled, once
MOST_BYTES = 10_000_000
NAME = 'kubernetes.default.svc'
# As in a container: the program has its own root with a /proc, which disappears with the process.
ENTER = 'mount --rbind /proc "$0/proc" && exec chroot --userspec=65532:65532 "$0" /muster-operator "$@"'


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    """Returns the operator's root file system, and its size in bytes."""
    folder = tmp_path_factory.mktemp('image') / 'root'
    made = subprocess.run([SOURCE / 'deploy/images/operator', folder], stdout=subprocess.PIPE, text=True, check=True)
    return folder, int(made.stdout)


def test_it_is_one_small_program(root):
    folder, size = root
    assert size < MOST_BYTES
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file()) == [
        'etc/group', 'etc/nsswitch.conf', 'etc/passwd', 'muster-operator']
    program = subprocess.run(['readelf', '--program-headers', folder / 'muster-operator'], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert 'INTERP' not in program, 'it asks for a loader'


def test_it_runs_with_nothing_else(root, cluster, served, namespace):
    """The operator runs in its own root, over TLS, with a name that only its /etc/hosts has."""
    folder, _ = root
    (folder / 'etc/hosts').write_text(f'127.0.0.1 {NAME}\n')
    config = cluster.write_kubeconfig('in-the-image', f'https://{NAME}:{cluster.port}')
    (folder / 'kubeconfig').write_bytes(config.read_bytes())
    (folder / 'kubeconfig').chmod(0o644)
    (folder / 'proc').mkdir()
    operator = Operator('/kubeconfig', '--namespace', namespace,
                        program=('/usr/bin/unshare', '--mount', 'sh', '-c', ENTER, str(folder)))
    try:
        operator.start().wait_ready()
        jobs = Jobs(cluster, namespace)
        jobs.create('a', master=1, workers=2)
        jobs.wait_pods('a', 3)
        jobs.set_phases('a', 'Succeeded', 0)
        jobs.wait_condition('a', 'Succeeded')
        assert operator.end() == 0
    finally:
        operator.close()
