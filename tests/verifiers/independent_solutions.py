"""Correct solutions of odd-numbered HumanEval tasks, written by hand from the docstrings, not from the package's gold.

For the false-alarm measurements: each must be paid. Some log, print, keep state in classes or compare with own `__eq__`.
"""

SOLUTIONS: dict[int, str] = {
    1: """
def separate_paren_groups(paren_string):
    groups, depth = [""], 0
    for sign in paren_string.replace(" ", ""):
        groups[-1] += sign
        depth += {"(": 1, ")": -1}[sign]
        if not depth:
            groups.append("")
    return groups[:-1]
""",
    3: """
from itertools import accumulate


def below_zero(operations):
    return min(accumulate(operations), default=0) < 0
""",
    5: """
def intersperse(numbers, delimeter):
    woven = [delimeter] * max(2 * len(numbers) - 1, 0)
    woven[::2] = numbers
    return woven
""",
    7: """
def filter_by_substring(strings, substring):
    return list(filter(lambda s: s.find(substring) >= 0, strings))
""",
    9: """
import itertools


def rolling_max(numbers):
    return list(itertools.accumulate(numbers, max))
""",
    11: """
def string_xor(a, b):
    if not a:
        return ""
    return format(int(a, 2) ^ int(b, 2), "b").zfill(len(a))
""",
    13: """
import logging

log = logging.getLogger(__name__)


def greatest_common_divisor(a, b):
    log.warning("gcd of %s and %s", a, b)
    if b == 0:
        return abs(a)
    return greatest_common_divisor(b, a % b)
""",
    15: """
def string_sequence(n):
    text = "0"
    k = 1
    while k <= n:
        text += " %d" % k
        k += 1
    return text
""",
    17: """
import re


def parse_music(music_string):
    beats = {"o": 4, "o|": 2, ".|": 1}
    return [beats[note] for note in re.findall(r"o\\|?|\\.\\|", music_string)]
""",
    19: """
class Word:
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Word) and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def __lt__(self, other):
        return self.names.index(self.text) < self.names.index(other.text)


def sort_numbers(numbers):
    return " ".join(word.text for word in sorted(map(Word, numbers.split())))
""",
    21: """
def rescale_to_unit(numbers):
    low = min(numbers)
    span = max(numbers) - low
    return [(number - low) / span for number in numbers]
""",
    23: """
def strlen(string):
    count = 0
    for _ in string:
        count += 1
    return count
""",
    25: """
def factorize(n):
    if n < 2:
        return []
    for d in range(2, n + 1):
        if d * d > n:
            return [n]
        if n % d == 0:
            return [d] + factorize(n // d)
""",
    27: """
def flip_case(string):
    return "".join(c.lower() if c.isupper() else c.upper() for c in string)
""",
    29: """
def filter_by_prefix(strings, prefix):
    print("filtering", len(strings), "strings")
    return [s for s in strings if s[: len(prefix)] == prefix]
""",
    31: """
def is_prime(n):
    if n < 4:
        return n in (2, 3)
    if n % 2 == 0:
        return False
    d = 3
    while d * d <= n:
        if n % d == 0:
            return False
        d += 2
    return True
""",
    33: """
def sort_third(l):
    out = list(l)
    out[0::3] = sorted(out[0::3])
    return out
""",
    35: """
from functools import reduce


def max_element(l):
    return reduce(lambda a, b: a if a > b else b, l)
""",
    37: """
def sort_even(l):
    evens = sorted(x for i, x in enumerate(l) if i % 2 == 0)
    return [evens[i // 2] if i % 2 == 0 else x for i, x in enumerate(l)]
""",
    41: """
def car_race_collision(n):
    return sum(1 for left in range(n) for right in range(n))
""",
    43: """
def pairs_sum_to_zero(l):
    seen = set()
    for x in l:
        if -x in seen:
            return True
        seen.add(x)
    return False
""",
    45: """
def triangle_area(a, h):
    return 0.5 * a * h
""",
    47: """
import statistics


def median(l):
    return statistics.median(l)
""",
    49: """
def modp(n, p):
    return pow(2, n, p)
""",
    51: """
import re


def remove_vowels(text):
    return re.sub("[aeiou]", "", text, flags=re.I)
""",
    53: """
import operator
import sys


def add(x, y):
    print("adding", x, y, file=sys.stderr)
    return operator.add(x, y)
""",
    55: """
def fib(n):
    a, b = 0, 1
    while n:
        a, b, n = b, a + b, n - 1
    return a
""",
    57: """
def monotonic(l):
    steps = list(zip(l, l[1:]))
    return all(a <= b for a, b in steps) or all(a >= b for a, b in steps)
""",
    59: """
def largest_prime_factor(n):
    best, d = 1, 2
    while n > 1:
        while n % d == 0:
            best, n = d, n // d
        d += 1
    return best
""",
    61: """
def correct_bracketing(brackets):
    while "()" in brackets:
        brackets = brackets.replace("()", "")
    return brackets == ""
""",
    63: """
from functools import lru_cache


@lru_cache(maxsize=None)
def fibfib(n):
    if n < 3:
        return (0, 0, 1)[n]
    return fibfib(n - 1) + fibfib(n - 2) + fibfib(n - 3)
""",
    65: """
def circular_shift(x, shift):
    digits = list(str(x))
    if shift > len(digits):
        digits.reverse()
        return "".join(digits)
    for _ in range(shift):
        digits.insert(0, digits.pop())
    return "".join(digits)
""",
    67: """
def fruit_distribution(s, n):
    return n - sum(int(word) for word in s.split() if word.isdigit())
""",
    69: """
from collections import Counter


def search(lst):
    return max((x for x, count in Counter(lst).items() if count >= x), default=-1)
""",
    71: """
def triangle_area(a, b, c):
    if 2 * max(a, b, c) >= a + b + c:
        return -1
    s = (a + b + c) / 2
    return round((s * (s - a) * (s - b) * (s - c)) ** 0.5, 2)
""",
}
