"""Release: makes what people install, and tries it as they would.

`python -m release dist` builds the wheel, the sdist, the single-file archive, the bundles and their descriptions
into `dist/`. `python -m release smoke` builds them, installs them outside of the project and uses every bridge.
No part of the distribution.
"""
