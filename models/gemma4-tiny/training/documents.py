"""Plain documents: stories, pages about people, animals and numbers, lists of facts, letters and rhymes."""
import random

import world as w
from asking import the
from grammar import Grammar, pick, polish
from questions import (NUMBER_TOPICS, READING_TOPICS, THING_TOPICS, TIME_TOPICS, VILLAGE_TOPICS, VILLAGER_TOPICS, WORD_TOPICS,
                       ask, weighted)
from stories import MACROS, Story, adventure, cast_plot, load, tell


def story(rng: random.Random) -> str:
    s = tell(rng)
    return s.titled if rng.random() < 0.4 else s.text


def long_story(rng: random.Random) -> str:
    s = adventure(rng, rng.randint(2, 5))
    return s.titled if rng.random() < 0.5 else s.text


def very_long_story(rng: random.Random) -> str:
    return adventure(rng, rng.randint(8, 12)).titled


def two_stories(rng: random.Random) -> str:
    """Several stories in one document, so that a long context is nothing new."""
    return "\n\n".join(tell(rng).titled for _ in range(rng.randint(2, 4)))


def story_with_questions(rng: random.Random) -> str:
    s: Story = tell(rng)
    lines = [f"Question: {q}\nAnswer: {a}" for q, a in s.questions]
    return f"{s.text}\n\n" + "\n".join(lines)


def paper(rng: random.Random) -> str:
    plot = rng.choice(load("papers.txt"))
    grammar = Grammar(rng, macros=MACROS)
    cast_plot(rng, plot, grammar)
    return grammar.text(plot.text)


def poem(rng: random.Random) -> str:
    plot = rng.choice(load("poems.txt"))
    title = pick(rng, "{To [x]|[x]|A song for [x]}", x=plot.ask) + "\n\n" if rng.random() < 0.4 else ""
    return title + Grammar(rng).text(plot.text)


BIOGRAPHY = [
    "[v] is the [v.job] of Fernhill. [v.he] [v.work] and works at the [v.workplace].",
    "[v] lives in the [v.house] house{| in Fernhill}.",
    "[v] has a~ [v.petcolour] [v.pet] named [v.petname].",
    "{[v]'s favourite food is [v.food]|[v] likes to eat [v.food]}.",
    "{In [v.his] free time, [v] likes [v.hobby]|[v]'s hobby is [v.hobby]}.",
    "{[v]'s best friend is [v.friend]|[v.friend] is [v]'s best friend}.",
]


def biography(rng: random.Random) -> str:
    v = the(rng)
    first, *rest = BIOGRAPHY
    rng.shuffle(rest)
    text = pick(rng, " ".join([first, *rest[:rng.randint(2, 5)]]), v=v)
    return f"{pick(rng, '{About [v]|[v]|[v] the [v.job]|All about [v]}', v=v)}\n\n{text}" if rng.random() < 0.5 else text


def village(rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        lines = [f"On {day}, {what}." for day, (_, what) in w.WEEK.items()]
        return "A week in Fernhill\n\n" + " ".join(lines)
    if kind == 1:
        places = rng.sample(list(w.PLACES.items()), rng.randint(4, 8))
        return "Where things are in Fernhill\n\n" + " ".join(polish(f"the {p} is {where}.") for p, where in places)
    if kind == 2:
        key = rng.choice(["lives in the [v.house] house", "has a~ [v.pet] named [v.petname]", "is the [v.job]", "likes [v.food]",
                          "works at the [v.workplace]", "likes [v.hobby]"])
        chosen = rng.sample(w.VILLAGERS, rng.randint(4, 12))
        return " ".join(pick(rng, f"[v] {key}.", v=v) for v in chosen)
    facts = [pick(rng, answer) for _, answer in rng.sample(w.VILLAGE_FACTS, 5)]
    return "Fernhill\n\n" + " ".join(facts)


def animal_page(rng: random.Random) -> str:
    name, (verb, young, home, eats, legs, fact) = rng.choice(list(w.ANIMALS.items()))
    lines = [fact, pick(rng, f"A young [n] is called a~ {young}.", n=name), pick(rng, f"A~ [n] eats {eats}.", n=name),
             pick(rng, f"A~ [n] has {'no' if legs == 0 else w.number(legs)} legs.", n=name)]
    if name in w.SOUND_WORDS:
        lines.append(pick(rng, f"A~ [n] says {w.SOUND_WORDS[name]}.", n=name))
    rng.shuffle(lines)
    title = f"The {name}\n\n" if rng.random() < 0.6 else ""
    return title + " ".join(lines)


def facts(rng: random.Random) -> str:
    group = rng.choice([VILLAGER_TOPICS[:-3], VILLAGE_TOPICS[:3], THING_TOPICS[:2] + THING_TOPICS[3:4] + THING_TOPICS[5:7],
                        TIME_TOPICS])
    return " ".join(ask(rng, group).answer for _ in range(rng.randint(3, 10)))


def quiz(rng: random.Random) -> str:
    group = rng.choice([VILLAGER_TOPICS, VILLAGE_TOPICS, THING_TOPICS, TIME_TOPICS, NUMBER_TOPICS, WORD_TOPICS, READING_TOPICS, None])
    style = rng.choice(["Question: {q}\nAnswer: {a}", "Q: {q}\nA: {a}", "{q}\n{a}"])
    join = rng.choice(["\n", "\n\n"])
    return join.join(style.format(q=x.question, a=x.answer) for x in (ask(rng, group) for _ in range(rng.randint(2, 7))))


def sums(rng: random.Random) -> str:
    words = rng.random() < 0.4
    lines = []
    for _ in range(rng.randint(4, 12)):
        x = rng.randrange(21)
        y = rng.randrange(x + 1)
        if rng.random() < 0.5:
            x, y, sign, result = y, x - y, "+", x
        else:
            sign, result = "-", x - y
        if words:
            sign = "plus" if sign == "+" else "minus"
            lines.append(polish(f"{w.number(x)} {sign} {w.number(y)} is {w.number(result)}."))
        else:
            lines.append(f"{x} {sign} {y} = {result}")
    return (" " if words else "\n").join(lines)


def count(rng: random.Random) -> str:
    f = rng.choice([str, w.number])
    x, step = rng.choice([(0, 1), (1, 1), (1, 1), (1, 1), (2, 2), (1, 2), (5, 5), (10, 1)])
    row = [x + step * i for i in range(rng.randint(8, 20)) if x + step * i < 60]
    if rng.random() < 0.3:
        row = row[::-1]
    return ", ".join(map(f, row)) + "."


KINDS = [(story, 22), (long_story, 9), (very_long_story, 3), (two_stories, 5), (story_with_questions, 5), (paper, 6), (biography, 7),
         (village, 4), (animal_page, 3), (facts, 5), (quiz, 8), (sums, 3), (count, 1.5), (poem, 1)]


def document(rng: random.Random) -> str:
    return weighted(rng, KINDS)(rng)
