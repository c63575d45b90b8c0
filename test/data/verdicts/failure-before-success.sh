# Rank 1 has failed before rank 0, which does not know, ends well.
[ "$RANK" = 1 ] && exit 3
sleep 1.5
