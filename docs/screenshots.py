"""The pictures of the README and the docs: pages made by commands, taken wide and narrow, light and dark.

    python -m docs.screenshots [--only study] [--runs runs] [--out docs/pictures]

Also the loop (the slider of a study going through training) and the reports that readers of the docs can click, in
docs/live. Needs chromium and chromedriver, and for the audit the weights that examples/finetune_minilm.py names. Runs
that are there already are used as they are.
"""

import argparse
import base64
import io
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from benchmarks.browser import chromium, screen, visit
from PIL import Image
from selenium import webdriver

ROOT = Path(__file__).resolve().parents[1]
HEEDFUL = [sys.executable, "-m", "heedful"]
WIDE, NARROW = (1280, 1360), (390, 844)
COLOURS, FREQUENT = 200, 24  # of a palette, and those of them that cover most
LARGEST = 300_000  # bytes of a picture
LARGEST_LOOP = 1_500_000
FRAMES, FRAME, REST = 30, 130, 1500  # pictures in the loop, milliseconds of each and of the last
STAGE = (1100, 760)  # the window in which the loop is taken
LOOP_WIDTH = 880
LIVE = {"study": "live-study.html", "audit": "live-audit.html"}  # reports that come with the docs


def study(runs: Path) -> Path:
    """Film reviews, as `make demo` studies them."""
    return page_of(runs / "demo", "study", "rotten-tomatoes", "--steps", "300", "--seeds", "2")


def translation(runs: Path) -> Path:
    """Sentences of the toy grammar, read by a Transformer, which learns to translate them well within 1,000 steps."""
    return page_of(runs / "translation", "study", "toy-de-en", "--model", "transformer", "--steps", "1000")


def audit(runs: Path) -> Path:
    """MiniLM, fine-tuned on film reviews."""
    model, out = runs / "minilm" / "model", runs / "audit"
    if not model.exists() and not is_done(out):
        subprocess.run([sys.executable, ROOT / "examples" / "finetune_minilm.py", runs / "minilm"], check=True)
    return page_of(out, "audit", model, "rotten-tomatoes", "--sample", "50", "--integrated-steps", "20")


def paper(runs: Path) -> Path:
    """snell2021, from its stored results."""
    page = runs / "paper.html"
    command("report", ROOT / "results" / "snell2021" / "quick", "--out", page)
    return page


PAGES = {"study": study, "translation": translation, "audit": audit, "paper": paper}


def main() -> None:
    """Make the pages, take the pictures, say where they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PAGES), help="one page; the other pictures stay as they are")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    made = {name: PAGES[name](options.runs) for name in ([options.only] if options.only else PAGES)}
    with chromium() as browser:
        for name, page in made.items():
            for width, size in (("wide", WIDE), ("narrow", NARROW)):
                for scheme in ("light", "dark"):
                    still_screen(browser, *size, scheme)
                    visit(browser, page)
                    time.sleep(0.5)
                    place = options.out / f"{name}-{width}-{scheme}.png"
                    place.write_bytes(taken(browser))
                    print(place, place.stat().st_size)
            if name in LIVE:
                live = options.out.parent / "live" / LIVE[name]
                live.parent.mkdir(exist_ok=True)
                print(shutil.copyfile(page, live), live.stat().st_size)
            if name == "study":
                place = options.out / "loop.gif"
                place.write_bytes(loop(browser, page))
                print(place, place.stat().st_size)


def loop(browser: webdriver.Chrome, page: Path) -> bytes:
    """The first screen of a study while its slider goes from the first step to the last, as an animated GIF."""
    still_screen(browser, *STAGE, "light")
    visit(browser, page)
    frames = []
    for i in range(FRAMES):
        browser.execute_async_script(MOVE, i / (FRAMES - 1))
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        picture = Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB")
        frames.append(
            picture.resize((LOOP_WIDTH, round(picture.height * LOOP_WIDTH / picture.width)), Image.Resampling.LANCZOS)
        )
    chosen = frames[:: FRAMES // 3]  # colours of the whole way
    stacked = Image.new("RGB", (LOOP_WIDTH, sum(frame.height for frame in chosen)))
    for i, frame in enumerate(chosen):
        stacked.paste(frame, (0, i * frame.height))
    palette = _palette(stacked)
    drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    made = io.BytesIO()
    times = [REST // 2, *[FRAME] * (FRAMES - 2), REST]
    drawn[0].save(made, "GIF", save_all=True, append_images=drawn[1:], duration=times, loop=0, optimize=True)
    if made.tell() > LARGEST_LOOP:
        raise ValueError(f"the loop has {made.tell():,} bytes; {LARGEST_LOOP:,} are allowed")
    return made.getvalue()


def still_screen(browser: webdriver.Chrome, width: int, height: int, scheme: str) -> None:
    """A screen on which a study does not play by itself, but shows its last step."""
    screen(browser, width, height, scheme)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _palette(picture: Image.Image) -> Image.Image:
    """A palette that has a colour near each one of a picture, however few pixels it covers.

    Palettes made from pixels are mostly shades of paper, on which shaded words and dots look dull. Here the most
    frequent colours come first, and every next one is the one furthest from those that are there already.
    """
    counted = picture.getcolors(picture.width * picture.height) or []
    colours = np.array([colour for _, colour in sorted(counted, reverse=True)], dtype=np.int32)
    chosen: list[int] = []
    apart = np.full(len(colours), np.inf)
    for k in range(min(COLOURS, len(colours))):
        chosen.append(k if k < FREQUENT else int(apart.argmax()))
        apart = np.minimum(apart, ((colours - colours[chosen[-1]]) ** 2).sum(axis=1))
    made = Image.new("P", (1, 1))
    made.putpalette([int(channel) for colour in colours[chosen] for channel in colour])
    return made


# Put the slider at a share of its way, and wait until the page has drawn it.
MOVE = """
const [share, done] = arguments;
const slider = document.getElementById("step");
slider.value = share * slider.max;
slider.dispatchEvent(new Event("input", { bubbles: true }));
requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60)));
"""


def taken(browser: webdriver.Chrome) -> bytes:
    """What the browser shows, in few colours, small enough for a README."""
    shot = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    small = io.BytesIO()
    picture.quantize(palette=_palette(picture), dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    if small.tell() > LARGEST:
        raise ValueError(f"a picture has {small.tell():,} bytes; {LARGEST:,} are allowed")
    return small.getvalue()


def command(verb: str, *arguments: str | Path) -> None:
    """Run heedful, which goes on from whatever its folder holds."""
    subprocess.run([*HEEDFUL, verb, *map(str, arguments)], check=True)


def is_done(run: Path) -> bool:
    """Whether a run came to its end."""
    return (run / "result.json").exists()


def page_of(run: Path, verb: str, *arguments: str | Path) -> Path:
    """The page of the run that a command makes, written anew where the run is there already."""
    if is_done(run):
        command("report", run)
    else:
        command(verb, *arguments, "--out", run)
    return run / "report.html"


if __name__ == "__main__":
    main()
