"""Rank 1 raises after rank 0 has ended well."""
import os
import time

if os.environ['RANK'] == '0':
    with open('rank0.new', 'w') as file:
        file.write(str(os.getpid()))
    os.rename('rank0.new', 'rank0')
    raise SystemExit
while not os.path.exists('rank0'):
    time.sleep(0.02)
while os.path.exists('/proc/' + open('rank0').read()):
    time.sleep(0.02)
time.sleep(float(os.environ.get('LATE_S', 0.7)))
raise RuntimeError('the last batch is damaged')
