# Rank 1 is killed by a signal after rank 0 has ended.
. "$(dirname "$0")/order.sh"
after_rank_0
[ "$RANK" = 0 ] || kill -KILL $$
