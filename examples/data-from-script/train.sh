#!/bin/sh
# Fetches the training data to a local folder, then runs the script on it: train.sh FOLDER [FLAGS OF mnist.py…]
# DATA_SOURCE is the source: a web folder, a git repository (git+URL), a MinIO alias and path (minio:ALIAS/PATH), or a folder.
# Credentials belong into a Secret that the job names in envFrom, never into this file.
set -eu
here=$(dirname "$0")
folder=$1
shift

# Fetches all data or none, and only once: a restarted rank finds the data already there.
if [ ! -e "$folder/.complete" ]; then
    mkdir -p "$folder"
    case ${DATA_SOURCE:?train.sh: set DATA_SOURCE to where the data is} in
    http://* | https://*) python3 "$here/train.py" --only-fetch "$DATA_SOURCE" "$folder" ;;
    git+*) git clone --depth 1 "${DATA_SOURCE#git+}" "$folder" ;;
    minio:*) mc cp --recursive "${DATA_SOURCE#minio:}/" "$folder" ;;
    *) cp "$DATA_SOURCE"/*-ubyte* "$folder" ;;
    esac
    touch "$folder/.complete"
fi

exec python3 "$here/../mnist/mnist.py" --training-data "$folder" "$@"
