"""Real podman for the tests of `--runtime podman`, as root and rootless, with an image made here (a static busybox). MUSTER_PODMAN_FLAGS has
the flags that this machine needs; find_flags finds them.

Without podman, busybox-static, or a way to run any container at all, the tests are skipped with that reason."""
import io
import os
import pathlib
import pwd
import shutil
import subprocess
import tarfile
import tempfile

import pytest
from conftest import LIMIT_S, Muster, job, wait_for

APPLETS = ('sh', 'cat', 'echo', 'sleep', 'setsid', 'id', 'nc', 'touch', 'true', 'hostname', 'grep', 'nslookup', 'wc', 'tty', 'kill', 'ln',
           'mkdir', 'stty', 'ps')
USER = f'muster-podman-{os.getpid()}'  # a run that was killed leaves its user behind
BUSYBOX = pathlib.Path('/bin/busybox')
SMALL_LIMITS = '--ulimit nofile=1024:1024 --ulimit nproc=1000:1000'  # for machines whose limits are below podman's own
RUNC = '--runtime runc'  # Debian's crun cannot work where cgroups are of both versions at once


def image_tar(path):
    """Writes a root file system with nothing but busybox and a few folders."""
    with tarfile.open(path, 'w') as tar:
        for folder in ('bin', 'tmp', 'etc', 'proc', 'dev', 'sys', 'usr'):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(entry)
        program = tarfile.TarInfo('bin/busybox')
        program.size, program.mode = BUSYBOX.stat().st_size, 0o755
        tar.addfile(program, io.BytesIO(BUSYBOX.read_bytes()))
        links = {f'bin/{name}': 'busybox' for name in APPLETS}
        links.update({'lib': 'usr/lib', 'lib64': 'usr/lib64'})  # if /usr is mounted, this machine's python3 runs in the container
        for name, target in links.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)


class Engine:
    """podman for one user: root, or an unprivileged user with a separate home folder."""

    def __init__(self, folder, user):
        self.folder = folder
        self.image = f'localhost/muster-test-{os.getpid()}:1'
        self.who = {}
        self.env = {**os.environ, 'HOME': str(folder / 'user')}
        if user:
            entry = pwd.getpwnam(user)
            self.who = {'user': entry.pw_uid, 'group': entry.pw_gid, 'extra_groups': []}
            self.env = {'HOME': entry.pw_dir, 'PATH': os.environ['PATH'], 'XDG_RUNTIME_DIR': str(folder / 'run')}
            for name in ('run', 'user'):
                (folder / name).mkdir(mode=0o700)
                os.chown(folder / name, entry.pw_uid, entry.pw_gid)

    def podman(self, *words, code=0):
        done = subprocess.run(['podman', *words], env=self.env, cwd='/', capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              **self.who)
        assert code is None or done.returncode == code, f'podman {words}: {done.stdout}{done.stderr}'
        return done

    def containers(self):
        return self.podman('ps', '--all', '--quiet', '--filter', f'ancestor={self.image}').stdout.split()

    def find_flags(self):
        """Returns what MUSTER_PODMAN_FLAGS must contain here; skips the test if no container can be run."""
        for flags in (f'{runtime} {limits}'.strip() for runtime in ('', RUNC) for limits in ('', SMALL_LIMITS)):
            done = self.podman('run', '--rm', '--network=host', *flags.split(), self.image, 'true', code=None)
            if done.returncode == 0:
                return flags
        pytest.skip(f'podman can run no container here: {done.stderr.strip()[-300:]}')
        return None


@pytest.fixture(scope='module', params=['root', 'rootless'])
def engine(request):
    if not shutil.which('podman') or not BUSYBOX.exists():
        pytest.skip('NOT TESTED: podman and busybox-static are needed; tools/deps podman')
    root = os.geteuid() == 0
    if request.param == 'root' and not root:
        pytest.skip('NOT TESTED: podman as root needs root')
    user = USER if root and request.param == 'rootless' else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix='muster-podman-'))
    folder.chmod(0o755)
    if user:
        if not shutil.which('newuidmap'):
            pytest.skip('NOT TESTED: rootless podman needs newuidmap (uidmap); tools/deps podman')
        subprocess.run(['useradd', '--create-home', '--home-dir', folder / 'home', user], check=True)
    engine = Engine(folder, user)
    try:
        image_tar(folder / 'image.tar')
        engine.podman('import', '--change', 'ENTRYPOINT ["sh","-c","echo of the image"]', str(folder / 'image.tar'), engine.image)
        engine.flags = engine.find_flags()
        yield engine
    finally:
        engine.podman('rmi', '--force', engine.image, code=None)
        if user:
            engine.podman('system', 'reset', '--force', code=None)
            engine.podman('system', 'migrate', code=None)  # ends the user's own pause process
            wait_for(lambda: subprocess.run(['userdel', user], check=False).returncode == 0, 'no process of the user is left')
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def muster(engine):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='muster-test-'))
    runner = Muster(folder)
    runner.env.update(engine.env, MUSTER_PODMAN_FLAGS=engine.flags)
    runner.who = engine.who
    if engine.who:  # the user may have no access to the build folder
        runner.binary = shutil.copy(runner.binary, folder)
        folder.chmod(0o755)
        os.chown(runner.work, engine.who['user'], engine.who['group'])
        os.chown(folder, engine.who['user'], engine.who['group'])
    yield runner
    runner.close()
    assert not engine.containers()


def claim(name):
    return {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': name},
            'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}


def container_job(engine, name, script, **options):
    """Returns a job that runs the test's image, with the claim `data` mounted at /data."""
    made = job(name, ['sh', '-c', script], volumes=[{'name': 'v', 'persistentVolumeClaim': {'claimName': 'data'}}],
               mounts=[{'name': 'v', 'mountPath': '/data'}], **options)
    for container in containers_of(made):
        container.update(image=engine.image, imagePullPolicy='Never')
    return made


def containers_of(made):
    return [c for replica in made['spec']['pytorchReplicaSpecs'].values() for c in replica['template']['spec']['containers']]


def run(muster, *objects, code=0):
    return muster.run('run', '-f', muster.write('job.yaml', claim('data'), *objects), '--runtime', 'podman', code=code)


def data(muster, name):
    return muster.home / 'volumes/default/data' / name
