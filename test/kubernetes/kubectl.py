"""kubectl, as a process, on a cluster of the tests."""
import subprocess

from program import LIMIT_S, SOURCE


class Kubectl:
    def __init__(self, kubeconfig):
        found = subprocess.run([SOURCE / 'tools/kubectl/find'], stdout=subprocess.PIPE, text=True, check=True)
        self.words = [found.stdout.strip(), '--kubeconfig', kubeconfig]

    def attempt(self, *words, text=None):
        return subprocess.run([*self.words, *words], input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def __call__(self, *words, text=None):
        done = self.attempt(*words, text=text)
        assert done.returncode == 0, f'kubectl {" ".join(words)}: {done.stderr}'
        return done.stdout
