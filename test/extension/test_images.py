# SPDX-License-Identifier: GPL-2.0-only
"""An image says what it has, and that is what its kernel has; what an extension must bring, and
what happens when it does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from topology.extended import IMAGE, SHIPPED
from topology.side import BUILD, GUISE

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "guise"


def guise(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(GUISE), *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def said(image: Path) -> dict[str, set[str]]:
    """What guise reads in the image."""
    text = guise("--version", GUISE_KERNEL=str(image)).stdout
    lines = dict(re.findall(r"^(congestion control|MPTCP scheduler): (.*)$", text, re.MULTILINE))
    return {name: set(words.split(", ")) for name, words in lines.items()}


@pytest.mark.parametrize("image", [BUILD / "guise-kernel", IMAGE], ids=["plain", "extended"])
def test_an_image_has_what_it_says(image: Path) -> None:
    files = {
        "congestion control": "/proc/sys/net/ipv4/tcp_available_congestion_control",
        "MPTCP scheduler": "/proc/sys/net/mptcp/available_schedulers",
    }
    has = {}
    for what, path in files.items():
        done = guise("run", "--link", "none", "--", "cat", path, GUISE_KERNEL=str(image))
        assert done.returncode == 0, done.stderr
        has[what] = set(done.stdout.split())
    if "GUISE_KERNEL" not in os.environ:
        assert has == said(image)


def test_the_manual_names_the_congestion_controls_of_the_image() -> None:
    manual = (ROOT / "docs/guise.1").read_text("utf-8").replace("\\-", "-")
    entry = re.search(r'^\.BI --cc " NAME"\n(.*?)^\.TP', manual, re.MULTILINE | re.DOTALL)
    assert entry
    listed = set(re.findall(r"[a-z]+", entry[1].split(":", 1)[1].split(".", 1)[0]))
    names = said(BUILD / "guise-kernel")["congestion control"]
    assert listed - {"the", "default", "or"} == names


@pytest.mark.parametrize("extension", SHIPPED)
def test_an_extension_is_found_by_its_name(extension: str) -> None:
    words = ["--extension", extension, "--link", "none", "--", "cat"]
    done = guise("run", *words, "/proc/sys/net/ipv4/tcp_available_congestion_control")
    assert done.returncode == 0, done.stderr
    assert {"lia", "template"} <= set(done.stdout.split())


def test_a_congestion_control_of_an_extension_is_used() -> None:
    path = "/proc/sys/net/ipv4/tcp_congestion_control"
    for name in "lia", "template":
        words = ["--extension", name, "--cc", name, "--link", "none", "--", "cat", path]
        assert guise("run", *words).stdout == f"{name}\n"


def test_a_config_names_extensions(tmp_path: Path) -> None:
    config = tmp_path / "ext.toml"
    config.write_text('name = "ext"\nextension = ["lowrtt", "lia"]\n[[link]]\nkind = "none"\n')
    done = guise("up", "--print-plan", str(config))
    assert f"\nkernel {IMAGE.name}\n" in done.stdout, done.stderr
    config.write_text('name = "ext"\nextension = ["pigeon"]\n')
    done = guise("up", "--print-plan", str(config))
    assert done.returncode == 2
    assert f"{config}:2" in done.stderr and "pigeon" in done.stderr


def test_what_an_image_lacks_is_said_and_leaves_nothing_behind(tmp_path: Path) -> None:
    run = {"GUISE_RUNDIR": str(tmp_path / "run")}
    base = {**run, "GUISE_KERNEL": str(BUILD / "guise-kernel")}
    words = ["--link", "none", "--", "true"]
    for env, flags, parts in (
        (run, ["--extension", "pigeon"], ["no kernel image", "pigeon", 'make EXTENSIONS="pigeon"']),
        (base, ["--extension", "lia"], ["no extension lia", "$GUISE_KERNEL"]),
        (run, ["--cc", "lia"], ["unknown congestion control", "--extension lia"]),
        (run, ["--sysctl", "net.mptcp.scheduler=redundant"], ["--extension redundant"]),
        (run, ["--cc", "quantum"], ["valid are cubic"]),
    ):
        done = guise("run", *flags, *words, **env)
        assert done.returncode == 2, done.stderr
        for part in parts:
            assert part in done.stderr
    assert not (tmp_path / "run").exists()


# ---- building ----------------------------------------------------------------------------------


class Checkout:
    """A copy of what images are built from."""

    def __init__(self, folder: Path) -> None:
        self.root, self.build, self.cache = folder / "guise", folder / "build", folder / "cache"
        for name in ("linux", "include", "extensions"):
            shutil.copytree(ROOT / name, self.root / name, symlinks=True)
        shutil.copy(ROOT / "versions.env", self.root)
        (self.cache / "guise").mkdir(parents=True)
        for name in ("source", "source.lock", "ccache"):
            (self.cache / "guise" / name).symlink_to(CACHE / name)

    def make(self, extensions: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "linux/build.sh", self.build],
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache), "EXTENSIONS": extensions},
            capture_output=True,
            text=True,
            check=False,
        )

    def images(self) -> list[Path]:
        return list(self.build.glob("guise-kernel*")) + list(
            (self.cache / "guise").glob("kernel/*")
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    checkout = Checkout(tmp_path)
    yield checkout
    shutil.rmtree(tmp_path)  # hundreds of megabytes


def test_what_is_no_extension_is_refused(checkout: Checkout) -> None:
    (checkout.root / "extensions/bare").mkdir()
    for name, parts in {
        "pigeon": ['no extension "pigeon"', "lia, lowrtt"],
        "../lia": ["cannot be the name"],
        "bare": ["extensions/bare has no file Kconfig"],
    }.items():
        done = checkout.make(name)
        assert done.returncode == 1
        for part in parts:
            assert part in done.stderr
    assert not checkout.images()


def test_an_extension_for_another_series_is_refused(checkout: Checkout) -> None:
    config = checkout.root / "extensions/lia/config"
    config.write_text(f"# Linux 5.10 6.6\n{config.read_text('utf-8')}", "utf-8")
    done = checkout.make("lia")
    assert done.returncode == 1
    assert "lia is for Linux 5.10 6.6, and " in done.stderr
    assert not checkout.images()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_compilers_own_error_is_shown_and_nothing_half_built(checkout: Checkout) -> None:
    bad = checkout.root / "extensions/template"
    text = (bad / "template.c").read_text("utf-8")
    (bad / "template.c").write_text(
        text.replace("tcp_slow_start(tp, acked)", "no_such(tp)"), "utf-8"
    )
    done = checkout.make("template")
    assert done.returncode == 1
    assert re.search(r"extensions/template/template\.c:\d+:\d+: error: .*no_such", done.stderr)
    assert not checkout.images()
    (bad / "template.c").write_text(text, "utf-8")
    (bad / "config").write_text("CONFIG_GUISE_TEMPLATE=y\nCONFIG_GUISE_PIGEON=y\n", "utf-8")
    done = checkout.make("template")
    assert done.returncode == 1
    assert "did not accept" in done.stderr and "CONFIG_GUISE_PIGEON=y" in done.stderr
    assert not checkout.images()
