"""Write the tickets that the pages and notebooks use: made up, the same every time.

support.csv has tickets with their team, new.csv others to try a model on, and few.csv
those of support.csv with the team of only five of each. A ticket has one to nine
sentences; short ones often say nothing of their team, and a tenth of all are of two.

    python docs/examples/make_support.py
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

HERE = Path(__file__).parent
SENTENCES = {
    "internet": [
        "The {router|modem|wifi box} {blinks red|restarts|loses the connection}.",
        "Our {internet|wifi|connection} is {slow|down|unstable} {today|at night}.",
        "Video {calls|meetings} {freeze|break off} when the signal {drops|is weak}.",
        "I {restarted|reset|unplugged} the {router|modem} and the line is still dead.",
        "The speed test shows {two|five|ten} megabit instead of {fifty|a hundred}.",
        "The technician {replaced|checked} the cable but the signal is weak.",
        "The wireless network does not reach the {kitchen|office|upper floor}.",
        "After the {storm|update} the modem finds no signal on the line.",
    ],
    "billing": [
        "The invoice of {March|April|May} is {wrong|too high|twice what we agreed}.",
        "You {charged|billed} my {card|bank account} {twice|for two months}.",
        "I ask for a refund of the {fee|amount|double payment}.",
        "The {discount|credit|voucher} is missing on the invoice.",
        "Please send the {receipt|bill|statement} to my accountant for the tax.",
        "Why did the monthly {price|fee|amount} rise by {three|five} euros?",
        "My payment was {rejected|returned} by the bank although there was money.",
        "I paid the reminder {yesterday|last week} and still get another {fee|bill}.",
    ],
    "delivery": [
        "The {parcel|package|order} has not {arrived|been delivered|left the depot}.",
        "The courier {left|put} the {parcel|box} at the wrong {door|address}.",
        "Tracking says {delivered|on its way} but there is no {parcel|box} here.",
        "The box was {open|wet|crushed} and the {lamp|kettle|vase} inside broken.",
        "I {ordered|bought} a {blue|large|black} chair and received a {red|small} one.",
        "Can the driver deliver the parcel {on Friday|to my neighbour|after six}?",
        "I want to return the {shoes|jacket|lamp} and need a shipping label.",
        "The warehouse ships my order {too late|in three parts} every time.",
    ],
    "account": [
        "I cannot {log in|sign in} with my {password|email address|user name}.",
        "The {reset|confirmation} email with the link never {arrives|comes}.",
        "My account is {locked|blocked|disabled} after {three|five} attempts.",
        "Please {change|update} the email address and name in my profile.",
        "The app {asks|wants} me to verify my phone and sends no code.",
        "How do I {delete|close} my account and the data in my profile?",
        "Somebody {else|unknown} signed in to my account, please lock it.",
        "The two factor code of the login app is {rejected|out of date}.",
    ],
}
NEUTRAL = [
    "Please help.",
    "It does not work.",
    "I have waited for {two|three} {days|weeks}.",
    "Thank you and kind regards.",
    "I called the hotline {twice|again} and nobody could help.",
    "This is the {second|third} time that I write.",
    "What can I do now?",
    "My customer number is in the letter.",
]


def sentence(draw: random.Random, form: str) -> str:
    """Return a form with one of the choices in each brace."""
    return re.sub(r"\{(.*?)\}", lambda found: draw.choice(found[1].split("|")), form)


def ticket(draw: random.Random, team: str) -> str:
    """Return the text of one ticket."""
    n_sentences = draw.choice([1, 1, 2, 2, 3, 4, 6, 9])
    other = draw.choice([name for name in SENTENCES if name != team])
    mixed = draw.random() < 0.1
    parts = []
    for position in range(n_sentences):
        forms = SENTENCES[other if mixed and position % 2 else team]
        parts.append(sentence(draw, draw.choice(NEUTRAL + forms)))
    return " ".join(parts)


def main() -> None:
    """Write the three files."""
    draw = random.Random(19)
    rows = []
    for number in range(600):
        team = draw.choice(list(SENTENCES))
        rows.append([f"t{number:03d}", ticket(draw, team), team])
    seen: dict[str, int] = {}
    few = []
    for name, text, team in rows[:400]:
        seen[team] = seen.get(team, 0) + 1
        few.append([name, text, team if seen[team] <= 5 else ""])
    files = {"support.csv": rows[:400], "new.csv": rows[400:], "few.csv": few}
    for name, some in files.items():
        with (HERE / name).open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle, lineterminator="\n")
            writer.writerows([["id", "text", "label"], *some])


if __name__ == "__main__":
    main()
