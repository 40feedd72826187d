import subprocess
import sys


def test_answers_stand_alone_whatever_a_library_prints():
    code = (
        "import os; from heedful.studies.answers import answering; report = answering(); "
        "print('a word'); os.system('echo another'); report({'model': 'α-0'})"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == '{"model": "\\u03b1-0"}\n'
    assert sorted(said.stderr.split("\n")) == ["", "a word", "another"]
