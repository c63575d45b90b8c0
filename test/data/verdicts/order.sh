# Sourced: after_rank_0 returns at once in rank 0; in another rank when rank 0's process is gone and that can be known.
after_rank_0() {
    if [ "$RANK" = 0 ]; then
        echo $$ >rank0.new && mv rank0.new rank0
        return
    fi
    until [ -s rank0 ]; do sleep 0.02; done
    # A pod made anew may be in a new PID namespace, where that number is somebody else's.
    while [ ! -e gone ] && kill -0 "$(cat rank0)" 2>/dev/null; do sleep 0.02; done
    touch gone
    sleep "${LATE_S:-0.7}"
}
