"""Pictures of text that the OCR tests read: twenty, of different fonts, sizes, colours and angles.

The same fonts and Pillow version draw the same pixels, since the basic layout engine places the
glyphs."""
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FONTS = Path(__file__).resolve().parents[2] / "assets/fonts"
INK, PAPER = (20, 20, 24), (250, 249, 245)


def page(size, lines, ink=INK, paper=PAPER, angle=0.0):
    """A picture of `size` with lines of (font, pixels, x, y, text), turned by `angle` degrees."""
    picture = Image.new("RGB", size, paper)
    draw = ImageDraw.Draw(picture)
    for font, pixels, x, y, text in lines:
        face = ImageFont.truetype(
            str(FONTS / f"{font}.ttf"), pixels, layout_engine=ImageFont.Layout.BASIC
        )
        draw.text((x, y), text, font=face, fill=ink)
    return picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=paper) if angle else picture


def column(font, pixels, texts, x=24, y=20, leading=1.7):
    """Lines of one font below each other."""
    return [(font, pixels, x, y + round(i * pixels * leading), text) for i, text in enumerate(texts)]


def receipt():
    rows = [("Coffee beans", "12.40"), ("Oat milk", "2.95"), ("Bread", "4.10"), ("TOTAL", "19.45")]
    lines = []
    for i, (item, price) in enumerate(rows):
        lines.append(("SourceSansPro-Regular", 26, 28, 24 + 46 * i, item))
        lines.append(("SourceSansPro-Semibold", 26, 270, 24 + 46 * i, price))
    return page((384, 224), lines)


def pictures():
    """Yields (name, picture)."""
    yield "hello", page((320, 96), column("Lato-Regular", 40, ["Hello world"]))
    yield "heading", page((480, 128), column("FjallaOne-Regular", 56, ["Announcement"]))
    yield "serif", page(
        (480, 160),
        column("SourceSerifPro-Regular", 28, ["The quick brown fox", "jumps over the lazy dog"]),
    )
    yield "italic", page((416, 96), column("SourceSerifPro-It", 34, ["written in italics"]))
    yield "receipt", receipt()
    yield "light", page(
        (448, 160), column("Lato-Light", 30, ["Nothing compiles", "while a request waits"])
    )
    yield "bold", page((384, 160), column("Caladea-Bold", 36, ["Departures", "Platform 9"]))
    yield "dark", page(
        (448, 160),
        column("Manrope-Medium", 30, ["bright letters", "on a dark ground"]),
        ink=(240, 240, 235),
        paper=(28, 32, 44),
    )
    yield "colour", page(
        (416, 128),
        column("FredokaOne-Regular", 44, ["Summer Sale"]),
        ink=(176, 32, 60),
        paper=(252, 236, 180),
    )
    yield "turned", page(
        (448, 224),
        column("Lato-Bold", 34, ["Slightly turned", "to the left"], x=60, y=60),
        angle=6.0,
    )
    yield "turned-back", page(
        (448, 224),
        column("SourceSansPro-Regular", 34, ["and this one", "to the right"], x=80, y=60),
        angle=-8.0,
    )
    yield "numbers", page(
        (416, 192),
        column("SourceSansPro-Semibold", 32, ["3.14159265", "2026-11-30", "+49 30 901820"]),
    )
    yield "address", page(
        (448, 224),
        column("Caladea-Regular", 32, ["Ada Byron", "12 St James Square", "London"]),
    )
    yield "small", page(
        (352, 128),
        column("SourceSansPro-Regular", 18, ["small print is read too", "even when nobody does"]),
    )
    yield "large", page((576, 192), column("Manrope-Medium", 96, ["Large"], y=30))
    yield "columns", page(
        (512, 192),
        column("Lato-Regular", 26, ["January", "February", "March"], x=24)
        + column("Lato-Regular", 26, ["31 days", "28 days", "31 days"], x=300),
    )
    yield "mixed", page(
        (512, 256),
        [
            ("FjallaOne-Regular", 48, 24, 20, "Notice"),
            ("SourceSerifPro-Regular", 26, 24, 110, "The library closes early"),
            ("Caladea-Italic", 26, 24, 160, "on Friday afternoons"),
        ],
    )
    yield "email", page(
        (480, 96), column("SourceSansPro-Regular", 30, ["hello@example.com"])
    )
    yield "faint", page(
        (448, 112),
        column("Lato-Regular", 32, ["low contrast text"]),
        ink=(140, 140, 140),
        paper=(225, 225, 225),
    )
    yield "paragraph", page(
        (640, 320),
        column(
            "SourceSerifPro-Regular",
            24,
            [
                "A model file becomes kernels for several",
                "graphics cards, and a crate with types that",
                "an application links like any other crate.",
                "At run time there is the driver, the weights",
                "and nothing else to install.",
            ],
        ),
    )
