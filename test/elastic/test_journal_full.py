"""A full disk under the coordinator's journal: training goes on while it can, and nothing is lost."""
import errno
import pathlib
import resource
import shutil
import signal
import subprocess

import pytest

from job import Job
from program import BUILD, wait_for
from test_faults import check_ends, quiet_run


class OnASmallDisk(Job):
    """A job whose coordinator's files cannot grow beyond 4 KiB until make_room() is called."""

    def start_coordinator(self):
        with open(self.folder / 'coordinator', 'ab') as output:
            self.coordinator = subprocess.Popen(
                ['sh', '-c', 'trap "" XFSZ; ulimit -S -f 8; exec "$0" "$@"', str(BUILD / 'bin' / 'muster'), 'coordinator', '--listen',
                 self.address, '--journal', str(self.folder / 'journal'), *self.options], stdout=output, stderr=subprocess.STDOUT,
                env=self.environment)

    def make_room(self):
        resource.prlimit(self.coordinator.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_a_full_disk_under_the_journal(tmp_path):
    """Workers train the records that they hold, and the coordinator reports it. A worker that dies then is waited for until there is room, and
    no record is lost."""
    model = quiet_run(tmp_path / 'quiet', epochs=60)
    with OnASmallDisk(tmp_path, first_size=2, epochs=60) as job:
        survivor, victim = job.add_worker(), job.add_worker()
        wait_for(lambda: 'workers train on' in job.log(), 'the coordinator says that the disk is full')
        job.wait_for_version(job.version() + 2)
        victim.kill()
        assert survivor.size == 2 and survivor.alive()
        job.make_room()
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert survivor.size == 1 and 'can be written again' in job.log()


def mounts():
    """Whether this process may mount a file system, in its own namespace."""
    done = subprocess.run(['unshare', '--mount', 'mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', '/tmp'], capture_output=True,
                          text=True, check=False)
    return done.returncode == 0


class OnATmpfs(Job):
    """A job whose journal's folder is a file system of 1 MiB, which other files fill up. Only the coordinator sees it."""

    def start_coordinator(self):
        journal = self.folder / 'journal'
        journal.mkdir(exist_ok=True)
        script = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'
        with open(self.folder / 'coordinator', 'ab') as output:
            self.coordinator = subprocess.Popen(
                ['unshare', '--mount', 'sh', '-c', script, 'sh', str(journal), str(BUILD / 'bin' / 'muster'), 'coordinator', '--listen',
                 self.address, '--journal', str(journal), *self.options], stdout=output, stderr=subprocess.STDOUT, env=self.environment)

    def inside(self):
        """Returns the path by which this process reaches the journal's folder as the coordinator sees it."""
        return pathlib.Path(f'/proc/{self.coordinator.pid}/root{self.folder}/journal')

    def fill(self):
        with pytest.raises(OSError) as failure, open(self.inside() / 'ballast', 'wb', buffering=0) as file:
            while True:
                file.write(bytes(512))
        assert failure.value.errno == errno.ENOSPC


@pytest.mark.skipif(not mounts(), reason='this needs the right to mount (root)')
def test_a_file_system_without_space(tmp_path):
    """Steps go on while no worker joins or leaves; a worker that joins waits, and the coordinator's log says why. When there is space again the
    worker trains."""
    model = quiet_run(tmp_path / 'quiet', epochs=200)
    with OnATmpfs(tmp_path, first_size=2, epochs=200, sleep_ms=5) as job:
        workers = [job.add_worker(), job.add_worker()]
        job.wait_for_version(3)
        job.fill()
        wait_for(lambda: 'workers train on' in job.log(), 'the coordinator says that the disk is full')
        assert 'free some space' in job.log()
        job.wait_for_version(job.version() + 10)
        late = job.add_worker()
        before = job.version()
        job.wait_for_version(before + 10)
        assert late.version == 0 and all(worker.alive() for worker in workers)
        (job.inside() / 'ballast').unlink()
        wait_for(lambda: late.version > 0 or not late.alive(), 'who came late trains')
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert 'can be written again' in job.log()


@pytest.mark.parametrize('lose', [shutil.rmtree, lambda folder: folder.rename(folder.with_name('elsewhere'))], ids=['deleted', 'moved'])
def test_a_journal_that_is_lost_is_written_again(tmp_path, lose):
    """What is in the folder may be deleted by a cleaner of temporary files. The coordinator writes all that it has again, so that one that is
    started after it continues the job."""
    model = quiet_run(tmp_path / 'quiet', epochs=60)
    with Job(tmp_path, first_size=2, epochs=60, sleep_ms=5) as job:
        workers = [job.add_worker(), job.add_worker()]
        job.wait_for_version(3)
        lose(tmp_path / 'journal')
        wait_for(lambda: 'were deleted or moved while they were in use; they were written again' in job.log(), 'the journal is written again')
        job.wait_for_version(job.version() + 3)
        job.kill_coordinator()
        workers[0].kill()
        job.start_coordinator()
        assert job.wait_for_end() == 0
        check_ends(job, model)
