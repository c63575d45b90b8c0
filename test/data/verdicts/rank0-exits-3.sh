# Rank 0 fails while rank 1 goes on.
[ "$RANK" = 1 ] && exec sleep 1000
exit 3
