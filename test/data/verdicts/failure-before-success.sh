# Rank 1 has failed before rank 0, which does not know, ends well.
[ "$RANK" = 1 ] && exit 3
sleep "${LATE_S:-0.7}" "${LATE_S:-0.7}"
