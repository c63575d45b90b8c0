"""buildah, with its own store, which is removed at the end."""
import contextlib
import shutil
import subprocess

from program import HEAVY_LIMIT_S


class Buildah:
    """buildah with one store. `driver`: vfs copies each layer, and mounts nothing; overlay is for images of gigabytes."""

    def __init__(self, folder, driver='vfs'):
        self.folder, self.driver = folder, driver
        self.words = ['buildah', '--root', folder / 'store', '--runroot', folder / 'run', '--storage-driver', driver]

    def attempt(self, *words, cwd=None):
        return subprocess.run([*self.words, *words], capture_output=True, text=True, timeout=HEAVY_LIMIT_S, check=False, cwd=cwd)

    def __call__(self, *words, cwd=None):
        done = self.attempt(*words, cwd=cwd)
        assert done.returncode == 0, f'buildah {" ".join(map(str, words))}: {done.stderr[-4000:]}'
        return done.stdout.strip()

    def from_folder(self, root, name):
        """Makes an image that has only a root file system, as a base for Dockerfiles."""
        container = self('from', 'scratch')
        self('add', '--quiet', container, root, '/')
        self('commit', '--quiet', container, name)
        self('rm', container)

    def close(self):
        self('rm', '--all')
        self('rmi', '--all', '--force')
        subprocess.run(['umount', self.folder / 'store' / self.driver], capture_output=True, check=False)  # overlay mounts its own store
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def buildah_store(folder, driver='vfs'):
    """Yields a Buildah in the new folder `folder`, which is removed afterwards."""
    folder.mkdir()
    made = Buildah(folder, driver)
    try:
        yield made
    finally:
        made.close()
