#!/bin/sh
# Makes the base image of all sandboxes from Debian packages, where no image registry answers.
# usage: make_base_image.sh [NAME] [SUITE]      needs root, debootstrap and a Docker engine
# The mirror is the one this machine's apt uses (or MIRROR=...); it is not kept in the image.
set -eu
NAME=${1:-acidtest-base:bookworm}
SUITE=${2:-bookworm}
PACKAGES=python3,python3-venv,python3-pip,python3-pytest,python-is-python3,git,patch,procps,ca-certificates
if [ -z "${MIRROR:-}" ]; then
    MIRROR=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' | head -n 1)
fi
[ -n "$MIRROR" ] || { echo "no Debian mirror in this machine's apt sources; set MIRROR" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "debootstrap is not installed (apt-get install debootstrap)" >&2; exit 2; }
ROOT=$(mktemp -d)
trap 'rm -rf "$ROOT"' EXIT INT TERM
debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$ROOT" "$MIRROR" >"$ROOT.log" 2>&1 || {
    tail -n 20 "$ROOT.log" >&2; exit 1; }
rm -rf "$ROOT.log" "$ROOT"/var/cache/apt/archives/*.deb "$ROOT"/var/lib/apt/lists/* "$ROOT"/etc/apt/sources.list* \
    "$ROOT"/etc/hostname "$ROOT"/etc/resolv.conf "$ROOT"/var/log/* "$ROOT"/debootstrap
tar -C "$ROOT" --numeric-owner -c . | docker import -c 'ENV LANG=C.UTF-8' - "$NAME"
