# Rank 1 fails; later rank 0, which does not know that, ends well.
[ "$RANK" = 1 ] && exit 3
sleep "${LATE_S:-0.7}" "${LATE_S:-0.7}"
