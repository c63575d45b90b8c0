"""Debian's docker-registry, which requires a password, on its own port. It knows only the user of one `htpasswd` line."""
import contextlib
import json
import re
import shutil
import subprocess

import pytest

from program import wait_for

USER, PASSWORD = 'muster', 'letmein'
PASSWORD_FILE = 'muster:$2y$05$0vmRtzNRUDgZd9awODyb.OYNd8K33MMmKIXcij6woxsWv2ehyJno2\n'  # htpasswd -nbB muster letmein


@contextlib.contextmanager
def registry(folder, address='127.0.0.1', certificate=None):
    """Runs a registry; yields its ADDRESS:PORT. `folder`: for all files of the registry; `certificate`: the files of a certificate and its key,
    for HTTPS."""
    if not shutil.which('docker-registry'):
        pytest.skip('NOT TESTED: pull secrets need a registry: docker-registry; tools/deps podman')
    (folder / 'passwords').write_text(PASSWORD_FILE)
    http = {'addr': f'{address}:0', **({'tls': {'certificate': str(certificate[0]), 'key': str(certificate[1])}} if certificate else {})}
    config = {'version': 0.1, 'storage': {'filesystem': {'rootdirectory': str(folder / 'images')}},
              'http': http, 'auth': {'htpasswd': {'realm': 'test', 'path': str(folder / 'passwords')}}}
    (folder / 'config.yml').write_text(json.dumps(config))
    log = folder / 'log'
    with open(log, 'w', encoding='utf-8') as out:
        server = subprocess.Popen(['docker-registry', 'serve', folder / 'config.yml'], stdout=out, stderr=out)
    try:
        yield wait_for(lambda: re.search(rf'listening on ({re.escape(address)}:\d+)', log.read_text()), 'the registry listens')[1]
    finally:
        server.kill()
        server.wait()
