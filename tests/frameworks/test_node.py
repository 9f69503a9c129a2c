"""Node's clients and what is built on them: `node/jobs.mjs`, whose packages `npm install` fetched."""
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent / "node"
PACKAGES = pathlib.Path(os.environ.get("NODE_PACKAGES", HERE / "node_modules"))


@pytest.mark.skipif(not PACKAGES.is_dir(), reason="no node_modules: `cargo xtask test` installs them where npm is")
@pytest.mark.parametrize("job", ["ioredis", "node-redis", "bullmq", "socket.io", "connect-redis"])
def test_job(port, job):
    subprocess.run(["node", "jobs.mjs", str(port), job], cwd=HERE, check=True, timeout=90)
