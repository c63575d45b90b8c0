# Rank 0 ends well, then rank 1 fails: the script of the issue, in a fixed order.
. "$(dirname "$0")/order.sh"
after_rank_0
exit $((RANK * 3))
