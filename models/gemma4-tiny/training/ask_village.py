"""Questions about the people and the places of Fernhill."""
from random import Random

import world as w
from asking import QA, qa, the
from stories import BOYS, GIRLS, invented


def who_is(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "{Who is [v]|Tell me about [v]|Do you know [v]|What do you know about [v]|Can you tell me something about [v]}?",
              "[v] is the [v.job] of Fernhill. [v.he] lives in the [v.house] house and has a~ [v.pet] named [v.petname].", v=v)


def job(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "{What is [v]'s job|What does [v] do|What does [v] do for work|What is the job of [v]|"
              "What kind of work does [v] do|What is [v]'s profession|What does [v] do for a living}?",
              "[v] is the [v.job] of Fernhill. [v.he] [v.work].", v.job, v=v)


def job_owner(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.3:
        return qa(rng, "{Who [v.work] in Fernhill|Who [v.work]}?", "[v] the [v.job] [v.work].", v.name, v=v)
    return qa(rng, "{Who is the [v.job]|Who is the [v.job] of Fernhill|Who is the [v.job] in Fernhill|"
              "What is the name of the [v.job]|What is the [v.job] called|Do you know who the [v.job] is}?",
              "[v] is the [v.job] of Fernhill.", v.name, v=v)


def workplace(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.5:
        return qa(rng, "{Where does [v] work|Where does [v] the [v.job] work|What is [v]'s place of work}?",
                  "[v] works at the [v.workplace].", v=v)
    return qa(rng, "{Who works at the [v.workplace]|Who can I find at the [v.workplace]}?",
              "[v] works at the [v.workplace].", v.name, v=v)


def pet(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.3:
        return qa(rng, "{Does [v] have a pet|Has [v] got a pet|Does [v] have an animal}?",
                  "Yes, [v] has a~ [v.pet] named [v.petname].", "Yes", v=v)
    return qa(rng, "{What pet does [v] have|What kind of pet does [v] have|What is [v]'s pet|What animal does [v] have|"
              "Which animal lives with [v]|Tell me about [v]'s pet}?", "[v] has a~ [v.pet] named [v.petname].", v.pet, v=v)


def pet_owner(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.5:
        return qa(rng, "{Who has a~ [v.pet]|Who in Fernhill has a~ [v.pet]|Whose pet is a~ [v.pet]|Who owns a~ [v.pet]}?",
                  "[v] has a~ [v.pet] named [v.petname].", v.name, v=v)
    return qa(rng, "{Whose [v.pet] is [v.petname]|Who is the owner of [v.petname]|Whose pet is [v.petname]|"
              "Who does [v.petname] belong to|Who has a pet named [v.petname]}?",
              "[v.petname] is [v]'s [v.pet].", v.name, v=v)


def pet_name(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "{What is the name of [v]'s [v.pet]|What is [v]'s [v.pet] called|What is [v]'s [v.pet]'s name|"
              "What is the name of [v]'s pet|What did [v] name [v.his] [v.pet]}?",
              "The name of [v]'s [v.pet] is [v.petname].", v.petname, v=v)


def pet_kind(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.5:
        return qa(rng, "{Who is [v.petname]|Tell me about [v.petname]|Do you know [v.petname]}?",
                  "[v.petname] is [v]'s [v.petcolour] [v.pet].", v=v)
    return qa(rng, "{What animal is [v.petname]|What kind of animal is [v.petname]|What is [v.petname]}?",
              "[v.petname] is a~ [v.pet].", v.pet, v=v)


def pet_colour(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "What {colour|colour|color} is {[v.petname]|[v]'s [v.pet]|[v.petname] the [v.pet]}?",
              "{[v.petname] is [v.petcolour].|[v]'s [v.pet] is [v.petcolour].}", v.petcolour, v=v)


def house(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.3:
        return qa(rng, "{Where does [v] live|In which house does [v] live|Which house is [v]'s house}?",
                  "[v] lives in the [v.house] house.", v=v)
    return qa(rng, "{What colour is [v]'s house|What color is [v]'s house|What colour is the house of [v]|"
              "Which colour does [v]'s house have|What is the colour of [v]'s house|What colour is [v] the [v.job]'s house}?",
              "[v]'s house is [v.house].", v.house, v=v)


def house_owner(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "{Who lives in the [v.house] house|Whose house is [v.house]|Who has a~ [v.house] house|"
              "Who owns the [v.house] house}?", "[v] lives in the [v.house] house.", v.name, v=v)


def food(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.35:
        return qa(rng, "{Who likes [v.food]|Who loves [v.food]|Whose favourite food is [v.food]|Who likes to eat [v.food]}?",
                  "[v] likes [v.food].", v.name, v=v)
    return qa(rng, "{What is [v]'s favourite food|What is [v]'s favorite food|What does [v] like to eat|What food does [v] like|"
              "What does [v] love to eat|What is the favourite food of [v]}?", "[v]'s favourite food is [v.food].", v=v)


def hobby(rng: Random) -> QA:
    v = the(rng)
    if rng.random() < 0.35:
        return qa(rng, "{Who likes [v.hobby]|Who loves [v.hobby]|Whose hobby is [v.hobby]}?", "[v] likes [v.hobby].", v.name, v=v)
    return qa(rng, "{What is [v]'s hobby|What does [v] do in [v.his] free time|What does [v] like to do|What hobby does [v] have|"
              "What does [v] do for fun}?", "[v]'s hobby is [v.hobby].", v=v)


def friend(rng: Random) -> QA:
    v = the(rng)
    return qa(rng, "{Who is [v]'s best friend|Who is the best friend of [v]|Who is [v]'s friend|Who is a friend of [v]}?",
              "[v]'s best friend is [v.friend].", v.friend, v=v)


def villager_yes_no(rng: Random) -> QA:
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


def two_hops(rng: Random) -> QA:
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


def two_things(rng: Random) -> QA:
    question, answer = rng.choice([
        ("Who lives in the [v.house] house and what does [v.he] do?", "[v] lives in the [v.house] house. [v.he] is the [v.job] of Fernhill."),
        ("Who is the [v.job] and where does [v.he] live?", "[v] is the [v.job] of Fernhill. [v.he] lives in the [v.house] house."),
        ("What is [v]'s job and what pet does [v.he] have?", "[v] is the [v.job] of Fernhill. [v.he] has a~ [v.pet] named [v.petname]."),
        ("Who has a~ [v.pet] and what is its name?", "[v] has a~ [v.pet] named [v.petname]."),
        ("What does [v] like to eat and to do?", "[v]'s favourite food is [v.food], and [v.his] hobby is [v.hobby]."),
    ])
    return qa(rng, question, answer, v=the(rng))


def stranger(rng: Random) -> QA:
    name = invented(rng).capitalize() if rng.random() < 0.3 else rng.choice(GIRLS + BOYS)
    return qa(rng, "{Who is [n]|What is [n]'s job|What colour is [n]'s house|What pet does [n] have|Where does [n] live|"
              "What is [n]'s favourite food|Who is [n]'s best friend|What is the name of [n]'s [p]}?",
              "I do not know anyone named [n] in Fernhill.", n=name, p=the(rng).pet)


def missing_job(rng: Random) -> QA:
    return qa(rng, "{Who is the [j] of Fernhill|Who is the [j] in Fernhill}?", "There is no [j] in Fernhill.",
              j=rng.choice("king queen dentist pilot soldier tailor butcher singer judge hunter".split()))


# --- the village ---

def place(rng: Random) -> QA:
    name, where = rng.choice(list(w.PLACES.items()))
    return qa(rng, "{Where is the [p]|Where can I find the [p]|Where is the [p] in Fernhill|How do I find the [p]|"
              "Can you tell me where the [p] is}?", "The [p] is [where].", p=name, where=where)


def village_day(rng: Random) -> QA:
    day, (name, what) = rng.choice(list(w.WEEK.items()))
    if rng.random() < 0.5:
        return qa(rng, "{What happens in Fernhill on [d]|What happens on [d]|What is on [d]s in Fernhill|What do people do on [d]}?",
                  "On [d], [w].", d=day, w=what)
    return qa(rng, "{When is the [n]|On which day is the [n]|What day is the [n]|When is the [n] in Fernhill}?",
              "The [n] is on [d].", day, n=name, d=day)


def village_fact(rng: Random) -> QA:
    question, answer = rng.choice(w.VILLAGE_FACTS)
    return qa(rng, question, answer)


def people(rng: Random) -> QA:
    names = [v.name for v in w.VILLAGERS]
    return rng.choice([
        qa(rng, "{Who lives in Fernhill|Tell me the names of the people in Fernhill|Which people live in Fernhill}?",
           f"{w.join(names)} live in Fernhill, and Grandma Rose is the mayor."),
        qa(rng, "{Name three people from Fernhill.|Tell me three people who live in Fernhill.}", f"{w.join(rng.sample(names, 3))} live in Fernhill."),
    ])


# Each kind with its share.
VILLAGER_TOPICS = [(who_is, 2), (job, 3), (job_owner, 3), (workplace, 2), (pet, 3), (pet_owner, 3), (pet_name, 3),
                   (pet_kind, 2), (pet_colour, 2), (house, 3), (house_owner, 3), (food, 3), (hobby, 2), (friend, 2),
                   (villager_yes_no, 2), (two_hops, 3), (two_things, 1.5), (stranger, 1.5), (missing_job, 0.5)]
VILLAGE_TOPICS = [(place, 3), (village_day, 2.5), (village_fact, 1.5), (people, 0.5)]
