"""Container images without a registry, as archives that containerd imports: a folder's files in one layer."""
import hashlib
import io
import json
import subprocess
import tarfile

PAUSE = '#include <unistd.h>\nint main(void) { for (;;) { pause(); } }\n'


def add_bytes(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def image(root, name, archive, **config):
    """Writes an archive in Docker's format with the files of the folder `root`, and returns its path; `config`: Entrypoint, User, Env …"""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode='w') as tar:
        tar.add(root, arcname='.')
    content = layer.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    described = json.dumps({'architecture': 'amd64', 'os': 'linux', 'config': config, 'rootfs': {'type': 'layers', 'diff_ids': [f'sha256:{digest}']}}).encode()
    with tarfile.open(archive, 'w') as tar:
        add_bytes(tar, 'layer.tar', content)
        add_bytes(tar, 'config.json', described)
        add_bytes(tar, 'manifest.json', json.dumps([{'Config': 'config.json', 'RepoTags': [name], 'Layers': ['layer.tar']}]).encode())
    return archive


def pause(folder):
    """Makes the image of the first container in each pod, which holds the pod's namespaces."""
    root = folder / 'pause'
    root.mkdir()
    (root / 'pause.c').write_text(PAUSE)
    subprocess.run(['cc', '-static', '-Os', '-o', root / 'pause', root / 'pause.c'], check=True)
    return image(root, 'test.local/pause:1', folder / 'pause.tar', Entrypoint=['/pause'])
