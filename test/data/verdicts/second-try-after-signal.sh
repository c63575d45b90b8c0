# Rank 1 is killed by a signal the first time it runs.
[ "$RANK" = 0 ] && { until [ -e passed ]; do sleep 0.02; done; exit 0; }
[ -e tried ] && { echo >passed; exit 0; }
echo >tried
kill -KILL $$
