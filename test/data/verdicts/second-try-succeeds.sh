# Rank 1 fails the first time it runs, with a code that says "do not try again".
[ "$RANK" = 0 ] && { until [ -e passed ]; do sleep 0.02; done; exit 0; }
[ -e tried ] && { echo >passed; exit 0; }
echo >tried
exit 1
