# To be sourced. after_rank_0 returns at once in rank 0; in another rank it returns when rank 0's process has ended, and muster can know that.
after_rank_0() {
    if [ "$RANK" = 0 ]; then
        echo $$ >rank0.new && mv rank0.new rank0
        return
    fi
    until [ -s rank0 ]; do sleep 0.02; done
    # A pod that was created again may be in a new PID namespace, where this number belongs to another process.
    while [ ! -e gone ] && kill -0 "$(cat rank0)" 2>/dev/null; do sleep 0.02; done
    touch gone
    sleep "${LATE_S:-0.7}"
}
