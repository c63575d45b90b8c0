# Rank 1 works on after rank 0 has ended, and ends well: nothing may end it before.
. "$(dirname "$0")/order.sh"
after_rank_0
[ "$RANK" = 0 ] || echo "worked to the end"
