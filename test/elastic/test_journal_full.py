"""A full disk under the coordinator's journal: training goes on while it can, and nothing is lost."""
import resource
import signal
import subprocess

from job import Job
from program import BUILD, wait_for
from test_faults import check_ends, quiet_run


class OnASmallDisk(Job):
    """The coordinator's files grow to 4 KiB and no further, until there is room."""

    def start_coordinator(self):
        with open(self.folder / 'coordinator', 'ab') as output:
            self.coordinator = subprocess.Popen(
                ['sh', '-c', 'trap "" XFSZ; ulimit -S -f 8; exec "$0" "$@"', str(BUILD / 'bin' / 'muster'), 'coordinator', '--listen',
                 self.address, '--journal', str(self.folder / 'journal'), *self.options], stdout=output, stderr=subprocess.STDOUT,
                env=self.environment)

    def make_room(self):
        resource.prlimit(self.coordinator.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_a_full_disk_under_the_journal(tmp_path):
    """Workers train what they hold, which is said; one that dies then is waited for until there is room, and no record is lost."""
    model = quiet_run(tmp_path / 'quiet', epochs=60)
    with OnASmallDisk(tmp_path, first_size=2, epochs=60) as job:
        survivor, victim = job.add_worker(), job.add_worker()
        wait_for(lambda: 'workers train on' in job.log(), 'the coordinator says that the disk is full')
        job.wait_for_version(job.version() + 2)
        victim.send(signal.SIGKILL)
        victim.process.wait()
        assert survivor.size == 2 and survivor.alive()
        job.make_room()
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert survivor.size == 1 and 'can be written again' in job.log()
