# Rank 0 fails while rank 1 goes on.
[ "$RANK" = 1 ] && exec sleep 100
exit 3
