# Rank 1 fails while rank 0 goes on.
[ "$RANK" = 0 ] && exec sleep 1000
exit 3
