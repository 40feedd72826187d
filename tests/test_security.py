"""What SECURITY.md promises."""

import ast
import io
import json
import tarfile
from pathlib import Path

import pytest

from heedful.api import run_name
from heedful.data.catalog import check
from heedful.data.corpora.eraser import read_marked
from heedful.errors import DataError
from tests.faults.horrors import bomb

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "os.system", "os.popen", "torch.load", "torch.jit.load"}


def suspicious(source: str) -> list[str]:
    """Imports and calls that could run what they are given."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in FORBIDDEN_MODULES:
            found.append(node.module)
        elif isinstance(node, ast.Call):
            found += _call(node)
    return found


def _call(node: ast.Call) -> list[str]:
    name = ast.unparse(node.func)
    last = name.rpartition(".")[2]
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    bad = []
    nothing = name == "exec" and ast.unparse(node) == "exec('')"  # runs nothing: `heedful.__main__` says why
    if (name in FORBIDDEN_CALLS and not nothing) or last in ("extractall", "read_pickle"):
        bad.append(name)
    if last == "load" and name.startswith(("np.", "numpy.")) and options.get("allow_pickle") != "False":
        bad.append(f"{name} without allow_pickle=False")
    if options.get("allow_pickle") == "True" or options.get("trust_remote_code") == "True":
        bad.append(f"{name} that trusts what it reads")
    if options.get("shell") == "True":
        bad.append(f"{name} through a shell")
    return bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_nothing_that_is_read_is_run(path):
    assert suspicious(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import torch\ntorch.load('x')",
        "np.load('x')",
        "np.load('x', allow_pickle=True)",
        "eval('1')",
        "exec('1')",
        "exec('', given)",
        "archive.extractall('.')",
        "AutoModel.from_pretrained('x', trust_remote_code=True)",
        "subprocess.run('ls', shell=True)",
    ],
)
def test_what_could_run_is_seen(source):
    assert suspicious(source)


def test_code_that_comes_with_a_model_is_not_trusted_unless_asked():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                named = [*node.args.args, *node.args.kwonlyargs]
                defaults = [*node.args.defaults, *node.args.kw_defaults]
                for argument, default in zip(reversed(named), reversed(defaults), strict=False):
                    if argument.arg == "trust_remote_code" and default is not None:
                        assert "True" not in ast.unparse(default), path


@pytest.mark.parametrize(
    "name", ["../../etc", "/", "..", "a/../..", "~/x", "a\0b", "C:\\x", ".hidden", "x" * 999, "", " "]
)
def test_names_stay_in_the_folder(name):
    made = run_name(name)
    assert made
    assert len(made) <= 100
    assert not set(made) & set("/\\\0")
    assert not made.startswith(".")


def archive(path: Path, members: dict[str, bytes | None]) -> None:
    """A tar file; a member without content is a link to /etc/passwd."""
    with tarfile.open(path, "w:gz") as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
                file.addfile(member)
            else:
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))


def test_archives_are_read_and_never_unpacked(tmp_path):
    folder = tmp_path / "inside" / "eraser"
    folder.mkdir(parents=True)
    archive(folder / "docs.tar.gz", {"../../escaped": b"a dull film", "/tmp/one": b"a good film", "link": None})
    rows = [{"annotation_id": name, "classification": "NEG", "evidences": []} for name in ("escaped", "one")]
    (folder / "val.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_marked(folder, "val").texts == ("a dull film", "a good film")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["docs.tar.gz", "eraser", "inside", "val.jsonl"]
    (folder / "val.jsonl").write_text(json.dumps(rows[0] | {"annotation_id": "link"}))
    with pytest.raises(DataError, match="no document 'link'"):
        read_marked(folder, "val")


def test_an_archive_that_is_damaged_or_a_bomb(tmp_path):
    (tmp_path / "val.jsonl").write_text("{}")
    (tmp_path / "docs.tar.gz").write_bytes(b"\x1f\x8brubbish")
    with pytest.raises(DataError, match=r"docs\.tar\.gz: cannot be read"):
        read_marked(tmp_path, "val")
    archive(tmp_path / "docs.tar.gz", {"one": bytes(1 << 25)})
    with pytest.raises(DataError, match="as no text does"):
        read_marked(tmp_path, "val")
    assert len(bomb(1 << 22)) < 1 << 16


def test_pages_of_words_are_made_by_a_template_that_escapes():
    from heedful.reports import html as template

    assert "autoescape=True" in Path(template.__file__).read_text("utf-8")
    for path in (ROOT / "src" / "heedful" / "reports" / "templates").rglob("*"):
        if path.is_file() and path.suffix in {".html", ".js"}:
            text = path.read_text("utf-8")
            assert "eval(" not in text, path
            assert 'src="http' not in text, path


@pytest.mark.parametrize(
    "listed", ["", "# nothing\n", "0" * 64 + "  ../../etc/passwd\n", "0" * 64 + "  /etc/passwd\n", "x"]
)
def test_a_list_of_checksums_that_vouches_for_nothing(tmp_path, monkeypatch, listed):
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "SHA256SUMS").write_text(listed)
    with pytest.raises(DataError, match="SHA256SUMS"):
        check("sst")
