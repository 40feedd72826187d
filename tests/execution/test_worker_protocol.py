import subprocess
import sys


def test_answers_stand_alone_whatever_a_library_prints():
    code = (
        "import os\nfrom heedful.execution.worker import answering\nwith answering() as report:\n"
        "    print('a word', flush=True); os.system('echo another'); report({'model': 'α-0'})\n"
        "os.system('echo after')"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == '{"model": "\\u03b1-0"}\nafter\n'
    assert sorted(said.stderr.split("\n")) == ["", "a word", "another"]
