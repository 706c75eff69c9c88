"""All kinds of questions, each with its share of the training text."""
import random

from ask_model import SELF_TOPICS
from ask_puzzles import NUMBER_TOPICS, READING_TOPICS, WORD_TOPICS
from ask_village import VILLAGE_TOPICS, VILLAGER_TOPICS
from ask_world import THING_TOPICS, TIME_TOPICS
from asking import QA

TOPICS = [(VILLAGER_TOPICS, 10), (VILLAGE_TOPICS, 2.5), (TIME_TOPICS, 1.5), (THING_TOPICS, 7), (WORD_TOPICS, 2.5),
          (NUMBER_TOPICS, 5), (READING_TOPICS, 4), (SELF_TOPICS, 2)]


def weighted(rng: random.Random, items: list[tuple]):
    return rng.choices([i for i, _ in items], [p for _, p in items])[0]


def ask(rng: random.Random, group: list | None = None) -> QA:
    """A question of the group, or of any."""
    return weighted(rng, group or weighted(rng, TOPICS))(rng)
