"""Tables in LaTeX: words stay words, and numbers with an error or a power of ten are formulas."""

import pytest

from mainstem.report.tables import latex

WORDS = {
    r"C:\data\new": r"C:\textbackslash{}data\textbackslash{}new",
    r"a\_b": r"a\textbackslash{}\_b",
    "x^2": r"x\textasciicircum{}2",
    "a~b": r"a\textasciitilde{}b",
    "p < 0.1 | q > 2": r"p \textless{} 0.1 \textbar{} q \textgreater{} 2",
    "50 % & #1 {$}": r"50 \% \& \#1 \{\$\}",
    "1e+05": "1e+05",
    "0.5 ± 0.1": "0.5 ± 0.1",
}


def shown(**row: object) -> str:
    return latex([row]).split("\n")[4].removesuffix(r" \\")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_shown_as_it_is(word: str) -> None:
    assert shown(algorithm=word) == WORDS[word]


def test_the_name_of_a_column_is_escaped() -> None:
    assert latex([{r"x^\2_error^": 1}]).split("\n")[2] == (
        r"x\textasciicircum{}\textbackslash{}2 error\textasciicircum{} \\"
    )


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"loss": 0.25}, "0.2500"),
        ({"loss": -0.25, "loss_error": 0.01}, r"$-0.2500 \pm 0.0100$"),
        ({"uplink_bits": 123456.0}, r"$1.23 \times 10^{5}$"),
        (
            {"uplink_bits": 123456.0, "uplink_bits_error": 1500.0},
            r"$1.23 \times 10^{5} \pm 1.50 \times 10^{3}$",
        ),
        ({"uplink_bits": 1e-7}, r"$1 \times 10^{-7}$"),
        ({"uplink_saving": 0.99}, r"99.0 \%"),
        ({"uplink_saving": 0.99, "uplink_saving_error": 0.01}, r"$99.0 \% \pm 1.0 \%$"),
        ({"steps": 5}, "5"),
    ],
    ids=str,
)
def test_a_number_is_a_formula_where_it_needs_one(row: dict[str, float], wanted: str) -> None:
    assert shown(**row) == wanted
