# What it prints is no verdict.
echo 'Traceback (most recent call last): RuntimeError' >&2
exit 0
