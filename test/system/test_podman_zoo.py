"""`elasticdl zoo init`, `build` and `push`, as they are in the tutorial: podman replaces docker, as root and rootless, and the registry is a
real one that requires a password. The test reads its content at the end by HTTP."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import LIMIT_S
from podman_engine import engine, muster  # noqa: F401 (fixtures)
from registry import PASSWORD, USER, registry

pytestmark = pytest.mark.heavy  # .ci/suite-podman; some seconds
FORMATS = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json'


@pytest.fixture
def address(tmp_path):
    """The address of a registry."""
    with registry(tmp_path) as found:
        yield found


class Zoo:
    """`elasticdl zoo` as the engine's user types it. `docker` is podman, which speaks HTTP to the registry and builds without a network."""

    def __init__(self, engine, muster, address):
        self.engine, self.muster = engine, muster
        folder = pathlib.Path(muster.folder)
        self.bin, self.logins = folder / 'bin', folder / 'logins.json'
        self.bin.mkdir()
        (self.bin / 'docker').symlink_to(shutil.which('podman'))
        (self.bin / 'elasticdl').symlink_to(pathlib.Path(muster.binary).resolve())
        (folder / 'registries.conf').write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
        self.logins.write_text('{}')
        if engine.who:
            os.chown(self.logins, engine.who['user'], engine.who['group'])
        self.env = {**engine.env, 'PATH': f'{self.bin}:{os.environ["PATH"]}', 'BUILDAH_ISOLATION': 'chroot',
                    'CONTAINERS_REGISTRIES_CONF': str(folder / 'registries.conf'), 'REGISTRY_AUTH_FILE': str(self.logins)}

    def __call__(self, *words, code=0):
        return self.type('elasticdl', 'zoo', *words, code=code)

    def type(self, program, *words, code=0, text=None):
        done = subprocess.run([self.bin / program, *words], env=self.env, cwd=self.muster.work, input=text, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, **self.engine.who)
        assert done.returncode == code, f'{program} {words}: {done.returncode}\n{done.stdout}{done.stderr}'
        return done.stdout + done.stderr


def make_base(zoo, name):
    """Builds an image with a `pip` that needs no network: it only records what it should install."""
    context = pathlib.Path(zoo.muster.work) / 'base'
    context.mkdir()
    (context / 'pip').write_text('#!/bin/sh\necho "$@" >/installed\n')
    (context / 'pip').chmod(0o755)
    (context / 'Dockerfile').write_text(f'FROM {zoo.engine.image}\nCOPY pip /bin/pip\n')
    zoo.type('docker', 'build', '--quiet', '--pull-never', '--tag', name, str(context))


def fetch(address, path, password=PASSWORD):
    login = base64.b64encode(f'{USER}:{password}'.encode()).decode()
    request = urllib.request.Request(f'http://{address}/v2/{path}', headers={'Accept': FORMATS, 'Authorization': f'Basic {login}'})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
        return json.load(answer)


def test_an_image_is_built_and_pushed(engine, muster, address):
    zoo = Zoo(engine, muster, address)
    base, image = f'localhost/muster-test-zoo-{os.getpid()}:1', f'{address}/team/mnist:1'
    try:
        make_base(zoo, base)
        zoo('init', f'--base_image={base}')
        zoo('build', '.', f'--image={image}')
        refused = zoo('push', image, code=125)
        assert 'unauthorized' in refused or 'authentication required' in refused
        zoo.type('docker', 'login', '--username', USER, '--password-stdin', address, text=PASSWORD)
        zoo('push', image)
        built, = json.loads(zoo.type('docker', 'image', 'inspect', image))
        manifest = fetch(address, 'team/mnist/manifests/1')
        assert manifest['config']['digest'].removeprefix('sha256:') == built['Id'].removeprefix('sha256:')
        made = fetch(address, f'team/mnist/blobs/{manifest["config"]["digest"]}')
        assert 'PYTHONUNBUFFERED=1' in made['config']['Env']
        assert len(manifest['layers']) == len(made['rootfs']['diff_ids'])
        says = zoo.type('docker', 'run', '--rm', '--network=none', *engine.flags.split(), '--entrypoint=sh', image, '-c',
                        'cat installed; grep -c RecordIndexService model_zoo/example.py')
        assert says.split('\n')[:2] == ['install torch', '2']
        with pytest.raises(urllib.error.HTTPError, match='401'):
            fetch(address, 'team/mnist/manifests/1', 'guessed')
    finally:
        engine.podman('rmi', '--force', image, base, code=None)
