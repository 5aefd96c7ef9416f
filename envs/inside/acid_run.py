"""In the sandbox: starts `acid_plain` (a script is compiled at every start, what it imports need not be)."""

import sys

import acid_plain

if __name__ == "__main__":
    sys.exit(acid_plain.main(sys.argv[1:]))
