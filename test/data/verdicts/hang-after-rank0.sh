# Rank 0 ends, but rank 1 never does.
. "$(dirname "$0")/order.sh"
after_rank_0
[ "$RANK" = 0 ] || exec sleep 1000
