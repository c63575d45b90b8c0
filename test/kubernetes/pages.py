"""Runs the commands of pages of docs exactly as they are written: with the `muster` that was built, and a kubectl of the tests, on the cluster
of a test."""
import os
import re
import subprocess

from kubectl import Kubectl
from program import BUILD, HEAVY_LIMIT_S, SOURCE


def read_section(page, title=None):
    """Returns the text of that page of docs below that headline, up to the next headline; without a title, the whole text."""
    text = (SOURCE / 'docs' / page).read_text()
    return text if title is None else re.search(rf'^## {re.escape(title)}\n(.*?)(?=^## |\Z)', text, re.M | re.S)[1]


def read_blocks(page, title=None, language='sh'):
    """Returns the code blocks of a page, each as a list of lines."""
    return [block.splitlines() for block in re.findall(rf'```{language}\n(.*?)```', read_section(page, title), re.S)]


def read_commands(page, title=None):
    return [line for block in read_blocks(page, title) for line in block]


def type_line(cluster, command, changes=None):
    """Runs a command in a shell, in the folder of the sources, and returns what it printed. `changes`: {words of the page: words that replace
    them}."""
    for there, here in (changes or {}).items():
        command = command.replace(there, here)
    path = f'{cluster.folder}:{BUILD}/bin:{os.environ["PATH"]}'
    link = cluster.folder / 'kubectl'
    if not link.exists():
        link.symlink_to(Kubectl(cluster.kubeconfig).words[0])
    done = subprocess.run(['bash', '-c', f'set -o pipefail; {command}'], capture_output=True, text=True, timeout=HEAVY_LIMIT_S, check=False, cwd=SOURCE,
                          env={**os.environ, 'PATH': path, 'KUBECONFIG': str(cluster.kubeconfig)})
    assert done.returncode == 0, f'{command}: {done.stdout}{done.stderr}'
    return done.stdout
