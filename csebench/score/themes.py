"""Colours of figures that are readable in light and in dark themes.

A figure is drawn on a white ground. Its SVG has a style sheet that replaces every colour, the
ground too, if the reader's theme is dark. Pixels cannot be replaced, so clouds of points have
colours that stand out from both grounds.
"""

import re

GROUND = "#ffffff"
INK = "#1f2328"  # of text
GREY = "#59636e"  # of axes and remarks
BAND = "#eff2f5"  # of areas behind marks and texts
GROUND_IN_THE_DARK = "#0d1117"
BAND_IN_THE_DARK = "#1c2128"
NEUTRAL_IN_THE_DARK = {
    GROUND: GROUND_IN_THE_DARK,
    INK: "#e6edf3",
    GREY: "#9198a1",
    BAND: BAND_IN_THE_DARK,
}
TEXT_CONTRAST = 4.5  # WCAG 2, level AA
MARK_CONTRAST = 3.0
MIX_STEPS = 50  # between a colour and black or white
COLOUR_IN_STYLE = re.compile(r"(?:fill|stroke): (#[0-9a-f]{6})")
END_OF_STYLE_SHEET = "</style>"


def channels(colour: str) -> list[int]:
    """Read red, green and blue of a colour such as `#59636e`, from 0 to 255."""
    return list(bytes.fromhex(colour[1:]))


def luminance(colour: str) -> float:
    """Compute the relative luminance of a colour, from 0 to 1 (WCAG 2)."""
    linear = []
    for value in channels(colour):
        channel = value / 255
        if channel <= 0.04045:
            linear.append(channel / 12.92)
        else:
            linear.append(((channel + 0.055) / 1.055) ** 2.4)
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other: str) -> float:
    """Compute the contrast of two colours, from 1 to 21 (WCAG 2)."""
    darker, lighter = sorted([luminance(colour), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """Mix two colours.

    Args:
        share: of the other colour, from 0 to 1.
    """
    mixture = []
    for first, second in zip(channels(colour), channels(other), strict=True):
        mixture.append(round(first + share * (second - first)))
    return f"#{bytes(mixture).hex()}"


def with_contrast(colour: str, target: str, ground: str, least: float) -> str:
    """Move a colour towards a target, black or white, until it stands out from a ground."""
    colour = colour.lower()
    for step in range(MIX_STEPS + 1):
        candidate = mixed(colour, target, step / MIX_STEPS)
        if contrast(candidate, ground) >= least:
            return candidate
    return target


def on_white(colour: str) -> str:
    """Darken a colour until it is readable as text on the white ground and on a band."""
    return with_contrast(colour, "#000000", BAND, TEXT_CONTRAST)


def in_the_dark(colour: str) -> str:
    """Give the colour that replaces a colour in a dark theme, readable as text."""
    if colour in NEUTRAL_IN_THE_DARK:
        return NEUTRAL_IN_THE_DARK[colour]
    return with_contrast(colour, "#ffffff", BAND_IN_THE_DARK, TEXT_CONTRAST)


def on_both(colour: str) -> str:
    """Give a colour for pixels, which stands out as a mark from the white and the dark ground."""
    dark_enough = with_contrast(colour, "#000000", GROUND, MARK_CONTRAST)
    return with_contrast(dark_enough, "#ffffff", GROUND_IN_THE_DARK, MARK_CONTRAST)


def with_dark_theme(svg: str) -> str:
    """Add a dark version of every colour to the style sheet of an SVG that matplotlib wrote."""
    rules = []
    for colour in sorted(set(COLOUR_IN_STYLE.findall(svg))):
        dark = in_the_dark(colour)
        for key in ("fill", "stroke"):
            rules.append(f'[style*="{key}: {colour}"]{{{key}:{dark}!important}}')
    sheet = "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"
    return svg.replace(END_OF_STYLE_SHEET, sheet + END_OF_STYLE_SHEET, 1)
