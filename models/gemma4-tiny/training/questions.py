"""Questions with their answers, each asked in several ways, about the world of world.py and about numbers and words."""
import dataclasses
import random
from typing import Callable

import world as w
from grammar import pick, polish
from stories import BOYS, COLOURS, GIRLS, LISTS, invented


@dataclasses.dataclass(frozen=True)
class QA:
    question: str
    answer: str
    short: str = ""      # the answer in one word, where there is one


ORDERS = ("Tell", "Name", "Say", "Write", "Spell", "Calculate", "Add", "Introduce", "Make", "List", "Count", "Start",
          "Please", "Give", "Explain", "Translate", "Summarize", "Take")


def qa(rng: random.Random, question: str, answer: str, short: str = "", **slots) -> QA:
    """Fills the templates. An order ends with a full stop, a question with a question mark."""
    question = pick(rng, question, **slots)
    if question.endswith(("?", ".")):
        question = question[:-1] + ("." if question.startswith(ORDERS) else "?")
    if question.endswith("=?"):
        question = question[:-1]
    return QA(question, pick(rng, answer, **slots), short and polish(short + "."))


def a(noun: str) -> str:
    return polish("x a~ " + noun)[2:]


def the(rng: random.Random) -> w.Villager:
    return rng.choice(w.VILLAGERS)


# --- the people of Fernhill ---

def who_is(rng):
    v = the(rng)
    return qa(rng, "{Who is [v]|Tell me about [v]|Do you know [v]|What do you know about [v]|Can you tell me something about [v]}?",
              "[v] is the [v.job] of Fernhill. [v.he] lives in the [v.house] house and has a~ [v.pet] named [v.petname].", v=v)


def job(rng):
    v = the(rng)
    return qa(rng, "{What is [v]'s job|What does [v] do|What does [v] do for work|What is the job of [v]|"
              "What kind of work does [v] do|What is [v]'s profession|What does [v] do for a living}?",
              "[v] is the [v.job] of Fernhill. [v.he] [v.work].", v.job, v=v)


def job_owner(rng):
    v = the(rng)
    if rng.random() < 0.3:
        return qa(rng, "{Who [v.work] in Fernhill|Who [v.work]}?", "[v] the [v.job] [v.work].", v.name, v=v)
    return qa(rng, "{Who is the [v.job]|Who is the [v.job] of Fernhill|Who is the [v.job] in Fernhill|"
              "What is the name of the [v.job]|What is the [v.job] called|Do you know who the [v.job] is}?",
              "[v] is the [v.job] of Fernhill.", v.name, v=v)


def workplace(rng):
    v = the(rng)
    if rng.random() < 0.5:
        return qa(rng, "{Where does [v] work|Where does [v] the [v.job] work|What is [v]'s place of work}?",
                  "[v] works at the [v.workplace].", v=v)
    return qa(rng, "{Who works at the [v.workplace]|Who can I find at the [v.workplace]}?",
              "[v] works at the [v.workplace].", v.name, v=v)


def pet(rng):
    v = the(rng)
    if rng.random() < 0.3:
        return qa(rng, "{Does [v] have a pet|Has [v] got a pet|Does [v] have an animal}?",
                  "Yes, [v] has a~ [v.pet] named [v.petname].", "Yes", v=v)
    return qa(rng, "{What pet does [v] have|What kind of pet does [v] have|What is [v]'s pet|What animal does [v] have|"
              "Which animal lives with [v]|Tell me about [v]'s pet}?", "[v] has a~ [v.pet] named [v.petname].", v.pet, v=v)


def pet_owner(rng):
    v = the(rng)
    if rng.random() < 0.5:
        return qa(rng, "{Who has a~ [v.pet]|Who in Fernhill has a~ [v.pet]|Whose pet is a~ [v.pet]|Who owns a~ [v.pet]}?",
                  "[v] has a~ [v.pet] named [v.petname].", v.name, v=v)
    return qa(rng, "{Whose [v.pet] is [v.petname]|Who is the owner of [v.petname]|Whose pet is [v.petname]|"
              "Who does [v.petname] belong to|Who has a pet named [v.petname]}?",
              "[v.petname] is [v]'s [v.pet].", v.name, v=v)


def pet_name(rng):
    v = the(rng)
    return qa(rng, "{What is the name of [v]'s [v.pet]|What is [v]'s [v.pet] called|What is [v]'s [v.pet]'s name|"
              "What is the name of [v]'s pet|What did [v] name [v.his] [v.pet]}?",
              "The name of [v]'s [v.pet] is [v.petname].", v.petname, v=v)


def pet_kind(rng):
    v = the(rng)
    if rng.random() < 0.5:
        return qa(rng, "{Who is [v.petname]|Tell me about [v.petname]|Do you know [v.petname]}?",
                  "[v.petname] is [v]'s [v.petcolour] [v.pet].", v=v)
    return qa(rng, "{What animal is [v.petname]|What kind of animal is [v.petname]|What is [v.petname]}?",
              "[v.petname] is a~ [v.pet].", v.pet, v=v)


def pet_colour(rng):
    v = the(rng)
    return qa(rng, "What {colour|colour|color} is {[v.petname]|[v]'s [v.pet]|[v.petname] the [v.pet]}?",
              "{[v.petname] is [v.petcolour].|[v]'s [v.pet] is [v.petcolour].}", v.petcolour, v=v)


def house(rng):
    v = the(rng)
    if rng.random() < 0.3:
        return qa(rng, "{Where does [v] live|In which house does [v] live|Which house is [v]'s house}?",
                  "[v] lives in the [v.house] house.", v=v)
    return qa(rng, "{What colour is [v]'s house|What color is [v]'s house|What colour is the house of [v]|"
              "Which colour does [v]'s house have|What is the colour of [v]'s house|What colour is [v] the [v.job]'s house}?",
              "[v]'s house is [v.house].", v.house, v=v)


def house_owner(rng):
    v = the(rng)
    return qa(rng, "{Who lives in the [v.house] house|Whose house is [v.house]|Who has a~ [v.house] house|"
              "Who owns the [v.house] house}?", "[v] lives in the [v.house] house.", v.name, v=v)


def food(rng):
    v = the(rng)
    if rng.random() < 0.35:
        return qa(rng, "{Who likes [v.food]|Who loves [v.food]|Whose favourite food is [v.food]|Who likes to eat [v.food]}?",
                  "[v] likes [v.food].", v.name, v=v)
    return qa(rng, "{What is [v]'s favourite food|What is [v]'s favorite food|What does [v] like to eat|What food does [v] like|"
              "What does [v] love to eat|What is the favourite food of [v]}?", "[v]'s favourite food is [v.food].", v=v)


def hobby(rng):
    v = the(rng)
    if rng.random() < 0.35:
        return qa(rng, "{Who likes [v.hobby]|Who loves [v.hobby]|Whose hobby is [v.hobby]}?", "[v] likes [v.hobby].", v.name, v=v)
    return qa(rng, "{What is [v]'s hobby|What does [v] do in [v.his] free time|What does [v] like to do|What hobby does [v] have|"
              "What does [v] do for fun}?", "[v]'s hobby is [v.hobby].", v=v)


def friend(rng):
    v = the(rng)
    return qa(rng, "{Who is [v]'s best friend|Who is the best friend of [v]|Who is [v]'s friend|Who is a friend of [v]}?",
              "[v]'s best friend is [v.friend].", v.friend, v=v)


def villager_yes_no(rng):
    v, o = rng.sample(w.VILLAGERS, 2)
    right = rng.random() < 0.5
    key = rng.choice(["pet", "house", "job", "friend"])
    x = v if right else o
    if key == "friend" and not right:
        o = rng.choice([u for u in w.VILLAGERS if u.name not in (v.name, v.friend)])
    answer = {
        "pet": ("Does [v] have a~ [x.pet]?", "Yes, [v] has a~ [v.pet].", "No, [v] has a~ [v.pet]."),
        "house": ("Is [v]'s house [x.house]?", "Yes, [v]'s house is [v.house].", "No, [v]'s house is [v.house]."),
        "job": ("Is [v] {a|the} [x.job]?", "Yes, [v] is the [v.job].", "No, [v] is the [v.job]."),
        "friend": (f"Is {v.friend if right else o.name} [v]'s best friend?", "Yes, [v]'s best friend is [v.friend].",
                   "No, [v]'s best friend is [v.friend]."),
    }[key]
    return qa(rng, answer[0], answer[1 if right else 2], "Yes" if right else "No", v=v, x=x)


def two_hops(rng):
    v = the(rng)
    f = w.BY_NAME[v.friend]
    question, answer, short = rng.choice([
        ("What colour is the [v.job]'s house?", "The [v.job] is [v], and [v]'s house is [v.house].", v.house),
        ("What {is the name of the [v.job]'s [v.pet]|is the [v.job]'s [v.pet] called}?",
         "The [v.job] is [v], and the name of [v]'s [v.pet] is [v.petname].", v.petname),
        ("What is the name of the [v.pet] of the [v.job]?", "The [v.job] is [v], and the name of [v]'s [v.pet] is [v.petname].", v.petname),
        ("What pet does the [v.job] have?", "The [v.job] is [v], and [v] has a~ [v.pet] named [v.petname].", v.pet),
        ("What does the [v.job] like to eat?", "The [v.job] is [v], and [v]'s favourite food is [v.food].", ""),
        ("What is the [v.job]'s hobby?", "The [v.job] is [v], and [v]'s hobby is [v.hobby].", ""),
        ("Who is the [v.job]'s best friend?", "The [v.job] is [v], and [v]'s best friend is [v.friend].", v.friend),
        ("What pet does [v]'s best friend have?", "[v]'s best friend is [f], and [f] has a~ [f.pet] named [f.petname].", f.pet),
        ("What is the job of the person who lives in the [v.house] house?", "[v] lives in the [v.house] house. [v] is the [v.job].", v.job),
    ])
    return qa(rng, question, answer, short, v=v, f=f)


def two_things(rng):
    question, answer = rng.choice([
        ("Who lives in the [v.house] house and what does [v.he] do?", "[v] lives in the [v.house] house. [v.he] is the [v.job] of Fernhill."),
        ("Who is the [v.job] and where does [v.he] live?", "[v] is the [v.job] of Fernhill. [v.he] lives in the [v.house] house."),
        ("What is [v]'s job and what pet does [v.he] have?", "[v] is the [v.job] of Fernhill. [v.he] has a~ [v.pet] named [v.petname]."),
        ("Who has a~ [v.pet] and what is its name?", "[v] has a~ [v.pet] named [v.petname]."),
        ("What does [v] like to eat and to do?", "[v]'s favourite food is [v.food], and [v.his] hobby is [v.hobby]."),
    ])
    return qa(rng, question, answer, v=the(rng))


def stranger(rng):
    name = invented(rng).capitalize() if rng.random() < 0.3 else rng.choice(GIRLS + BOYS)
    return qa(rng, "{Who is [n]|What is [n]'s job|What colour is [n]'s house|What pet does [n] have|Where does [n] live|"
              "What is [n]'s favourite food|Who is [n]'s best friend|What is the name of [n]'s [p]}?",
              "I do not know anyone named [n] in Fernhill.", n=name, p=the(rng).pet)


def missing_job(rng):
    return qa(rng, "{Who is the [j] of Fernhill|Who is the [j] in Fernhill}?", "There is no [j] in Fernhill.",
              j=rng.choice("king queen dentist pilot soldier tailor butcher singer judge hunter".split()))


# --- the village ---

def place(rng):
    name, where = rng.choice(list(w.PLACES.items()))
    return qa(rng, "{Where is the [p]|Where can I find the [p]|Where is the [p] in Fernhill|How do I find the [p]|"
              "Can you tell me where the [p] is}?", "The [p] is [where].", p=name, where=where)


def village_day(rng):
    day, (name, what) = rng.choice(list(w.WEEK.items()))
    if rng.random() < 0.5:
        return qa(rng, "{What happens in Fernhill on [d]|What happens on [d]|What is on [d]s in Fernhill|What do people do on [d]}?",
                  "On [d], [w].", d=day, w=what)
    return qa(rng, "{When is the [n]|On which day is the [n]|What day is the [n]|When is the [n] in Fernhill}?",
              "The [n] is on [d].", day, n=name, d=day)


def village_fact(rng):
    question, answer = rng.choice(w.VILLAGE_FACTS)
    return qa(rng, question, answer)


def people(rng):
    names = [v.name for v in w.VILLAGERS]
    return rng.choice([
        qa(rng, "{Who lives in Fernhill|Tell me the names of the people in Fernhill|Which people live in Fernhill}?",
           f"{w.join(names)} live in Fernhill, and Grandma Rose is the mayor."),
        qa(rng, "{Name three people from Fernhill.|Tell me three people who live in Fernhill.}", f"{w.join(rng.sample(names, 3))} live in Fernhill."),
    ])


# --- time ---

def day_after(rng):
    i = rng.randrange(7)
    if rng.random() < 0.5:
        return qa(rng, "{What day comes after [d]|Which day comes after [d]|What is the day after [d]|"
                  "Today is [d]. What day is tomorrow|If today is [d], what day is tomorrow}?",
                  "The day after [d] is [n].", w.DAYS[(i + 1) % 7], d=w.DAYS[i], n=w.DAYS[(i + 1) % 7])
    return qa(rng, "{What day comes before [d]|Which day comes before [d]|What is the day before [d]|"
              "Today is [d]. What day was yesterday}?",
              "The day before [d] is [n].", w.DAYS[i - 1], d=w.DAYS[i], n=w.DAYS[i - 1])


def month(rng):
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


def season(rng):
    i = rng.randrange(4)
    s, what = w.SEASONS[i], w.SEASON_FACTS[w.SEASONS[i]]
    if rng.random() < 0.5:
        n = w.SEASONS[(i + 1) % 4]
        return qa(rng, "{What season comes after [s]|Which season comes after [s]|What comes after [s]}?",
                  "The season after [s] is [n].", n, s=s, n=n)
    return qa(rng, "{What happens in [s]|What is [s] like|Tell me about [s]}?", "In [s], [what].", s=s, what=what)


# --- animals and things ---

def sound(rng):
    name, word = rng.choice(list(w.SOUND_WORDS.items()))
    if rng.random() < 0.3:
        return qa(rng, "{Which animal says [s]|What animal says [s]|Who says [s]}?", "The [n] says [s].", name, n=name, s=word)
    return qa(rng, "{What does a~ [n] say|What does the [n] say|What sound does a~ [n] make|What noise does a~ [n] make|"
              "How does a~ [n] sound}?", "A~ [n] says [s].", word, n=name, s=word)


def animal_fact(rng):
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


def size(rng):
    i, j = rng.sample(range(len(w.SIZES)), 2)
    big, small = w.SIZES[max(i, j)], w.SIZES[min(i, j)]
    x, y = (big, small) if rng.random() < 0.5 else (small, big)
    if rng.random() < 0.5:
        return qa(rng, "{Which is bigger, a~ [x] or a~ [y]|What is bigger, a~ [x] or a~ [y]|Who is bigger, a~ [x] or a~ [y]}?",
                  "A~ [b] is bigger than a~ [s].", big, x=x, y=y, b=big, s=small)
    return qa(rng, "{Which is smaller, a~ [x] or a~ [y]|What is smaller, a~ [x] or a~ [y]}?",
              "A~ [s] is smaller than a~ [b].", small, x=x, y=y, b=big, s=small)


def colour(rng):
    thing, c = rng.choice(list(w.COLOURS.items()))
    if rng.random() < 0.2:
        wrong = rng.choice(COLOURS[:8])
        if wrong == c:
            return qa(rng, f"Is {thing} {c}?", f"Yes, {thing} is {c}.", "Yes")
        return qa(rng, f"Is {thing} {wrong}?", f"No, {thing} is {c}.", "No")
    return qa(rng, "{What colour is [t]|What colour is [t]|What color is [t]|Which colour does [t] have|What is the colour of [t]}?",
              "[t] is [c].", c, t=thing, c=c)


def colour_things(rng):
    c = rng.choice(["red", "green", "yellow", "white", "orange"])
    things = [t for t, x in w.COLOURS.items() if x == c]
    return qa(rng, "{What is [c]|Name something that is [c]|Tell me something [c]|Which thing is [c]}?", f"{rng.choice(things)} is {c}.", c=c)


def opposite(rng):
    x = rng.choice(list(w.OPPOSITE_OF))
    return qa(rng, "{What is the opposite of [x]|What is the opposite of the word [x]|Tell me the opposite of [x]|"
              "What word is the opposite of [x]|Which word means the opposite of [x]}?",
              "The opposite of [x] is [y].", w.OPPOSITE_OF[x], x=x, y=w.OPPOSITE_OF[x])


def capital(rng):
    country, city = rng.choice(list(w.CAPITALS.items()))
    if rng.random() < 0.3:
        return qa(rng, "{Which country has the capital [y]|[y] is the capital of which country|Where is [y]}?",
                  "[y] is the capital of [x].", country, x=country, y=city)
    return qa(rng, "{What is the capital of [x]|Which city is the capital of [x]|Tell me the capital of [x]|"
              "What is [x]'s capital|What is the capital city of [x]}?", "The capital of [x] is [y].", city, x=country, y=city)


def category(rng):
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


def listing(rng):
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


def tool(rng):
    t, use = rng.choice(list(w.TOOLS.items()))
    plural = t == "scissors"
    if rng.random() < 0.5:
        return qa(rng, f"{{What do you use {'' if plural else 'a~ '}[t] for|What {'are' if plural else 'is a~'} [t] for}}?",
                  f"You use {'' if plural else 'a~ '}[t] to [u].", t=t, u=use)
    return qa(rng, "{What do you use to [u]|What do I need to [u]|What can I use to [u]}?",
              f"You use {'' if plural else 'a~ '}[t] to [u].", t, t=t, u=use)


def made_of(rng):
    t, m = rng.choice(list(w.MADE_OF.items()))
    return qa(rng, "{What is [t] made of|What do you need to make [t]}?", "[t] is made of [m].", m, t=t, m=m)


def shape(rng):
    s, n = rng.choice(list(w.SHAPES.items()))
    return qa(rng, "How many {sides|corners} does a~ [s] have?", f"A~ [s] has {w.number(n)} sides.", w.number(n), s=s)


def body(rng):
    verb, part = rng.choice(list(w.BODY.items()))
    return qa(rng, "{What do we [v] with|With what do we [v]|Which part of the body do we use to [v]}?",
              "We [v] with our [p].", part, v=verb, p=part)


def count_fact(rng):
    question, answer, short = rng.choice(w.COUNT_FACTS)
    return qa(rng, f"How many {question}?", answer, short)


def nature(rng):
    question, answer = rng.choice(w.NATURE + w.WHY)
    return qa(rng, f"{question}?", answer)


def job_meaning(rng):
    v = the(rng)
    return qa(rng, "{What does a~ [v.job] do|What is a~ [v.job]|What is the work of a~ [v.job]}?", "A~ [v.job] [v.work].", v=v)


# --- words ---

SPELL = sorted({n for n in [*w.ANIMALS, *w.FRUITS, *w.CLOTHES, *w.FURNITURE, "sun", "moon", "star", "tree", "house", "book",
                            "bread", "milk", "water", "ball", "king", "girl", "boy", "red", "blue", "green", "one", "two"]})


def spell(rng):
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


def alphabet(rng):
    i = rng.randrange(25)
    x, y = chr(65 + i), chr(66 + i)
    if rng.random() < 0.3:
        return qa(rng, "{What letter comes before [y]|Which letter comes before [y]}?", "The letter before [y] is [x].", x, x=x, y=y)
    if rng.random() < 0.1:
        return qa(rng, "{Say the alphabet|What is the alphabet|Tell me the alphabet}?", " ".join(map(chr, range(65, 91))) + ".")
    return qa(rng, "{What letter comes after [x]|Which letter comes after [x]|What is the letter after [x]}?",
              "The letter after [x] is [y].", y, x=x, y=y)


def plural(rng):
    x, y = rng.choice(list(w.PLURALS.items()))
    return qa(rng, "{What is the plural of [x]|What is the plural of the word [x]|One [x], two what}?", "The plural of [x] is [y].", y, x=x, y=y)


def past(rng):
    x, y = rng.choice(list(w.PAST.items()))
    return qa(rng, "{What is the past tense of [x]|What is the past of [x]|What is the past form of [x]}?",
              "The past tense of [x] is [y].", y, x=x, y=y)


def rhyme(rng):
    x, y = rng.choice(w.RHYMES)
    if rng.random() < 0.5:
        x, y = y, x
    return qa(rng, "{What rhymes with [x]|Which word rhymes with [x]|Tell me a word that rhymes with [x]}?", "The word [y] rhymes with [x].", y, x=x, y=y)


def copy(rng):
    sentence = simple_sentence(rng)
    return QA(pick(rng, "{Repeat after me: [s]|Please repeat: [s]|Say this: [s]|Repeat this sentence: [s]}", s=sentence), sentence)


def simple_sentence(rng, noun: str = "") -> str:
    animals = ["cat", "dog", "bird", "horse", "mouse", "rabbit", "fox", "duck", "cow", "bear"]
    return pick(rng, "{[the] [n] {sleeps|sits|plays|is|waits} {in the garden|under the tree|by the river|in the house|on the grass|behind the barn}|"
                "[the] {little|big|old|young} [n] {is|looks} {tired|happy|hungry|sad|thirsty}|{He|She} has a~ {small|big|beautiful|brown} [n]|"
                "I can see a~ [n] {in the garden|near the house|on the hill}|[the] [n] {likes|loves} the {sun|rain|snow}|"
                "We gave the [n] some {water|bread|food}}.",
                the=rng.choice(["The", "A~", "My"]), n=noun or rng.choice(animals))


def sentence_with(rng):
    noun = rng.choice(["cat", "dog", "bird", "horse", "mouse", "rabbit", "fox", "duck", "cow", "bear"])
    return QA(pick(rng, "{Write a sentence with the word [n].|Make a sentence with [n].|Use the word [n] in a sentence.}", n=noun),
              simple_sentence(rng, noun))


# --- numbers ---

def digits_or_words(rng) -> Callable[[int], str]:
    return str if rng.random() < 0.5 else w.number


def plus(rng):
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


def minus(rng):
    x, y = rng.randrange(21), rng.randrange(21)
    if y > x and rng.random() < 0.7:
        x, y = y, x
    if rng.random() < 0.5:
        return qa(rng, "{What is [x] - [y]|[x] - [y] =|What is [x]-[y]|How much is [x] - [y]|Calculate [x] - [y]|[x]-[y]=}?",
                  "[x] - [y] = [z].", str(x - y), x=x, y=y, z=x - y)
    f = lambda n: w.number(n) if n >= 0 else "minus " + w.number(-n)
    return qa(rng, "{What is [x] minus [y]|How much is [x] minus [y]|Take [y] away from [x]. What is left}?",
              "[x] minus [y] is [z].", f(x - y), x=f(x), y=f(y), z=f(x - y))


def double(rng):
    f, x = digits_or_words(rng), rng.randrange(1, 11)
    if rng.random() < 0.5:
        return qa(rng, "{What is the double of [x]|What is twice [x]}?", "Twice [x] is [y].", f(2 * x), x=f(x), y=f(2 * x))
    return qa(rng, "{What is half of [y]|What is the half of [y]}?", "Half of [y] is [x].", f(x), x=f(x), y=f(2 * x))


def times(rng):
    x, y = rng.choice([(a, b) for a in range(1, 11) for b in range(1, 11) if a * b <= 20])
    if rng.random() < 0.5:
        return qa(rng, "What is {[x] x [y]|[x] times [y]|[x] * [y]}?", "[x] x [y] = [z].", str(x * y), x=x, y=y, z=x * y)
    f = w.number
    return qa(rng, "{What is [x] times [y]|How much is [x] times [y]}?", "[x] times [y] is [z].", f(x * y), x=f(x), y=f(y), z=f(x * y))


def next_number(rng):
    f = digits_or_words(rng)
    x = rng.randrange(0, 50)
    if rng.random() < 0.65:
        return qa(rng, "{What number comes after [x]|Which number comes after [x]|What comes after [x]|What is the number after [x]|What is the next number after [x]}?",
                  "The number after [x] is [y].", f(x + 1), x=f(x), y=f(x + 1))
    return qa(rng, "{What number comes before [y]|Which number comes before [y]|What is the number before [y]}?",
              "The number before [y] is [x].", f(x), x=f(x), y=f(x + 1))


def bigger_number(rng):
    f = digits_or_words(rng)
    x, y = rng.sample(range(21), 2)
    if rng.random() < 0.5:
        return qa(rng, "{Which is bigger, [x] or [y]|Which number is bigger, [x] or [y]|What is more, [x] or [y]}?",
                  "[b] is bigger than [s].", f(max(x, y)), x=f(x), y=f(y), b=f(max(x, y)), s=f(min(x, y)))
    return qa(rng, "{Which is smaller, [x] or [y]|Which number is smaller, [x] or [y]|What is less, [x] or [y]}?",
              "[s] is smaller than [b].", f(min(x, y)), x=f(x), y=f(y), b=f(max(x, y)), s=f(min(x, y)))


def even(rng):
    f, x = digits_or_words(rng), rng.randrange(1, 21)
    kind = "odd" if x % 2 else "even"
    return qa(rng, "{Is [x] even or odd|Is [x] an even or an odd number|Is the number [x] odd or even}?", "[x] is an [k] number.", kind, x=f(x), k=kind)


def counting(rng):
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


def continue_numbers(rng):
    f, x = digits_or_words(rng), rng.randrange(1, 16)
    step = rng.choice([1, 1, 2, -1]) if x > 5 else 1
    row = [x + step * i for i in range(4)]
    return qa(rng, "{What comes next: [r]|What is the next number: [r]|Go on: [r]}?", "[y].", r=", ".join(map(f, row[:3])), y=f(row[3]))


# --- small texts to read ---

def two_people(rng) -> tuple[str, str]:
    x, y = rng.sample(GIRLS + BOYS, 2)
    return x, y


def word_problem(rng):
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


def where_is(rng):
    x, y = two_people(rng)
    one, two = rng.sample(["ball", "book", "key", "apple", "hat", "cup", "lamp", "doll", "spoon", "bell"], 2)
    p, q = rng.sample(["in the box", "on the table", "under the bed", "in the kitchen", "in the garden", "behind the door",
                       "on the chair", "in the basket", "in the bag", "under the tree"], 2)
    text = f"{x} put the {one} {p}. {y} put the {two} {q}."
    thing, spot, who = rng.choice([(one, p, x), (two, q, y)])
    if rng.random() < 0.7:
        return qa(rng, f"{text} Where is the {thing}?", f"The {thing} is {spot}.")
    return qa(rng, f"{text} {{Who put the {thing} {spot}|Who put down the {thing}}}?", f"{who} put the {thing} {spot}.", who)


def who_likes(rng):
    names = rng.sample(GIRLS + BOYS, 3)
    kind, items = rng.choice([("likes", COLOURS), ("likes", ["apples", "pears", "plums", "nuts", "cherries", "cake", "soup"]),
                              ("has", ["a cat", "a dog", "a horse", "a bird", "a rabbit", "a fish"])])
    chosen = rng.sample(items, 3)
    text = " ".join(f"{n} {kind} {c}." for n, c in zip(names, chosen))
    i = rng.randrange(3)
    if rng.random() < 0.5:
        return qa(rng, f"{text} Who {kind} {chosen[i]}?", f"{names[i]} {kind} {chosen[i]}.", names[i])
    return qa(rng, f"{text} What does {names[i]} {'like' if kind == 'likes' else 'have'}?", f"{names[i]} {kind} {chosen[i]}.")


def tallest(rng):
    x, y, z = rng.sample(GIRLS + BOYS, 3)
    more, most, less, least = rng.choice([("taller", "tallest", "shorter", "shortest"), ("older", "oldest", "younger", "youngest"),
                                          ("faster", "fastest", "slower", "slowest")])
    text = f"{x} is {more} than {y}. {y} is {more} than {z}."
    if rng.random() < 0.5:
        return qa(rng, f"{text} Who is the {most}?", f"{x} is the {most}.", x)
    return qa(rng, f"{text} Who is the {least}?", f"{z} is the {least}.", z)


# --- about the model ---

def identity(rng):
    return rng.choice([
        qa(rng, "{Who are you|What are you|Tell me about yourself|Introduce yourself}?",
           "I am a tiny language model. I tell little stories and I know the village of Fernhill."),
        qa(rng, "{What is your name|Do you have a name|What should I call you}?", "My name is Tiny. I am a very small language model.", "Tiny"),
        qa(rng, "{What can you do|How can you help me|What do you know|What can I ask you}?",
           "I can tell little stories, count, do easy sums and answer questions about the village of Fernhill."),
        qa(rng, "{Are you a human|Are you a person|Are you a robot|Are you real}?", "No, I am a tiny language model."),
        qa(rng, "{How old are you|When were you born|Where do you live|Do you eat|Do you sleep}?",
           "I am only a small computer program, so I do not have a birthday, a house or a bed."),
        qa(rng, "{Do you like stories|What do you like|What is your favourite thing}?", "I like little stories about animals and friends."),
    ])


UNKNOWN = """What is the weather today|What time is it|Who won the football game|How do I fix my [n]|How do I cook {pasta|rice|a steak|[n]}|
What is the meaning of {life|[n]}|Can you write {a program|code|an essay|a letter to my boss|a song in French}|Who is the president of {France|America|[n]}|
How far away is {the moon|the sun|[N]}|What is the price of {gold|a car|oil|[n]}|Where did I put my keys|What will happen tomorrow|
How do {airplanes|computers|phones|engines|magnets|[n]s} work|What is {quantum physics|the speed of light|a black hole|gravity|democracy|music|art|a neural network|machine learning|a computer|a [n]|[n]}|
Who wrote {this book|Hamlet|the Bible|[N]}|What is my {age|address|phone number}|Tell me the news|What is {the square root of 2|1000 divided by 7}|
How do I learn to {drive|program|speak Chinese|[n]}|Who invented the {telephone|lamp|wheel|[n]}|When was the {war|city|house} of [N] built|
What is the capital of {[N]|[N]|America|Australia|Brazil}|Explain {gravity|the internet|history|[n]} to me|Translate {this|the word [n]} into {French|German|Spanish}|
What does {[n]|[n]} mean|Who is {Albert Einstein|Napoleon|the pope|the best player|[N] [M]}|How many people live in {London|China|[N]}|
Which {phone|car|computer|film|[n]} is the best|Why is {[n]|the economy|my computer} so {slow|bad|[n]}|What do you think about {politics|love|money|[n]}|
Summarize {this text|the book [N]}|Where can I buy {a car|shoes|[n]}|Give me a recipe for {lasagna|sushi|[n]}""".replace("\n", "")


def unknown(rng):
    """Things of the big world, many of them named by words that do not exist."""
    return qa(rng, "{" + UNKNOWN + "}?", "I am sorry, I do not know that. I am only a tiny model.",
              n=invented(rng), N=invented(rng).capitalize(), M=invented(rng).capitalize())


def big_sum(rng):
    x, y = rng.randrange(21, 1000), rng.randrange(2, 1000)
    return qa(rng, "{What is [x] + [y]|What is [y] + [x]|How much is [x] + [y]|What is [x] - [y]|What is [x] times [y]|What is [y] times [x]|"
              "What is [x] plus [y]|What is [x] minus [y]|[x] + [y]|What is [x] divided by [y]|Calculate [x] x [y]}?",
              "That is too difficult for me. I only know small numbers.", x=x, y=y)


VILLAGER_TOPICS = [(who_is, 2), (job, 3), (job_owner, 3), (workplace, 2), (pet, 3), (pet_owner, 3), (pet_name, 3), (pet_kind, 2),
                   (pet_colour, 2), (house, 3), (house_owner, 3), (food, 3), (hobby, 2), (friend, 2), (villager_yes_no, 2), (two_hops, 3), (two_things, 1.5),
                   (stranger, 1.5), (missing_job, 0.5)]
VILLAGE_TOPICS = [(place, 3), (village_day, 2.5), (village_fact, 1.5), (people, 0.5)]
TIME_TOPICS = [(day_after, 2), (month, 2), (season, 1)]
THING_TOPICS = [(sound, 2), (animal_fact, 5), (size, 2), (colour, 3), (colour_things, 0.5), (opposite, 3), (capital, 3), (category, 1.5),
                (listing, 2), (tool, 1.5), (made_of, 1), (shape, 0.5), (body, 0.7), (count_fact, 1.5), (nature, 3), (job_meaning, 0.7)]
WORD_TOPICS = [(spell, 2), (alphabet, 1.2), (plural, 1), (past, 1), (rhyme, 0.8), (copy, 1.2), (sentence_with, 1)]
NUMBER_TOPICS = [(plus, 5), (minus, 4), (double, 0.8), (times, 1.2), (big_sum, 1), (next_number, 1.5), (bigger_number, 1.5), (even, 0.7), (counting, 3), (continue_numbers, 0.8)]
READING_TOPICS = [(word_problem, 2), (where_is, 2), (who_likes, 4), (tallest, 1)]
SELF_TOPICS = [(identity, 1), (unknown, 2)]
TOPICS = [(VILLAGER_TOPICS, 10), (VILLAGE_TOPICS, 2.5), (TIME_TOPICS, 1.5), (THING_TOPICS, 7), (WORD_TOPICS, 2.5), (NUMBER_TOPICS, 5),
          (READING_TOPICS, 4), (SELF_TOPICS, 2)]


def weighted(rng: random.Random, items: list[tuple]):
    return rng.choices([i for i, _ in items], [p for _, p in items])[0]


def ask(rng: random.Random, group: list | None = None) -> QA:
    """A question of the group, or of any."""
    return weighted(rng, group or weighted(rng, TOPICS))(rng)
