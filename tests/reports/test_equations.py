import re
import xml.etree.ElementTree as ET

import pytest

from heedful.reports.equations import equations, linked
from heedful.reports.html import assets


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_every_equation_that_is_cited_stands_on_the_page(task):
    cited = set()
    for numbers in re.findall(r'"(Eqs?\.? [^"]*)" \| linked', assets(f"method-{task}.html.j2")):
        cited |= {int(number) for number in re.findall(r"#eq-(\d+)", linked(numbers))}
    there = {number for number, _, _ in equations(task)}
    assert len(cited) >= 6
    assert cited <= there


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_equations_are_well_formed_and_name_a_function_of_ours(task):
    for _, math, where in equations(task):
        assert ET.fromstring(str(math)).tag == "math"
        module, _, name = where.rpartition(".")
        if module.endswith(".Lexicon"):
            module, name = module.removesuffix(".Lexicon"), "Lexicon"
        source = asset_of(module)
        assert re.search(rf"^(def|class) {name}\b", source, re.MULTILINE), where


def asset_of(module):
    from importlib.resources import files

    package, _, name = module.rpartition(".")
    return (files(f"heedful.{package}") / f"{name}.py").read_text(encoding="utf-8")
