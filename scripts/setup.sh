# Sourced by the other scripts: makes the environment in .venv and builds the compiled part, only when needed.
# shellcheck shell=bash
#
# ensure_environment run|dev    "run" installs what the command line needs, "dev" adds the tools of tests and checks.
#
# Two stamps in .venv decide what is left to do. The first covers the list of packages: as long as it holds, no step
# touches the network. The second covers the C sources: when only they change, the extension is rebuilt offline.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv
PY=$VENV/bin/python

fail() {
    echo "gevar: $*" >&2
    exit 1
}

say() {
    echo "gevar: $*" >&2
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

check_machine() {
    HOST_PYTHON=$(find_python) ||
        fail "Python 3.11 or newer is missing ($("${PYTHON:-python3}" --version 2>/dev/null || echo "no ${PYTHON:-python3} found")); install it or set PYTHON=/path/to/python3"
    "$HOST_PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "the venv module of $HOST_PYTHON is missing; install it (Debian: apt install python3-venv)"
    command -v "${CC:-cc}" >/dev/null 2>&1 ||
        fail "a C compiler is missing (${CC:-cc} not found); install one (Debian: apt install gcc) or set CC"
    local include
    include=$("$HOST_PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -f "$include/Python.h" ] ||
        fail "the Python headers are missing (no $include/Python.h); install them (Debian: apt install python3-dev)"
}

# digest PATH…: one number for the environment's Python and the content of these files and folders.
digest() {
    "$PY" - "$@" <<'PY'
import hashlib, pathlib, sys
digest = hashlib.sha256(sys.version.encode())
for name in sys.argv[1:]:
    root = pathlib.Path(name)
    for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
print(digest.hexdigest())
PY
}

# pip_install WHAT ARGUMENT…: one line on failure, the whole story in the log.
pip_install() {
    local what=$1 log=$VENV/setup.log
    shift
    "$PY" -m pip --disable-pip-version-check --timeout 20 --retries 2 install --quiet "$@" >"$log" 2>&1 ||
        fail "$what failed: $(grep -iE 'error' "$log" | tail -n 1 | cut -c1-200) (all of it in $log)"
}

make_environment() {
    local level=$1 packages sources extra=cli
    [ "$level" = dev ] && extra=dev
    if ! "$PY" -c '' 2>/dev/null; then
        say "creating the environment in .venv"
        rm -rf "$VENV"
        "$HOST_PYTHON" -m venv "$VENV" || fail "could not create $VENV"
    fi
    packages=$(digest "$ROOT/pyproject.toml")
    sources=$(digest "$ROOT/native/CMakeLists.txt" "$ROOT/native/include" "$ROOT/native/src" "$ROOT"/acl_shim/*.[ch])
    if [ "$(cat "$VENV/packages.$level" 2>/dev/null)" != "$packages" ]; then
        say "installing packages ($level)"
        pip_install "installing the build tools" "scikit-build-core>=1.0" "cffi>=2.1" "cmake>=3.20" ninja
        pip_install "building gevar" --no-build-isolation --editable "$ROOT[$extra]"
        if [ "$level" = dev ]; then
            # Real weights for tests: only the files of the package are used, so nothing that it needs is installed.
            (pip_install "installing real weights" --no-deps "silero-vad==6.2.3") || say "tests of real weights will be skipped"
            echo "$packages" >"$VENV/packages.run"
        fi
        echo "$packages" >"$VENV/packages.$level"
        echo "$sources" >"$VENV/sources"
    elif [ "$(cat "$VENV/sources" 2>/dev/null)" != "$sources" ]; then
        say "building the compiled part"
        pip_install "building gevar" --no-build-isolation --no-deps --editable "$ROOT"
        echo "$sources" >"$VENV/sources"
    fi
}

ensure_environment() {
    check_machine
    if command -v flock >/dev/null 2>&1; then
        exec 9>"$ROOT/.venv.lock"
        if ! flock --nonblock 9; then
            say "waiting for another script that makes the environment"
            flock --wait 600 9 || fail "another script has held $ROOT/.venv.lock for 10 minutes; see what it does, or end it"
        fi
    fi
    make_environment "$1"
    exec 9>&-
    export PATH=$VENV/bin:$PATH
}
