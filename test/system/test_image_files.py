"""Checks of deploy/images that need no build of an image: the worker's image installs the libraries with which muster's program is linked."""
import pathlib
import re
import subprocess

import pytest

from program import BUILD, SOURCE

IMAGES = SOURCE / 'deploy/images'


def stages(name):
    """Returns the text of each stage of a Dockerfile, with its continued lines joined."""
    return re.split(r'^FROM ', (IMAGES / name).read_text().replace('\\\n', ' '), flags=re.M)[1:]


def installed_by(stage):
    """Returns the packages that the stage installs by `apt-get install`."""
    words = re.search(r'apt-get install (.*?)(?:&&|\n)', stage)[1].split()
    return {word for word in words if not word.startswith('-')}


def say(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def packages_of(libraries):
    """Returns Debian's packages of these files, each of which dpkg may know by its name before /usr was merged, and the files that it does not
    know."""
    names = {library: {name.removeprefix(cut) for name in (library, str(pathlib.Path(library).resolve())) for cut in ('', '/usr')} for library in libraries}
    owners = dict(line.rpartition(': ')[::-2] for line in say('dpkg', '--search', *set().union(*names.values())).splitlines())
    return {next((owners[name].partition(':')[0] for name in sorted(each) if name in owners), library) for library, each in names.items()}


def with_dependencies(packages):
    """Returns these packages and the packages on which they depend, as they are installed here."""
    known, left = set(), set(packages)
    while left:
        known |= left
        text = say('dpkg-query', '--show', '--showformat', '${Depends}, ${Pre-Depends}, ', *left)
        left = set(re.findall(r'(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)', text)) - known
    return known


@pytest.mark.parametrize('program', ['muster', 'muster-operator'])
def test_the_worker_s_image_has_the_libraries_of_muster(program):
    """The operator's program needs fewer libraries than muster."""
    libraries = re.findall(r'=> (/\S+)', say('ldd', BUILD / 'bin' / program))
    assert any('libuv' in library for library in libraries)
    there = with_dependencies(installed_by(stages('Dockerfile.worker')[-1]))
    assert packages_of(library for library in libraries if not library.startswith(str(BUILD))) - there == set()


def test_the_operator_s_image_begins_with_nothing():
    *_, last = stages('Dockerfile.operator')
    assert last.startswith('scratch\n') and 'USER 65532:65532\n' in last and 'RUN ' not in last


def test_the_root_file_system_has_the_program_and_a_user(tmp_path):
    """The test takes the program as it is built here, with its shared libraries; the image has a program without any."""
    folder = tmp_path / 'root'
    said = subprocess.run([IMAGES / 'root', BUILD / 'bin/muster-operator', folder], capture_output=True, text=True, check=True).stdout
    assert int(said) > 0 and (folder / 'muster-operator').stat().st_mode & 0o111
    assert (folder / 'etc/passwd').read_text().split(':')[2] == '65532' and (folder / 'tmp').stat().st_mode & 0o7777 == 0o1777
    again = subprocess.run([IMAGES / 'root', BUILD / 'bin/muster-operator', folder], capture_output=True, text=True, check=False)
    assert again.returncode == 73 and 'exists already' in again.stderr
