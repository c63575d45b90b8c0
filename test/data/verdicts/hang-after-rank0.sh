# Rank 1 never ends, after rank 0 has.
. "$(dirname "$0")/order.sh"
after_rank_0
[ "$RANK" = 0 ] || exec sleep 1000
