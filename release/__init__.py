"""Release: makes what people install, and tries it as they would.

`python -m release dist` builds the wheel, the sdist, the single-file archive, the bundles and what describes
them into `dist/`. `python -m release smoke` builds them, installs them outside of the project and uses every
bridge. No part of the distribution.
"""
