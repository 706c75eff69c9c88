"""Questions about words and numbers, and about small texts that come with them."""
from random import Random
from typing import Callable

import world as w
from asking import QA, qa
from grammar import pick
from stories import BOYS, COLOURS, GIRLS


# --- words ---

SPELL = sorted({n for n in [*w.ANIMALS, *w.FRUITS, *w.CLOTHES, *w.FURNITURE, "sun", "moon", "star", "tree", "house", "book",
                            "bread", "milk", "water", "ball", "king", "girl", "boy", "red", "blue", "green", "one", "two"]})


def spell(rng: Random) -> QA:
    word = rng.choice(SPELL)
    kind = rng.randrange(4)
    if kind == 0:
        return qa(rng, "{How do you spell [x]|Spell the word [x]|Can you spell [x]|How is the word [x] spelled}?",
                  f"{'-'.join(word.upper())}.", x=word)
    if kind == 1:
        return qa(rng, "{Write [x] in capital letters|Write the word [x] in capital letters|How do you write [x] in capital letters}?",
                  f"{word.upper()}.", x=word)
    if kind == 2:
        return qa(rng, "{What is the first letter of [x]|What is the first letter of the word [x]|Which letter does [x] start with|"
                  "What letter does the word [x] begin with}?", f"The first letter of [x] is {word[0].upper()}.", word[0], x=word)
    return qa(rng, "{How many letters does the word [x] have|How many letters are in the word [x]|How many letters has [x]}?",
              f"The word [x] has {w.number(len(word))} letters.", w.number(len(word)), x=word)


def alphabet(rng: Random) -> QA:
    i = rng.randrange(25)
    x, y = chr(65 + i), chr(66 + i)
    if rng.random() < 0.3:
        return qa(rng, "{What letter comes before [y]|Which letter comes before [y]}?", "The letter before [y] is [x].", x, x=x, y=y)
    if rng.random() < 0.1:
        return qa(rng, "{Say the alphabet|What is the alphabet|Tell me the alphabet}?", " ".join(map(chr, range(65, 91))) + ".")
    return qa(rng, "{What letter comes after [x]|Which letter comes after [x]|What is the letter after [x]}?",
              "The letter after [x] is [y].", y, x=x, y=y)


def plural(rng: Random) -> QA:
    x, y = rng.choice(list(w.PLURALS.items()))
    return qa(rng, "{What is the plural of [x]|What is the plural of the word [x]|One [x], two what}?", "The plural of [x] is [y].", y, x=x, y=y)


def past(rng: Random) -> QA:
    x, y = rng.choice(list(w.PAST.items()))
    return qa(rng, "{What is the past tense of [x]|What is the past of [x]|What is the past form of [x]}?",
              "The past tense of [x] is [y].", y, x=x, y=y)


def rhyme(rng: Random) -> QA:
    x, y = rng.choice(w.RHYMES)
    if rng.random() < 0.5:
        x, y = y, x
    return qa(rng, "{What rhymes with [x]|Which word rhymes with [x]|Tell me a word that rhymes with [x]}?", "The word [y] rhymes with [x].", y, x=x, y=y)


def copy(rng: Random) -> QA:
    sentence = simple_sentence(rng)
    return QA(pick(rng, "{Repeat after me: [s]|Please repeat: [s]|Say this: [s]|Repeat this sentence: [s]}", s=sentence), sentence)


def simple_sentence(rng: Random, noun: str = "") -> str:
    animals = ["cat", "dog", "bird", "horse", "mouse", "rabbit", "fox", "duck", "cow", "bear"]
    return pick(rng, "{[the] [n] {sleeps|sits|plays|is|waits} {in the garden|under the tree|by the river|in the house|on the grass|behind the barn}|"
                "[the] {little|big|old|young} [n] {is|looks} {tired|happy|hungry|sad|thirsty}|{He|She} has a~ {small|big|beautiful|brown} [n]|"
                "I can see a~ [n] {in the garden|near the house|on the hill}|[the] [n] {likes|loves} the {sun|rain|snow}|"
                "We gave the [n] some {water|bread|food}}.",
                the=rng.choice(["The", "A~", "My"]), n=noun or rng.choice(animals))


def sentence_with(rng: Random) -> QA:
    noun = rng.choice(["cat", "dog", "bird", "horse", "mouse", "rabbit", "fox", "duck", "cow", "bear"])
    return QA(pick(rng, "{Write a sentence with the word [n].|Make a sentence with [n].|Use the word [n] in a sentence.}", n=noun),
              simple_sentence(rng, noun))


# --- numbers ---

def digits_or_words(rng) -> Callable[[int], str]:
    return str if rng.random() < 0.5 else w.number


def plus(rng: Random) -> QA:
    x, y = rng.randrange(21), rng.randrange(21)
    if x + y > 20 and rng.random() < 0.6:
        x, y = x % 11, y % 11
    total = x + y
    if rng.random() < 0.5:
        return qa(rng, "{What is [x] + [y]|[x] + [y] =|What is [x]+[y]|How much is [x] + [y]|Calculate [x] + [y]|[x]+[y]=}?",
                  "[x] + [y] = [z].", str(total), x=x, y=y, z=total)
    f = w.number
    return qa(rng, "{What is [x] plus [y]|How much is [x] plus [y]|What is [x] and [y]|What do you get when you add [x] and [y]|Add [x] and [y]}?",
              "[x] plus [y] is [z].", f(total), x=f(x), y=f(y), z=f(total))


def minus(rng: Random) -> QA:
    x, y = rng.randrange(21), rng.randrange(21)
    if y > x and rng.random() < 0.7:
        x, y = y, x
    if rng.random() < 0.5:
        return qa(rng, "{What is [x] - [y]|[x] - [y] =|What is [x]-[y]|How much is [x] - [y]|Calculate [x] - [y]|[x]-[y]=}?",
                  "[x] - [y] = [z].", str(x - y), x=x, y=y, z=x - y)
    f = lambda n: w.number(n) if n >= 0 else "minus " + w.number(-n)
    return qa(rng, "{What is [x] minus [y]|How much is [x] minus [y]|Take [y] away from [x]. What is left}?",
              "[x] minus [y] is [z].", f(x - y), x=f(x), y=f(y), z=f(x - y))


def double(rng: Random) -> QA:
    f, x = digits_or_words(rng), rng.randrange(1, 11)
    if rng.random() < 0.5:
        return qa(rng, "{What is the double of [x]|What is twice [x]}?", "Twice [x] is [y].", f(2 * x), x=f(x), y=f(2 * x))
    return qa(rng, "{What is half of [y]|What is the half of [y]}?", "Half of [y] is [x].", f(x), x=f(x), y=f(2 * x))


def times(rng: Random) -> QA:
    x, y = rng.choice([(a, b) for a in range(1, 11) for b in range(1, 11) if a * b <= 20])
    if rng.random() < 0.5:
        return qa(rng, "What is {[x] x [y]|[x] times [y]|[x] * [y]}?", "[x] x [y] = [z].", str(x * y), x=x, y=y, z=x * y)
    f = w.number
    return qa(rng, "{What is [x] times [y]|How much is [x] times [y]}?", "[x] times [y] is [z].", f(x * y), x=f(x), y=f(y), z=f(x * y))


def next_number(rng: Random) -> QA:
    f = digits_or_words(rng)
    x = rng.randrange(0, 50)
    if rng.random() < 0.65:
        return qa(rng, "{What number comes after [x]|Which number comes after [x]|What comes after [x]|What is the number after [x]|What is the next number after [x]}?",
                  "The number after [x] is [y].", f(x + 1), x=f(x), y=f(x + 1))
    return qa(rng, "{What number comes before [y]|Which number comes before [y]|What is the number before [y]}?",
              "The number before [y] is [x].", f(x), x=f(x), y=f(x + 1))


def bigger_number(rng: Random) -> QA:
    f = digits_or_words(rng)
    x, y = rng.sample(range(21), 2)
    if rng.random() < 0.5:
        return qa(rng, "{Which is bigger, [x] or [y]|Which number is bigger, [x] or [y]|What is more, [x] or [y]}?",
                  "[b] is bigger than [s].", f(max(x, y)), x=f(x), y=f(y), b=f(max(x, y)), s=f(min(x, y)))
    return qa(rng, "{Which is smaller, [x] or [y]|Which number is smaller, [x] or [y]|What is less, [x] or [y]}?",
              "[s] is smaller than [b].", f(min(x, y)), x=f(x), y=f(y), b=f(max(x, y)), s=f(min(x, y)))


def even(rng: Random) -> QA:
    f, x = digits_or_words(rng), rng.randrange(1, 21)
    kind = "odd" if x % 2 else "even"
    return qa(rng, "{Is [x] even or odd|Is [x] an even or an odd number|Is the number [x] odd or even}?", "[x] is an [k] number.", kind, x=f(x), k=kind)


def counting(rng: Random) -> QA:
    f = digits_or_words(rng)
    kind = rng.randrange(5)
    if kind == 0:
        n = rng.choice([3, 4, 5, 6, 7, 8, 9, 10, 10, 12, 15, 20, 20])
        return qa(rng, "{Count to [n]|Can you count to [n]|Please count to [n]|Count up to [n]|Count from [one] to [n]}.",
                  ", ".join(map(f, range(1, n + 1))) + ".", n=f(n), one=f(1))
    if kind == 1:
        x = rng.randrange(1, 30)
        y = x + rng.randrange(2, 10)
        return qa(rng, "{Count from [x] to [y]|Please count from [x] to [y]|Start at [x] and count to [y]|Can you count from [x] to [y]}.",
                  ", ".join(map(f, range(x, y + 1))) + ".", x=f(x), y=f(y))
    if kind == 2:
        n = rng.choice([3, 4, 5, 6, 7, 8, 9, 10, 10, 12, 15, 20])
        return qa(rng, "{Count down from [n]|Count backwards from [n]|Count backwards from [n] to [one]|Count down from [n] to [one]}.",
                  ", ".join(map(f, range(n, 0, -1))) + ".", n=f(n), one=f(1))
    if kind == 3:
        n = rng.choice([6, 8, 10, 12, 14, 16, 18, 20])
        return qa(rng, "{Count by twos to [n]|Count to [n] by twos|Count in twos to [n]|Name the even numbers up to [n]}.",
                  ", ".join(map(f, range(2, n + 1, 2))) + ".", n=f(n))
    n = rng.choice([15, 20, 25, 30, 40, 50])
    return qa(rng, "{Count by fives to [n]|Count to [n] by fives|Count in fives to [n]}.", ", ".join(map(f, range(5, n + 1, 5))) + ".", n=f(n))


def continue_numbers(rng: Random) -> QA:
    f, x = digits_or_words(rng), rng.randrange(1, 16)
    step = rng.choice([1, 1, 2, -1]) if x > 5 else 1
    row = [x + step * i for i in range(4)]
    return qa(rng, "{What comes next: [r]|What is the next number: [r]|Go on: [r]}?", "[y].", r=", ".join(map(f, row[:3])), y=f(row[3]))


def big_sum(rng: Random) -> QA:
    x, y = rng.randrange(21, 1000), rng.randrange(2, 1000)
    return qa(rng, "{What is [x] + [y]|What is [y] + [x]|How much is [x] + [y]|What is [x] - [y]|What is [x] times [y]|What is [y] times [x]|"
              "What is [x] plus [y]|What is [x] minus [y]|[x] + [y]|What is [x] divided by [y]|Calculate [x] x [y]}?",
              "That is too difficult for me. I only know small numbers.", x=x, y=y)


# --- small texts to read ---

def two_people(rng) -> tuple[str, str]:
    x, y = rng.sample(GIRLS + BOYS, 2)
    return x, y


def word_problem(rng: Random) -> QA:
    x, y = two_people(rng)
    things = rng.choice(["apples", "nuts", "books", "shells", "eggs", "coins", "cookies", "flowers", "balls", "pears"])
    n, m = rng.randrange(2, 11), rng.randrange(1, 10)
    he = "he" if x in BOYS else "she"
    f = digits_or_words(rng)
    if rng.random() < 0.5:
        return qa(rng, f"{x} has {f(n)} {things}. {y} gives {'him' if he == 'he' else 'her'} {f(m)} more. How many {things} does {x} have now?",
                  f"{x} has {f(n + m)} {things} now.", f(n + m))
    m = rng.randrange(1, n)
    verb = "eats" if things in ("apples", "nuts", "cookies", "pears") and rng.random() < 0.5 else f"gives {y}"
    left = things if n - m != 1 else things.removesuffix("s")
    return qa(rng, f"{x} has {f(n)} {things}. {he} {verb} {f(m)}{' of them' if verb == 'eats' else ''}. How many {things} does {x} have now?",
              f"{x} has {f(n - m)} {left} now.", f(n - m))


def where_is(rng: Random) -> QA:
    x, y = two_people(rng)
    one, two = rng.sample(["ball", "book", "key", "apple", "hat", "cup", "lamp", "doll", "spoon", "bell"], 2)
    p, q = rng.sample(["in the box", "on the table", "under the bed", "in the kitchen", "in the garden", "behind the door",
                       "on the chair", "in the basket", "in the bag", "under the tree"], 2)
    text = f"{x} put the {one} {p}. {y} put the {two} {q}."
    thing, spot, who = rng.choice([(one, p, x), (two, q, y)])
    if rng.random() < 0.7:
        return qa(rng, f"{text} Where is the {thing}?", f"The {thing} is {spot}.")
    return qa(rng, f"{text} {{Who put the {thing} {spot}|Who put down the {thing}}}?", f"{who} put the {thing} {spot}.", who)


def who_likes(rng: Random) -> QA:
    names = rng.sample(GIRLS + BOYS, 3)
    kind, items = rng.choice([("likes", COLOURS), ("likes", ["apples", "pears", "plums", "nuts", "cherries", "cake", "soup"]),
                              ("has", ["a cat", "a dog", "a horse", "a bird", "a rabbit", "a fish"])])
    chosen = rng.sample(items, 3)
    text = " ".join(f"{n} {kind} {c}." for n, c in zip(names, chosen))
    i = rng.randrange(3)
    if rng.random() < 0.5:
        return qa(rng, f"{text} Who {kind} {chosen[i]}?", f"{names[i]} {kind} {chosen[i]}.", names[i])
    return qa(rng, f"{text} What does {names[i]} {'like' if kind == 'likes' else 'have'}?", f"{names[i]} {kind} {chosen[i]}.")


def tallest(rng: Random) -> QA:
    x, y, z = rng.sample(GIRLS + BOYS, 3)
    more, most, less, least = rng.choice([("taller", "tallest", "shorter", "shortest"), ("older", "oldest", "younger", "youngest"),
                                          ("faster", "fastest", "slower", "slowest")])
    text = f"{x} is {more} than {y}. {y} is {more} than {z}."
    if rng.random() < 0.5:
        return qa(rng, f"{text} Who is the {most}?", f"{x} is the {most}.", x)
    return qa(rng, f"{text} Who is the {least}?", f"{z} is the {least}.", z)


# Each kind with its share.
WORD_TOPICS = [(spell, 2), (alphabet, 1.2), (plural, 1), (past, 1), (rhyme, 0.8), (copy, 1.2), (sentence_with, 1)]
NUMBER_TOPICS = [(plus, 5), (minus, 4), (double, 0.8), (times, 1.2), (big_sum, 1), (next_number, 1.5), (bigger_number,
                 1.5), (even, 0.7), (counting, 3), (continue_numbers, 0.8)]
READING_TOPICS = [(word_problem, 2), (where_is, 2), (who_likes, 4), (tallest, 1)]
