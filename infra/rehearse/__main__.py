"""`python -m infra.rehearse`: what `make rehearse` runs."""

import sys

from infra.rehearse.rehearsal import main

sys.exit(main())
