"""Nothing but the files of the folder is served."""

from pathlib import Path

import pytest
from starlette.exceptions import HTTPException

from coplay.serve.folder import SCRIPTED_POLICY, address_of, file_response, inside, pages_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.html").write_text("secret")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.html").write_text("secret")
    folder = tmp_path / "runs"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "page.html").write_text("<p>")
    (folder / "a" / "code.py").write_text("")
    (folder / "a" / ".hidden.html").write_text("")
    (folder / "a" / "link.html").symlink_to(tmp_path / "secret.html")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "b").symlink_to(folder / "a")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "../secret.html",
        "a/../../secret.html",
        "/etc/hostname",
        "a/link.html",
        "out/a.html",
        "a/.hidden.html",
        "a\\..\\..\\secret.html",
        "a/page.html\0",
        "a/nothing.html",
        "a" * 5000,
    ],
)
def test_no_name_leads_out(root: Path, name: str) -> None:
    with pytest.raises(HTTPException) as refused:
        inside(root, name)
    assert refused.value.status_code == 404


def test_pages_have_no_rights_on_the_server(root: Path) -> None:
    answer = file_response(root, "a/page.html")
    policy = answer.headers["content-security-policy"]
    assert policy == SCRIPTED_POLICY and policy.startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in policy and "connect-src" not in policy
    assert inside(root, "b/page.html").read_text() == "<p>", "links inside of the folder are fine"
    for name in ("a/code.py", "a"):
        with pytest.raises(HTTPException):
            file_response(root, name)


def test_the_pages_of_a_folder_are_listed(root: Path) -> None:
    (root / "a" / "index.html").write_text("")
    (root / "odd #1?.html").write_text("")
    found = pages_of(root, {root / "a"})
    assert [page["name"] for page in found] == ["a/page.html", "odd #1?.html"]
    assert found[1]["address"] == "/run/odd%20%231%3F.html" == address_of("odd #1?.html")
