#!/bin/sh
# Install the system packages that tests use and that are missing, where that is possible: as root
# on Debian or Ubuntu. Says one line when it does something, is silent when nothing is missing, and
# never fails: a test that needs a missing program says so itself.
#
# Usage: sh tests/system_packages.sh

missing=""
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing="prometheus"
command -v victoria-metrics >/dev/null && command -v vmauth >/dev/null ||
    missing="$missing victoria-metrics"
command -v chromium >/dev/null || missing="$missing chromium"

[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "tests that need $missing are skipped; as root: apt-get install $missing" >&2
    exit 0
fi
echo "installing $missing for the tests" >&2

# Packages start their services unless this file says no; ours is removed again, another one stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 0' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
fi

log=$(mktemp)
apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@" >>"$log" 2>&1 </dev/null
}
# The package lists may be absent or out of date: only then are they fetched. What one system lacks
# keeps nobody from installing the rest.
install="install --no-install-recommends"
# shellcheck disable=SC2086 # several words on purpose
apt $install $missing || { apt update && apt $install $missing; } || for one in $missing; do
    apt $install "$one" || {
        tail -n 5 "$log" >&2
        echo "could not install $one; the tests that need it are skipped" >&2
    }
done
rm -f "$log"
exit 0
