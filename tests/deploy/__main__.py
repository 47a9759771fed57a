"""`make manifests`: write the chart, Kustomize's folders and the dashboard anew."""

import shutil

from bayplan.deploy.artifacts import CHART, KUSTOMIZE, render_files
from tests.deploy.manifests import DEPLOY
from tests.deploy.pages import PAGE, page

for folder in (CHART, f"{KUSTOMIZE}/base", f"{KUSTOMIZE}/components"):
    shutil.rmtree(DEPLOY / folder, ignore_errors=True)
for name, text in render_files().items():
    path = DEPLOY / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
PAGE.write_text(page())
