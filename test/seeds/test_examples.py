"""Runs every job file of examples/ as its README says, except the main one (which `make demo` runs)."""
import re
import shlex

import pytest

from seed import AZURE_IMAGE, SOURCE

JOBS = [  # folder, what the job must print
    ('smoke-test', ['rank 0: 6 came back after 4 ranks: send and recv work']),
    ('cpu-demo', [f'rank {rank} of 4 (local rank {rank % 2} of 2, node {rank // 2}): the all-reduce counts 4' for rank in range(4)]),
    ('elastic-echo', ['hello from rank 0 of 2, restart 0', 'hello from rank 1 of 2, restart 0']),
    ('c/hello', [f'rank {rank} of 4: the ranks sum up to 6' for rank in range(4)]),
]


@pytest.mark.parametrize('folder, wanted', JOBS, ids=[folder for folder, _ in JOBS])
def test_job_runs(muster, folder, wanted):
    muster.cwd = SOURCE
    output = muster.run('run', '-f', f'examples/{folder}/pytorchjob.yaml').stdout
    assert [line for line in wanted if line not in output] == [], output


def test_every_job_file_lints_without_error(muster):
    files = sorted((SOURCE / 'examples').rglob('*.yaml'))
    assert len(files) >= 9
    muster.run('lint', *files)


def test_readmes_name_commands_that_exist():
    """The job files, images and scripts that a README names exist."""
    for readme in (SOURCE / 'examples').rglob('README.md'):
        text = readme.read_text()
        assert re.search(r'\bmuster (run|train) ', text), readme
        for word in text.replace("'", ' ').split():
            if word.startswith('examples/') and word.endswith(('.yaml', '.py', '.sh')):
                assert (SOURCE / word).exists(), f'{readme}: {word}'
    assert AZURE_IMAGE in (SOURCE / 'examples/azure-stack/README.md').read_text()


def muster_lines(path):
    """Yields the words of each muster command in a document's code blocks, up to a comment, a pipe or a redirection."""
    for language, block in re.findall(r'^```(\w*)[^\n]*\n(.*?)^```$', path.read_text(), re.M | re.S):
        for line in block.replace('\\\n', ' ').splitlines() if language in ('', 'sh') else ():
            for command in re.findall(r'(?:^|; |&& )muster (?!:)([^;&#|>]+)', line):
                yield shlex.split(command)


@pytest.mark.parametrize('path', ['README.md', 'CONTRIBUTING.md', 'docs/examples.md', *(
    str(readme.relative_to(SOURCE)) for readme in sorted((SOURCE / 'examples').rglob('README.md')))])
def test_documents_use_verbs_and_options_that_exist(muster, path):
    for words in muster_lines(SOURCE / path):
        options = re.findall(r'--[a-z_-]+', muster.run(words[0], '--help').stdout)
        own = words[:words.index('--')] if '--' in words else words
        unknown = [word for word in own if word.startswith('--') and word.split('=')[0] not in options]
        assert unknown == [], f'{path}: muster {shlex.join(words)}'
