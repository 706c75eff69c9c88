"""Stories: the plots of plots.txt and the adventures of episodes.txt, filled with people and things."""
import dataclasses
import functools
import pathlib
import random

from grammar import Grammar, polish
from world import VILLAGERS, Villager

HERE = pathlib.Path(__file__).parent

GIRLS = ("Mia Zoe Lucy Emma Amy Kate Sara Jane Nina Eva Ida Molly Grace Clara Maya Tess Wendy Polly June Fay "
         "Hana Alice Betty Rita Dora Olga").split()
BOYS = ("Max Jack Tim Peter Paul Dan Finn Luke Adam Noah Omar Ivan Eli Kai Joe Will Fred Nick Theo Carl Ravi Gus "
        "Henry Mark Karl Toby").split()
PET_NAMES = ("Dusty Bramble Button Pepper Hazel Clover Poppy Rusty Fluff Nutmeg Socks Misty Sunny Patch Toffee Bubbles "
             "Ziggy Ginger Coco Bonny Pebble Willow Muffin Olive Acorn Whiskers").split()
SPECIES = {  # kind -> home
    "fox": "in a den under the hill", "bear": "in a cave", "mouse": "in a hole under an old tree",
    "rabbit": "in a burrow near the meadow", "owl": "in an old oak tree", "frog": "by the pond", "duck": "by the river",
    "cat": "in a red house", "dog": "on a farm", "hedgehog": "under a pile of leaves", "squirrel": "in a tall tree",
    "wolf": "deep in the forest", "deer": "at the edge of the forest", "turtle": "by the lake", "pig": "on a farm",
    "sheep": "on a green hill", "pony": "in a stable", "kitten": "in a small house", "puppy": "in a yellow house",
    "elephant": "near a wide river", "lion": "in the grassland", "monkey": "in the jungle", "beaver": "by the river",
    "badger": "under the roots of a tree", "crow": "on top of a tower", "goose": "by the lake", "mole": "under a meadow",
    "hare": "in the tall grass", "otter": "by the river", "donkey": "in an old stable", "goat": "on a rocky hill",
    "hamster": "in a field of corn", "raccoon": "in the forest", "penguin": "on the ice", "swan": "by the lake",
    "tiger": "in the jungle", "zebra": "in the grassland", "camel": "in the desert", "dinosaur": "in a green valley",
    "whale": "in the sea", "dolphin": "in the sea", "butterfly": "in a garden", "snail": "under a big leaf",
    "spider": "in the corner of a barn", "crab": "on the beach", "panda": "in a forest of bamboo", "horse": "in a stable",
    "cow": "in a barn", "hen": "in a hen house", "parrot": "in the jungle", "seal": "on a rock in the sea",
    "worm": "in an apple", "bat": "in an old tower", "bird": "in a nest", "bee": "in a hive", "ant": "in a nest of sand",
    "beetle": "under the bark of a tree", "unicorn": "in a magic forest",
}
FIGURES = {  # kind -> gender (x: either), home
    "robot": ("m", "in a workshop"), "princess": ("f", "in a castle"), "prince": ("m", "in a castle"),
    "knight": ("x", "in an old castle"), "pirate": ("x", "on an old ship"), "witch": ("f", "in a crooked house"),
    "wizard": ("m", "in a high tower"), "giant": ("m", "behind the mountains"), "dwarf": ("m", "under a mountain"),
    "sailor": ("x", "by the sea"), "dragon": ("x", "on a hill"), "troll": ("m", "under a bridge"), "fairy": ("f", "in a flower"),
    "shepherd": ("x", "on a green hill"), "cook": ("x", "behind the castle"), "clown": ("x", "in a wagon"),
    "ghost": ("x", "in an old house"), "astronaut": ("x", "near the stars"), "queen": ("f", "in a palace"),
    "king": ("m", "in a palace"), "monster": ("x", "under a bed"), "elf": ("x", "in a hollow tree"),
}
CHILD_HOMES = ["in a small house by the river", "on a farm", "in a village near the sea", "at the edge of a forest",
               "in a house with a blue door", "in a little town", "next to the mill"]
ADJECTIVES = ["little", "small", "young", "shy", "brave", "clever", "lazy", "kind", "curious", "sleepy", "funny",
              "old", "hungry", "gentle", "quiet", "cheerful", "friendly"]
CHILD_ADJECTIVES = ["little", "young", "shy", "brave", "clever", "kind", "curious", "cheerful", "quiet", "friendly"]
ADULTS = [("Grandmother", "f"), ("Grandfather", "m"), ("Mother", "f"), ("Father", "m"), ("Aunt Clara", "f"),
          ("Uncle Bob", "m"), ("Mrs Hill", "f"), ("Mr Brown", "m"), ("Mrs Green", "f"), ("Mr White", "m")]


class Word(str):
    """A noun that knows its verb and pronoun: "the cake was", "the nuts were"."""

    plural = property(lambda self: self.endswith("s") and not self.endswith("ss") and not self.startswith("a "))
    was = property(lambda self: "were" if self.plural else "was")
    it = property(lambda self: "them" if self.plural else "it")
    bare = property(lambda self: self.removeprefix("a ").removeprefix("an "))


def words(text: str) -> list[Word]:
    return [Word(w.strip()) for w in text.split(",")]


COLOURS = words("red, blue, green, yellow, white, black, brown, orange, purple, grey, pink")
TOYS = words("ball, kite, doll, drum, teddy bear, toy boat, toy train, puzzle, hoop, toy car, wooden horse, jumping rope, "
             "toy sword, music box, paper plane, spinning top")
LISTS: dict[str, list[Word]] = {
    "colours": COLOURS,
    "toys": [Word(f"{c} {t}") for c in COLOURS for t in TOYS[:9]] + TOYS,
    "spots": words("under the bed, behind the door, in a basket, under an old tree, in the tall grass, behind the barn, "
                   "in the shed, on top of the cupboard, next to the well, in a big boot, in the hay, behind the sofa, "
                   "under a pile of leaves, in the garden, on the roof, behind a big stone, under the table, in a box, "
                   "near the fence, in the kitchen"),
    "foods": words("bread, cheese, apples, cookies, cake, pancakes, nuts, berries, sandwiches, plums, pears, buns, cherries, "
                   "honey bread, strawberries, potato salad"),
    "dishes": words("a cherry pie, an apple pie, a big cake, vegetable soup, pancakes, honey cookies, a plum cake, "
                    "pumpkin soup, potato soup, sweet buns, lemon cake, chocolate pudding"),
    "soups": words("tomato soup, potato soup, carrot soup, onion soup, pumpkin soup, bean soup, pea soup, mushroom soup"),
    "clothes": words("hat, scarf, cap, red hat, blue scarf, green cap, yellow hat, straw hat, woolly hat"),
    "shoes": words("boots, shoes, rain boots, sandals"),
    "skills": words("swim, whistle, ride a bike, climb a tree, skate, paint, dance, bake bread, read, play the flute, "
                    "fly a kite, jump over the stream, tie a knot, juggle, sing, ski, throw a ball, catch a ball"),
    "fears": words("the dark, thunder, deep water, high places, big dogs, spiders, loud noises, the forest, strangers"),
    "plants": words("sunflower, pumpkin, bean, apple tree, carrot, rose, tomato, tulip"),
    "goals": words("the old mill, the river, the big stone, the red barn, the end of the road, the hill, the bridge"),
    "smallthings": words("button, feather, shell, pencil, candle, bell, cup, spoon, book, apple, flower, ribbon, brush, "
                         "hat, egg, basket, key, blanket, lemon, needle, rope, umbrella"),
    "landmarks": words("old oak, big rock, stone bridge, well, tall pine tree, wooden gate, red barn, mill, apple tree"),
    "games": words("hide and seek, tag, football, cards, chess, marbles, catch, ball"),
    "stores": words("nuts, seeds, berries, apples, mushrooms, carrots, corn, acorns, beans"),
    "wishes": words("a tree house, a swing, a little boat, a warm blanket, a garden full of flowers, a kite, "
                    "a bench by the river, a bookcase, a sledge"),
    "breakables": words("vase, mirror, teapot, plate, lamp, jar, flower pot"),
    "instruments": words("drum, flute, violin, trumpet, guitar, horn"),
    "countables": words("shells, stones, feathers, chestnuts, flowers, mushrooms, leaves, acorns"),
    "dreamthings": words("a giant cake, a golden elephant, a mountain of cookies, a huge ball, a castle of sugar, "
                         "a giant pumpkin, a flying horse, a silver ship"),
    "features": words("beautiful voice, shiny eyes, big new hat, golden ring, silk scarf, clean white coat, red ribbon"),
    "oddities": words("a very long neck, a very long tail, very long arms, a nose as long as a broom, very big ears, very long legs"),
    "parts": words("the king, the queen, the moon, a tree, a lion, the sun, a cloud, the wolf, a star, a frog"),
}

MACROS = {
    "when": "{One {sunny|bright|warm|cold|windy|rainy|grey|quiet|fine|misty} {morning|day|afternoon}|One {day|morning|"
            "afternoon|evening}|On a~ {sunny|cold|windy|warm|rainy|beautiful} {morning|day|afternoon}|Early one morning|"
            "Late one afternoon|In the middle of {summer|winter|spring|autumn}|On {Monday|Tuesday|Wednesday|Thursday|"
            "Friday|Saturday|Sunday} morning}",
    "once": "{Once upon a time, there was|Once upon a time, there was|Once there was|There once was|Long ago, there was|"
            "Far away, there lived|Not so long ago, there was}",
    "endf": "{[hero] and [friend] were {best friends|good friends} from that day on.|{That night|That evening}, [hero] was "
            "very happy.|[hero] never forgot that day.|It was the start of a long friendship.|And so a bad day became a "
            "good day.|Then they went home together.|And they lived happily ever after.|[hero] smiled all the way home.}",
    "then": "{After a while,|Then|A little later,|The next day,|The next morning,|In the afternoon,|Soon|Suddenly|"
            "Not long after that,|Two hours later,|Towards evening,}",
}


@dataclasses.dataclass(frozen=True)
class Character:
    """Somebody in a story. An animal without a name of its own is called "the fox"."""
    name: str
    kind: str
    gender: str
    intro: str
    home: str = ""
    own_name: bool = True

    he = property(lambda self: "he" if self.gender == "m" else "she")
    him = property(lambda self: "him" if self.gender == "m" else "her")
    his = property(lambda self: "his" if self.gender == "m" else "her")
    plain = property(lambda self: self.name if self.own_name else self.kind)
    little = property(lambda self: self.called("little"))
    old = property(lambda self: self.called("old"))

    def called(self, adjective: str) -> str:
        return f"{adjective} {self.name}" if self.own_name else f"the {adjective} {self.kind}"

    def __str__(self) -> str:
        return self.name


def child(rng: random.Random, name: str | None = None) -> Character:
    gender = rng.choice("mf")
    if name is None:
        name = invented(rng).capitalize() if rng.random() < 0.05 else rng.choice(GIRLS if gender == "f" else BOYS)
    kind = "girl" if gender == "f" else "boy"
    intro = rng.choice([f"a {kind} named {name}", f"a~ {rng.choice(CHILD_ADJECTIVES)} {kind} named {name}",
                        f"a {kind} called {name}"])
    return Character(name, kind, gender, intro, rng.choice(CHILD_HOMES))


def animal(rng: random.Random, kind: str | None = None) -> Character:
    kind = kind or (invented(rng) if rng.random() < 0.02 else rng.choice(list(SPECIES)))
    home = SPECIES.get(kind, "far away from here")
    gender, adjective = rng.choice("mf"), rng.choice(ADJECTIVES)
    if rng.random() < 0.5:
        name = rng.choice(PET_NAMES)
        intro = rng.choice([f"a~ {adjective} {kind} named {name}", f"a~ {kind} named {name}",
                            f"a~ {adjective} {kind} called {name}"])
        return Character(name, kind, gender, intro, home)
    return Character(f"the {kind}", kind, gender, f"a~ {adjective} {kind}", home, own_name=False)


def figure(rng: random.Random, kind: str | None = None) -> Character:
    """A robot, a knight, a witch: somebody of the tales."""
    kind = kind or rng.choice(list(FIGURES))
    gender, home = FIGURES[kind]
    gender = rng.choice("mf") if gender == "x" else gender
    adjective = rng.choice(ADJECTIVES)
    if rng.random() < 0.4 and kind not in ("king", "queen"):
        name = rng.choice(GIRLS if gender == "f" else BOYS)
        return Character(name, kind, gender, f"a~ {adjective} {kind} named {name}", home)
    return Character(f"the {kind}", kind, gender, f"a~ {adjective} {kind}", home, own_name=False)


def invented(rng: random.Random) -> str:
    """A word that nobody knows, so that the model learns to copy what it is told."""
    syllable = lambda: rng.choice("b d f g k l m n p r s t v w z br dr fl gr kl pl sn st tr".split()) + rng.choice(
        "a e i o u oo ee ai".split()) + rng.choice(["", "", "n", "r", "l", "m", "x", "t", "b", "sh"])
    return "".join(syllable() for _ in range(rng.choice([1, 2, 2, 2, 3])))


def adult(rng: random.Random) -> Character:
    name, gender = rng.choice(ADULTS)
    return Character(name, "adult", gender, name, "in the village")


def draw(rng: random.Random, role: str, taken: list, forbidden: tuple[str, ...] = ()) -> Character | Villager:
    """Somebody for a role, whose name and kind nobody else in the story has."""
    while True:
        if role == "villager":
            who = rng.choice(VILLAGERS)
        elif role == "any":
            who = rng.choice([child, child, animal, animal, animal, figure])(rng)
        else:
            who = {"child": child, "animal": animal, "adult": adult, "figure": figure}[role](rng)
        same = [t for t in taken if t.name == who.name or (isinstance(who, Character) and not who.own_name
                                                            and getattr(t, "kind", "") == who.kind)]
        if not same and who.name not in forbidden:
            return who


@dataclasses.dataclass
class Plot:
    name: str
    cast: dict[str, str]
    vars: dict[str, str]
    ask: str
    title: str
    forbidden: tuple[str, ...]
    questions: list[tuple[str, str]]
    text: str


def pairs(line: str) -> dict[str, str]:
    return dict(item.split("=") for item in line.split())


def parse_plot(block: str) -> Plot:
    header, _, text = block.partition("\n\n")
    name, *lines = header.split("\n")
    fields, questions = {}, []
    for line in lines:
        key, _, value = line.partition(":")
        if key == "q":
            question, _, answer = value.partition("=>")
            questions.append((question.strip(), answer.strip()))
        else:
            fields[key] = value.strip()
    return Plot(name.strip(), pairs(fields.get("cast", "")), pairs(fields.get("vars", "")), fields.get("ask", ""),
                fields.get("title", ""), tuple(fields.get("not", "").split()), questions, text.strip())


@functools.cache
def load(file: str) -> list[Plot]:
    text = (HERE / file).read_text()
    text = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    return [parse_plot(block) for block in ("\n" + text).split("\n== ")[1:]]


@dataclasses.dataclass
class Story:
    title: str
    ask: str
    text: str
    questions: list[tuple[str, str]]
    hero: Character | Villager | None

    @property
    def titled(self) -> str:
        return f"{self.title}\n\n{self.text}"


def title_case(text: str) -> str:
    small = {"a", "an", "and", "the", "of", "in", "to", "on", "for", "who", "with", "at", "or", "from", "by"}
    out = [w if (i and w.lower() in small) else w[:1].upper() + w[1:] for i, w in enumerate(text.split(" "))]
    return " ".join(out)


def cast_plot(rng: random.Random, plot: Plot, grammar: Grammar, hero=None, taken: list | None = None) -> None:
    """Gives every role and every word of the plot its value."""
    taken = taken if taken is not None else []
    if hero is not None:
        grammar.slots["hero"] = hero
        taken.append(hero)
    for role, kind in plot.cast.items():
        if role == "hero" and hero is not None:
            continue
        grammar.slots[role] = draw(rng, kind, taken, plot.forbidden)
        taken.append(grammar.slots[role])
    used: set[str] = set()
    for name, list_name in plot.vars.items():
        grammar.slots[name] = rng.choice([w for w in LISTS[list_name] if w not in used])
        if list_name in ("toys", "smallthings") and rng.random() < 0.03:
            grammar.slots[name] = Word(invented(rng))
        used.add(grammar.slots[name])


def fits(plot: Plot, hero) -> bool:
    role = plot.cast.get("hero")
    if isinstance(hero, Villager):
        return role == "villager" and hero.name not in plot.forbidden
    return role in ("any", "child" if hero.kind in ("girl", "boy") else "animal")


def tell(rng: random.Random, hero=None) -> Story:
    """One short story, about the hero if one is given."""
    plots = load("plots.txt")
    plot = rng.choice([p for p in plots if hero is None or fits(p, hero)])
    grammar = Grammar(rng, macros=MACROS)
    cast_plot(rng, plot, grammar, hero)
    ask, text, title = grammar.choose(plot.ask), grammar.text(plot.text), title_case(grammar.text(plot.title))
    questions = [(grammar.text(q), grammar.text(a)) for q, a in plot.questions]
    return Story(title, polish("x " + ask)[2:], text, questions, grammar.slots.get("hero"))


def adventure(rng: random.Random, episodes: int, hero=None) -> Story:
    """A long story: a start, some episodes in any order, and a finish."""
    parts = load("episodes.txt")
    kinds = {k: [p for p in parts if p.name.startswith(k)] for k in ("start", "episode", "finish")}
    hero = hero or rng.choice([child, animal, animal, figure])(rng)
    chosen = [rng.choice(kinds["start"]), *rng.sample(kinds["episode"], episodes), rng.choice(kinds["finish"])]
    texts = []
    for plot in chosen:
        grammar = Grammar(rng, macros=MACROS)
        cast_plot(rng, plot, grammar, hero)
        texts.append(grammar.text(plot.text))
    title = rng.choice([f"The Adventures of {hero}", f"The Long Way of {hero}", f"{hero} and the Wide World",
                        f"The Journey of {hero}"])
    return Story(title_case(title), "a long journey", "\n\n".join(texts), [], hero)
