# The text that a rank prints does not decide the verdict.
echo 'Traceback (most recent call last): RuntimeError' >&2
exit 0
