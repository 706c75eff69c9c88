"""Questions about time, animals and things."""
from random import Random

import world as w
from asking import QA, qa, a, the
from stories import COLOURS, LISTS


# --- time ---

def day_after(rng: Random) -> QA:
    i = rng.randrange(7)
    if rng.random() < 0.5:
        return qa(rng, "{What day comes after [d]|Which day comes after [d]|What is the day after [d]|"
                  "Today is [d]. What day is tomorrow|If today is [d], what day is tomorrow}?",
                  "The day after [d] is [n].", w.DAYS[(i + 1) % 7], d=w.DAYS[i], n=w.DAYS[(i + 1) % 7])
    return qa(rng, "{What day comes before [d]|Which day comes before [d]|What is the day before [d]|"
              "Today is [d]. What day was yesterday}?",
              "The day before [d] is [n].", w.DAYS[i - 1], d=w.DAYS[i], n=w.DAYS[i - 1])


def month(rng: Random) -> QA:
    i = rng.randrange(12)
    kind = rng.randrange(3)
    if kind == 0:
        return qa(rng, "{What month comes after [m]|Which month comes after [m]|What is the month after [m]}?",
                  "The month after [m] is [n].", w.MONTHS[(i + 1) % 12], m=w.MONTHS[i], n=w.MONTHS[(i + 1) % 12])
    if kind == 1:
        return qa(rng, "{What month comes before [m]|Which month comes before [m]|What is the month before [m]}?",
                  "The month before [m] is [n].", w.MONTHS[i - 1], m=w.MONTHS[i], n=w.MONTHS[i - 1])
    return rng.choice([
        qa(rng, "What is the {first|1st} month of the year?", "The first month of the year is January.", "January"),
        qa(rng, "What is the last month of the year?", "The last month of the year is December.", "December"),
        qa(rng, "What is the first day of the week?", "The first day of the week is Monday.", "Monday"),
        qa(rng, "What is the last day of the week?", "The last day of the week is Sunday.", "Sunday"),
        qa(rng, "{What are the days of the week|Name the days of the week|Tell me the days of the week|Say the days of the week}?",
           f"The days of the week are {w.join(w.DAYS)}."),
        qa(rng, "{What are the months of the year|Name the months of the year|Tell me the months of the year}?",
           f"The months of the year are {w.join(w.MONTHS)}."),
        qa(rng, "{What are the seasons|What are the four seasons|Name the four seasons|What are the seasons of the year}?",
           f"The four seasons are {w.join(w.SEASONS)}."),
    ])


def season(rng: Random) -> QA:
    i = rng.randrange(4)
    s, what = w.SEASONS[i], w.SEASON_FACTS[w.SEASONS[i]]
    if rng.random() < 0.5:
        n = w.SEASONS[(i + 1) % 4]
        return qa(rng, "{What season comes after [s]|Which season comes after [s]|What comes after [s]}?",
                  "The season after [s] is [n].", n, s=s, n=n)
    return qa(rng, "{What happens in [s]|What is [s] like|Tell me about [s]}?", "In [s], [what].", s=s, what=what)


# --- animals and things ---

def sound(rng: Random) -> QA:
    name, word = rng.choice(list(w.SOUND_WORDS.items()))
    if rng.random() < 0.3:
        return qa(rng, "{Which animal says [s]|What animal says [s]|Who says [s]}?", "The [n] says [s].", name, n=name, s=word)
    return qa(rng, "{What does a~ [n] say|What does the [n] say|What sound does a~ [n] make|What noise does a~ [n] make|"
              "How does a~ [n] sound}?", "A~ [n] says [s].", word, n=name, s=word)


def animal_fact(rng: Random) -> QA:
    name, (verb, young, home, eats, legs, fact) = rng.choice(list(w.ANIMALS.items()))
    where = {"trees": "in the trees", "hills": "in the hills", "water": "in the water", "sea": "in the sea", "ice": "on the ice",
             "grassland": "in the grassland", "grass": "in the grass", "forest": "in the forest"}.get(home, f"in {a(home)}")
    options = [
        qa(rng, "{What is a young [n] called|What do you call a young [n]|What is a baby [n] called}?",
           "A young [n] is called a~ [y].", young, n=name, y=young),
        qa(rng, "{Where does a~ [n] live|Where do you find a~ [n]|What is the home of a~ [n]}?", f"A~ [n] lives {where}.", n=name),
        qa(rng, "{What does a~ [n] eat|What does the [n] like to eat|What is the food of a~ [n]}?", f"A~ [n] eats {eats}.", eats, n=name),
        qa(rng, "{How many legs does a~ [n] have|How many legs has a~ [n]}?",
           f"A~ [n] has {'no' if legs == 0 else w.number(legs)} legs.", "zero" if legs == 0 else w.number(legs), n=name),
        qa(rng, "{Tell me something about the [n]|What do you know about the [n]|Tell me a fact about the [n]|"
           "Tell me about the [n]|What is a~ [n]}?", f"{fact} A~ [n] lives {where} and eats {eats}.", n=name),
    ]
    return rng.choice(options)


def size(rng: Random) -> QA:
    i, j = rng.sample(range(len(w.SIZES)), 2)
    big, small = w.SIZES[max(i, j)], w.SIZES[min(i, j)]
    x, y = (big, small) if rng.random() < 0.5 else (small, big)
    if rng.random() < 0.5:
        return qa(rng, "{Which is bigger, a~ [x] or a~ [y]|What is bigger, a~ [x] or a~ [y]|Who is bigger, a~ [x] or a~ [y]}?",
                  "A~ [b] is bigger than a~ [s].", big, x=x, y=y, b=big, s=small)
    return qa(rng, "{Which is smaller, a~ [x] or a~ [y]|What is smaller, a~ [x] or a~ [y]}?",
              "A~ [s] is smaller than a~ [b].", small, x=x, y=y, b=big, s=small)


def colour(rng: Random) -> QA:
    thing, c = rng.choice(list(w.COLOURS.items()))
    if rng.random() < 0.2:
        wrong = rng.choice(COLOURS[:8])
        if wrong == c:
            return qa(rng, f"Is {thing} {c}?", f"Yes, {thing} is {c}.", "Yes")
        return qa(rng, f"Is {thing} {wrong}?", f"No, {thing} is {c}.", "No")
    return qa(rng, "{What colour is [t]|What colour is [t]|What color is [t]|Which colour does [t] have|What is the colour of [t]}?",
              "[t] is [c].", c, t=thing, c=c)


def colour_things(rng: Random) -> QA:
    c = rng.choice(["red", "green", "yellow", "white", "orange"])
    things = [t for t, x in w.COLOURS.items() if x == c]
    return qa(rng, "{What is [c]|Name something that is [c]|Tell me something [c]|Which thing is [c]}?", f"{rng.choice(things)} is {c}.", c=c)


def opposite(rng: Random) -> QA:
    x = rng.choice(list(w.OPPOSITE_OF))
    return qa(rng, "{What is the opposite of [x]|What is the opposite of the word [x]|Tell me the opposite of [x]|"
              "What word is the opposite of [x]|Which word means the opposite of [x]}?",
              "The opposite of [x] is [y].", w.OPPOSITE_OF[x], x=x, y=w.OPPOSITE_OF[x])


def capital(rng: Random) -> QA:
    country, city = rng.choice(list(w.CAPITALS.items()))
    if rng.random() < 0.3:
        return qa(rng, "{Which country has the capital [y]|[y] is the capital of which country|Where is [y]}?",
                  "[y] is the capital of [x].", country, x=country, y=city)
    return qa(rng, "{What is the capital of [x]|Which city is the capital of [x]|Tell me the capital of [x]|"
              "What is [x]'s capital|What is the capital city of [x]}?", "The capital of [x] is [y].", city, x=country, y=city)


def category(rng: Random) -> QA:
    kind = rng.choice(list(w.CATEGORIES))
    thing = rng.choice(w.CATEGORIES[kind])
    if kind == "drink":
        return qa(rng, "Can you drink [t]?", "Yes, [t] is a drink.", "Yes", t=thing)
    other = rng.choice([k for k in w.CATEGORIES if k not in (kind, "drink")])
    if rng.random() < 0.3:
        return qa(rng, "Is a~ [t] a~ [k]?", "Yes, a~ [t] is a~ [k].", "Yes", t=thing, k=kind)
    if rng.random() < 0.4:
        return qa(rng, "Is a~ [t] a~ [o]?", "No, a~ [t] is a~ [k].", "No", t=thing, k=kind, o=other)
    x, y = (kind, other) if rng.random() < 0.5 else (other, kind)
    return qa(rng, "Is a~ [t] a~ [x] or a~ [y]?", "A~ [t] is a~ [k].", kind, t=thing, k=kind, x=x, y=y)


def listing(rng: Random) -> QA:
    n = rng.choice([2, 3, 3, 3, 4, 5])
    kind, items = rng.choice([("fruits", w.FRUITS), ("vegetables", w.VEGETABLES), ("drinks", w.DRINKS), ("colours", COLOURS),
                              ("animals", list(w.ANIMALS)), ("birds", w.BIRDS), ("pieces of clothing", w.CLOTHES),
                              ("tools", list(w.TOOLS)[:7]), ("toys", [str(t) for t in LISTS["toys"][-16:]]), ("months", w.MONTHS),
                              ("farm animals", ["cow", "pig", "sheep", "hen", "horse", "goat", "duck", "donkey"]),
                              ("pieces of furniture", w.FURNITURE)])
    chosen = rng.sample(items, min(n, len(items)))
    number = rng.choice([str(len(chosen)), w.number(len(chosen))])
    plural = kind in ("fruits", "vegetables", "animals", "birds", "farm animals", "tools", "toys", "pieces of clothing", "pieces of furniture")
    named = [a(c) for c in chosen] if plural else chosen
    return qa(rng, f"{{Name {number} {kind}.|Tell me {number} {kind}.|Give me {number} {kind}.|Can you name {number} {kind}?|"
              f"Make a list of {number} {kind}.|List {number} {kind}.}}", w.join([str(x) for x in named]) + ".")


def tool(rng: Random) -> QA:
    t, use = rng.choice(list(w.TOOLS.items()))
    plural = t == "scissors"
    if rng.random() < 0.5:
        return qa(rng, f"{{What do you use {'' if plural else 'a~ '}[t] for|What {'are' if plural else 'is a~'} [t] for}}?",
                  f"You use {'' if plural else 'a~ '}[t] to [u].", t=t, u=use)
    return qa(rng, "{What do you use to [u]|What do I need to [u]|What can I use to [u]}?",
              f"You use {'' if plural else 'a~ '}[t] to [u].", t, t=t, u=use)


def made_of(rng: Random) -> QA:
    t, m = rng.choice(list(w.MADE_OF.items()))
    return qa(rng, "{What is [t] made of|What do you need to make [t]}?", "[t] is made of [m].", m, t=t, m=m)


def shape(rng: Random) -> QA:
    s, n = rng.choice(list(w.SHAPES.items()))
    return qa(rng, "How many {sides|corners} does a~ [s] have?", f"A~ [s] has {w.number(n)} sides.", w.number(n), s=s)


def body(rng: Random) -> QA:
    verb, part = rng.choice(list(w.BODY.items()))
    return qa(rng, "{What do we [v] with|With what do we [v]|Which part of the body do we use to [v]}?",
              "We [v] with our [p].", part, v=verb, p=part)


def count_fact(rng: Random) -> QA:
    question, answer, short = rng.choice(w.COUNT_FACTS)
    return qa(rng, f"How many {question}?", answer, short)


def nature(rng: Random) -> QA:
    question, answer = rng.choice(w.NATURE + w.WHY)
    return qa(rng, f"{question}?", answer)


def job_meaning(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "{What does a~ [v.job] do|What is a~ [v.job]|What is the work of a~ [v.job]}?", "A~ [v.job] [v.work].", v=v)


# Each kind with its share.
TIME_TOPICS = [(day_after, 2), (month, 2), (season, 1)]
THING_TOPICS = [(sound, 2), (animal_fact, 5), (size, 2), (colour, 3), (colour_things, 0.5), (opposite, 3), (capital,
                3), (category, 1.5), (listing, 2), (tool, 1.5), (made_of, 1), (shape, 0.5), (body, 0.7), (count_fact, 1.5),
                (nature, 3), (job_meaning, 0.7)]
