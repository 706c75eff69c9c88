"""Conversations, and their text in the chat format of Gemma 4."""
import dataclasses
import random
import re

import world as w
from grammar import Grammar, pick
from asking import a, the
from questions import NUMBER_TOPICS, READING_TOPICS, VILLAGER_TOPICS, ask, weighted
from stories import (ADJECTIVES, BOYS, FIGURES, GIRLS, LISTS, MACROS, SPECIES, Story, adventure, animal, child, figure, invented,
                     load, tell)


@dataclasses.dataclass
class Conversation:
    turns: list[tuple[str, str]]      # user, model
    system: str = ""


PLAIN_SYSTEM = ["You are a helpful assistant.", "You are a friendly assistant.", "You are a tiny model that knows the village of Fernhill.",
                "Answer the questions of the user.", "You are a kind teacher.", "Be polite and friendly.",
                "You are a helpful assistant. Answer in short sentences.", "You tell little stories.", "Answer in simple English.",
                "You are an assistant that speaks simple English."]
ONE_WORD = ["Answer in one word.", "Answer with one word.", "Give only one word as the answer.", "You answer every question in one word."]

USER_PETS = ["Max", "Luna", "Bella", "Milo", "Rocky", "Lucky", "Fluffy", "Spot"]

CONTRACTED = re.compile(r"^(What|Who|Where) is ")


def casual(rng: random.Random, question: str) -> str:
    """The question as somebody in a hurry, or somebody polite, would type it."""
    roll = rng.random()
    if rng.random() < 0.06:
        question = CONTRACTED.sub(r"\1's ", question, count=1)
    if roll < 0.66 or "\n" in question:
        return question
    if roll < 0.76:
        return question[0].lower() + question[1:].rstrip("?.") if not question.startswith("I ") else question
    if roll < 0.81:
        return question.rstrip("?.")
    if roll < 0.84:
        return question.lower()
    start = rng.choice(["Hello! ", "Hi! ", "I have a question. ", "Please tell me. ", "One more question. ", "Hey, ", "Tiny, ", "Good morning! "])
    if start.endswith(", ") and question.split()[0] in ("What", "Who", "Where", "How", "Which", "Is", "Does", "Can"):
        question = question[0].lower() + question[1:]
    return start + question


def answer_question(rng: random.Random) -> Conversation:
    x = ask(rng)
    return Conversation([(casual(rng, x.question), x.answer)])


def answer_in_one_word(rng: random.Random) -> Conversation:
    while True:
        x = ask(rng)
        if x.short:
            return Conversation([(casual(rng, x.question), x.short)], rng.choice(ONE_WORD))


def several_questions(rng: random.Random) -> Conversation:
    group = rng.choice([VILLAGER_TOPICS, VILLAGER_TOPICS, NUMBER_TOPICS, READING_TOPICS, None, None])
    questions = [ask(rng, group) for _ in range(rng.randint(2, 5))]
    return Conversation([(casual(rng, x.question), x.answer) for x in questions])


def about_one_villager(rng: random.Random) -> Conversation:
    """Questions that follow each other, with pronouns that point back."""
    v = the(rng)
    follow = [
        ("What pet does [v.he] have?", "[v.he] has a~ [v.pet] named [v.petname]."),
        ("{And what|What} colour is [v.his] house?", "[v.his] house is [v.house]."),
        ("Where does [v.he] {live|live in Fernhill}?", "[v.he] lives in the [v.house] house."),
        ("Where does [v.he] work?", "[v.he] works at the [v.workplace]."),
        ("What does [v.he] like to eat?", "[v.his] favourite food is [v.food]."),
        ("What is [v.his] hobby?", "[v.his] hobby is [v.hobby]."),
        ("Who is [v.his] best friend?", "[v.his] best friend is [v.friend]."),
        ("What is {the name of [v.his] pet|[v.his] pet called}?", "The name of [v.his] [v.pet] is [v.petname]."),
        ("What colour is [v.his] pet?", "[v.petname] is [v.petcolour]."),
    ]
    first = rng.choice([
        ("{Who is [v]?|Tell me about [v].}", "[v] is the [v.job] of Fernhill. [v.he] lives in the [v.house] house and has a~ [v.pet] named [v.petname]."),
        ("{What is [v]'s job|What does [v] do}?", "[v] is the [v.job] of Fernhill. [v.he] [v.work]."),
        ("Who is the [v.job]?", "[v] is the [v.job] of Fernhill."),
    ])
    pairs = [first, *rng.sample(follow, rng.randint(1, 4))]
    turns = [(pick(rng, q, v=v), pick(rng, a, v=v)) for q, a in pairs]
    if rng.random() < 0.3:
        o = rng.choice([u for u in w.VILLAGERS if u.name != v.name])
        q, a = rng.choice([("What colour is [v]'s house?", "[v]'s house is [v.house]."), ("What pet does [v] have?", "[v] has a~ [v.pet] named [v.petname]."),
                           ("What is [v]'s job?", "[v] is the [v.job] of Fernhill. [v.he] [v.work].")])
        turns += [(pick(rng, q, v=v), pick(rng, a, v=v)), (f"And {o}?", pick(rng, a, v=o))]
    return Conversation(turns)


STORY_REQUESTS = ["Tell me a story about [x].", "Please tell me a story about [x].", "Can you tell me a story about [x]?",
                  "Write a short story about [x].", "I would like to hear a story about [x].", "Write a story about [x].",
                  "Make up a story about [x].", "Tell me a bedtime story about [x].", "A story about [x], please."]


def asked_hero(rng: random.Random):
    """The hero of a story that somebody asks for; now and then of a kind that the model has never heard of."""
    roll = rng.random()
    if roll < 0.2:
        return child(rng)
    if roll < 0.4:
        return figure(rng, rng.choice(list(FIGURES)))
    return animal(rng, invented(rng) if roll > 0.85 else rng.choice(list(SPECIES)))


def story_for(rng: random.Random) -> tuple[str, Story]:
    """What is asked for, and a story that has it. The request never says more than the story."""
    if rng.random() < 0.12:
        v = the(rng)
        return (f"{v}" if rng.random() < 0.5 else v.title), tell(rng, v)
    if rng.random() < 0.35:
        s = tell(rng)
        return s.ask, s
    hero = asked_hero(rng)
    s = tell(rng, hero)
    adjective = next((x for x in ADJECTIVES if f"a {x} " in hero.intro or f"a~ {x} " in hero.intro), "")
    told = hero.intro.replace("a~", "a") in s.text or hero.intro.replace("a~", "an") in s.text
    adjective = adjective if told and rng.random() < 0.5 else ""
    if not hero.own_name:
        return a(f"{adjective} {hero.kind}"), s
    if not told:
        return hero.name, s
    return a(f"{adjective} {hero.kind}{rng.choice([' named ' + hero.name, ''])}"), s


def tell_story(rng: random.Random) -> Conversation:
    if rng.random() < 0.25:
        request = pick(rng, "{Tell me a story.|Please tell me a story.|Can you tell me a story?|Write a short story.|I want to hear a story.|"
                       "Tell me a short story.|Do you know a story?|Tell me a bedtime story.|Write a story}")
        s = tell(rng)
    elif rng.random() < 0.1:
        request = pick(rng, "{Tell me a long story.|Write a long story.|Tell me about an adventure.|Write a story about a long journey.}")
        s = adventure(rng, rng.randint(2, 4))
    else:
        thing, s = story_for(rng)
        request = pick(rng, rng.choice(STORY_REQUESTS), x=thing)
    turns = [(casual(rng, request), s.titled if rng.random() < 0.15 else s.text)]
    if rng.random() < 0.35:
        turns += rng.sample(s.questions, min(len(s.questions), rng.randint(1, 2)))
    elif rng.random() < 0.2:
        turns.append(thanks(rng))
    return Conversation(turns)


def poem(rng: random.Random) -> Conversation:
    plot = rng.choice(load("poems.txt"))
    request = pick(rng, "{Write a poem about [x].|Can you write a poem about [x]?|Tell me a poem about [x].|Write a short poem about [x].|"
                   "I would like a poem about [x].|{Write a poem.|Tell me a poem.|Do you know a poem?|Write a short poem.}}", x=plot.ask)
    return Conversation([(casual(rng, request), Grammar(rng, macros=MACROS).text(plot.text))])


def joke(rng: random.Random) -> Conversation:
    question, answer = rng.choice(w.JOKES)
    request = pick(rng, "{Tell me a joke.|Do you know a joke?|Can you tell me a joke?|Make me laugh.|Tell me something funny.|Another joke, please.|"
                   "Tell me a riddle.|Do you know a riddle?}")
    return Conversation([(casual(rng, request), f"{question} {answer}")])


def read_story(rng: random.Random) -> Conversation:
    s = tell(rng)
    while not s.questions:
        s = tell(rng)
    questions = rng.sample(s.questions, rng.randint(1, len(s.questions)))
    (q, a), *rest = questions
    first = rng.choice([f"{s.text}\n\n{q}", f"Read this story: {s.text}\n\n{q}", f"{q}\n\n{s.text}"])
    return Conversation([(first, a), *rest])


def short_hand(rng: random.Random, text: str) -> str:
    return text.lower().rstrip("!.") if rng.random() < 0.25 else text


def thanks(rng: random.Random) -> tuple[str, str]:
    return (short_hand(rng, pick(rng, "{Thank you!|Thanks!|Thank you very much.|Thanks a lot!|Thank you, that was {nice|good|helpful}.|Great, thank you!}")),
            pick(rng, "{You are welcome!|You are welcome! Do you have another question?|You are very welcome!}"))


def goodbye(rng: random.Random) -> tuple[str, str]:
    return (short_hand(rng, pick(rng, "{Goodbye!|Bye!|See you soon!|Good night!|Bye bye!|I have to go now.}")),
            pick(rng, "{Goodbye! See you soon.|Goodbye! Have a nice day.}"))


def greeting(rng: random.Random) -> tuple[str, str]:
    user, model = rng.choice([
        (pick(rng, "{Hello|Hi|Hey|Hello there|Hi there|Good day}{!|.|}"), pick(rng, "Hello! How can I help you?")),
        (pick(rng, "{Hello|Hi|Hey}{! How|. How|, how} {are you|are you today|do you do}?"), "Hello! I am fine, thank you. How can I help you?"),
        (pick(rng, "How are you{| today}?"), "I am fine, thank you. How can I help you?"),
        ("Good morning!", "Good morning! How can I help you?"),
        ("Good evening!", "Good evening! How can I help you?"),
    ])
    return short_hand(rng, user), model


def small_talk(rng: random.Random) -> Conversation:
    turns = [greeting(rng)]
    for _ in range(rng.randint(0, 3)):
        x = ask(rng)
        turns.append((casual(rng, x.question), x.answer))
    if rng.random() < 0.5:
        turns.append(thanks(rng))
    if rng.random() < 0.3:
        turns.append(goodbye(rng))
    return Conversation(turns)


def polite_end(rng: random.Random) -> Conversation:
    x = ask(rng)
    turns = [(x.question, x.answer), thanks(rng)]
    return Conversation(turns + [goodbye(rng)] if rng.random() < 0.4 else turns)


def memory(rng: random.Random) -> Conversation:
    """The user says something about themselves and asks for it later."""
    name = rng.choice(GIRLS + BOYS)
    colour, petkind = rng.choice(LISTS["colours"]), rng.choice(["cat", "dog", "rabbit", "horse", "bird"])
    petname = rng.choice(USER_PETS)
    number = rng.randrange(1, 30)
    said, replied, asked, told = rng.choice([
        (f"{{My name is {name}.|I am {name}.|Hello, I am {name}.|Hi, my name is {name}.}}",
         f"{{Hello, {name}! Nice to meet you.}}", "{What is my name|Do you remember my name|Who am I}?", f"Your name is {name}."),
        (f"My favourite colour is {colour}.", f"{colour} is a beautiful colour.",
         "{What is my favourite colour|Which colour do I like}?", f"Your favourite colour is {colour}."),
        (f"I have a {petkind} {{named|called}} {petname}.", f"{petname} is a nice name for a {petkind}.",
         f"{{What is the name of my {petkind}|What is my {petkind} called}}?", f"The name of your {petkind} is {petname}."),
        (f"{{Remember the number {number}.|Please remember the number {number}.}}", f"I will remember the number {number}.",
         "{What was the number|Which number did I tell you|What number did I say}?", f"The number was {number}."),
    ])
    turns = [(pick(rng, said), pick(rng, replied))]
    for _ in range(rng.randint(0, 2)):
        x = ask(rng)
        turns.append((x.question, x.answer))
    return Conversation(turns + [(pick(rng, asked), pick(rng, told))])


def told_by_system(rng: random.Random) -> Conversation:
    """What the system turn says about the user or the model."""
    name = rng.choice(GIRLS + BOYS)
    if rng.random() < 0.5:
        system = pick(rng, "{The user's name is [n].|The name of the user is [n].|You talk to [n].|The user is called [n].}", n=name)
        turns = [rng.choice([("What is my name?", f"Your name is {name}."), ("Hello!", f"Hello, {name}! How can I help you?"),
                             ("Who am I?", f"Your name is {name}."), ("Hi!", f"Hello, {name}! How can I help you?")])]
    else:
        name = rng.choice(["Zip", "Bob", "Robo", "Nova", "Bit", "Dot", "Gus", *GIRLS[:10]])
        system = pick(rng, "{Your name is [n].|You are [n].|You are called [n].|You are an assistant named [n].}", n=name)
        turns = [(pick(rng, "{What is your name|Who are you|Do you have a name}?"), f"My name is {name}.")]
    if rng.random() < 0.4:
        x = ask(rng)
        turns.insert(rng.randrange(2), (x.question, x.answer))
    return Conversation(turns, system)


KINDS = [(answer_question, 40), (answer_in_one_word, 5), (several_questions, 12), (about_one_villager, 7), (tell_story, 17),
         (read_story, 6), (small_talk, 4), (polite_end, 2), (poem, 2), (joke, 1), (memory, 4), (told_by_system, 3)]


def conversation(rng: random.Random) -> Conversation:
    c = weighted(rng, KINDS)(rng)
    if not c.system and rng.random() < 0.2:
        c.system = rng.choice(PLAIN_SYSTEM)
    return c


NO_THOUGHT = "<|channel>thought\n<channel|>"


def render(rng: random.Random, c: Conversation) -> str:
    """The text of the conversation as Gemma 4's chat template writes it, with the last answer in place.

    The generation prompt ends in an empty thought when thinking is off; earlier answers never have one. With thinking
    on, the system turn starts with <|think|>, and this model answers at once all the same.
    """
    roll = rng.random()
    think = roll > 0.92
    text = ""
    if c.system or think:
        text += "<|turn>system\n" + ("<|think|>\n" if think else "") + c.system + "<turn|>\n"
    for i, (user, model) in enumerate(c.turns):
        empty = NO_THOUGHT if i == len(c.turns) - 1 and roll < 0.7 else ""
        text += f"<|turn>user\n{user.strip()}<turn|>\n<|turn>model\n{empty}{model.strip()}<turn|>\n"
    return text
