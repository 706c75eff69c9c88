"""The facts of the small world that the model learns: the village of Fernhill and some of ours.

Every attribute of a villager belongs to that villager alone, so that a question can be asked in both
directions ("What is Mira's job?", "Who is the baker?") and has one answer.
"""
import dataclasses

VILLAGE = "Fernhill"


@dataclasses.dataclass(frozen=True)
class Villager:
    name: str
    gender: str
    job: str
    work: str          # what the villager does there
    workplace: str
    pet: str
    petname: str
    petcolour: str
    house: str         # its colour
    food: str
    hobby: str
    friend: str

    he = property(lambda self: "he" if self.gender == "m" else "she")
    him = property(lambda self: "him" if self.gender == "m" else "her")
    his = property(lambda self: "his" if self.gender == "m" else "her")
    title = property(lambda self: f"{self.name} the {self.job}")

    def __str__(self) -> str:
        return self.name


VILLAGERS = [
    Villager("Mira", "f", "baker", "bakes bread and cakes", "bakery", "cat", "Pip", "orange", "yellow",
             "apple pie", "singing", "Tom"),
    Villager("Tom", "m", "fisherman", "catches fish", "harbour", "dog", "Rex", "brown", "blue",
             "fish soup", "swimming", "Mira"),
    Villager("Anna", "f", "teacher", "teaches the children", "school", "rabbit", "Snow", "white", "green",
             "pancakes", "reading", "Ella"),
    Villager("Ben", "m", "farmer", "looks after the cows and the fields", "farm", "goat", "Daisy", "grey", "red",
             "fresh bread", "playing the drum", "Hugo"),
    Villager("Lily", "f", "gardener", "plants trees and flowers", "park", "turtle", "Dot", "green", "pink",
             "strawberries", "dancing", "Ruby"),
    Villager("Sam", "m", "postman", "brings the letters", "post office", "parrot", "Kiki", "red", "white",
             "cheese", "running", "Oscar"),
    Villager("Nora", "f", "doctor", "helps sick people", "hospital", "horse", "Star", "black", "brown",
             "tomato soup", "playing chess", "Leo"),
    Villager("Oscar", "m", "carpenter", "makes tables and chairs", "workshop", "duck", "Waddle", "yellow", "orange",
             "potatoes", "telling jokes", "Sam"),
    Villager("Ruby", "f", "painter", "paints pictures", "studio", "mouse", "Crumb", "grey", "purple",
             "grapes", "flying kites", "Lily"),
    Villager("Leo", "m", "clockmaker", "mends clocks", "clock shop", "owl", "Hoot", "brown", "grey",
             "nuts", "watching the stars", "Nora"),
    Villager("Ella", "f", "librarian", "takes care of the books", "library", "hamster", "Biscuit", "golden", "black",
             "honey cake", "knitting", "Anna"),
    Villager("Hugo", "m", "miller", "grinds corn into flour", "mill", "donkey", "Bruno", "grey", "silver",
             "corn", "playing the flute", "Ben"),
]
BY_NAME = {v.name: v for v in VILLAGERS}

PLACES = {  # place -> where it is
    "bakery": "in the market square",
    "school": "next to the park",
    "post office": "across from the bakery",
    "library": "beside the school",
    "hospital": "behind the school",
    "mill": "by the river",
    "harbour": "at the lake",
    "farm": "at the foot of the hill",
    "workshop": "near the bridge",
    "studio": "on top of the hill",
    "clock shop": "under the clock tower",
    "park": "in the middle of the village",
    "lake": "north of the village",
    "forest": "east of the village",
    "hill": "west of the village",
    "old oak tree": "in the market square",
}

WEEK = {  # what happens in the village on each day
    "Monday": ("music lesson", "the children learn a new song"),
    "Tuesday": ("story hour", "Ella reads stories in the library"),
    "Wednesday": ("cake day", "Mira bakes a big cake"),
    "Thursday": ("boat race", "the boats race on the lake"),
    "Friday": ("dance", "everyone dances in the market square"),
    "Saturday": ("market", "the farmers sell fruit and cheese"),
    "Sunday": ("picnic", "the village has a picnic in the park"),
}
DAYS = list(WEEK)
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December"]
SEASONS = ["spring", "summer", "autumn", "winter"]
SEASON_FACTS = {
    "spring": "the flowers open and the birds build nests",
    "summer": "the days are long and hot",
    "autumn": "the leaves turn red and fall from the trees",
    "winter": "snow falls and the lake is covered with ice",
}

VILLAGE_FACTS = [  # (questions, answer)
    ("{What is the name of the river|What is the river in Fernhill called|Which river runs through Fernhill}?",
     "The river in Fernhill is called the Silver River."),
    ("{What is the name of the lake|What is the lake near Fernhill called}?",
     "The lake near Fernhill is called Moon Lake."),
    ("{What is the name of the forest|What is the forest near Fernhill called}?",
     "The forest near Fernhill is called the Green Wood."),
    ("{Who is the mayor of Fernhill|Who is the mayor|What is the name of the mayor}?",
     "The mayor of Fernhill is Grandma Rose."),
    ("{Who is the oldest person in Fernhill|Who is the oldest person in the village}?",
     "Grandma Rose is the oldest person in Fernhill."),
    ("{When does the bell ring|At what time does the bell ring|When does the bell of the clock tower ring}?",
     "The bell rings every day at noon."),
    ("{What is the bridge made of|What is the old bridge in Fernhill made of}?",
     "The bridge is made of stone."),
    ("{How many people live in Fernhill|How many people live in the village}?",
     "About one hundred people live in Fernhill."),
    ("{Is there a king in Fernhill|Does Fernhill have a king}?",
     "No, Fernhill does not have a king. It has a mayor."),
    ("{What is Fernhill|Tell me about Fernhill|What kind of place is Fernhill}?",
     "Fernhill is a small village between a lake, a forest and a hill."),
]

ANIMALS = {  # sound verb, young, home, food, legs, a fact
    "cat": ("meows", "kitten", "house", "fish", 4, "A cat has soft fur and sharp claws."),
    "dog": ("barks", "puppy", "house", "meat", 4, "A dog wags its tail when it is happy."),
    "cow": ("moos", "calf", "barn", "grass", 4, "A cow gives us milk."),
    "sheep": ("bleats", "lamb", "field", "grass", 4, "A sheep gives us wool."),
    "horse": ("neighs", "foal", "stable", "hay", 4, "A horse can run very fast."),
    "duck": ("quacks", "duckling", "pond", "plants", 2, "A duck can swim and fly."),
    "hen": ("clucks", "chick", "hen house", "seeds", 2, "A hen lays eggs."),
    "pig": ("grunts", "piglet", "sty", "corn", 4, "A pig likes to roll in the mud."),
    "frog": ("croaks", "tadpole", "pond", "flies", 4, "A frog can jump very far."),
    "lion": ("roars", "cub", "grassland", "meat", 4, "A lion is a big cat with a golden coat."),
    "owl": ("hoots", "owlet", "tree", "mice", 2, "An owl sleeps in the day and flies at night."),
    "bee": ("buzzes", "larva", "hive", "nectar", 6, "A bee makes honey."),
    "mouse": ("squeaks", "pup", "hole", "seeds", 4, "A mouse has a long thin tail."),
    "wolf": ("howls", "cub", "forest", "meat", 4, "A wolf lives with its family."),
    "bear": ("growls", "cub", "cave", "berries", 4, "A bear sleeps in the winter."),
    "snake": ("hisses", "baby snake", "grass", "mice", 0, "A snake has no legs."),
    "goat": ("bleats", "kid", "hills", "grass", 4, "A goat can climb steep rocks."),
    "donkey": ("brays", "foal", "stable", "hay", 4, "A donkey has long ears."),
    "rabbit": ("squeaks", "baby rabbit", "burrow", "carrots", 4, "A rabbit has long ears and a short tail."),
    "fox": ("barks", "cub", "den", "mice", 4, "A fox has red fur and a bushy tail."),
    "spider": (None, "baby spider", "web", "flies", 8, "A spider makes a web of thin silk."),
    "elephant": ("trumpets", "calf", "grassland", "leaves", 4, "An elephant has a long trunk."),
    "monkey": ("chatters", "baby monkey", "trees", "bananas", 4, "A monkey can climb and swing."),
    "turtle": (None, "baby turtle", "pond", "plants", 4, "A turtle carries its house on its back."),
    "whale": ("sings", "calf", "sea", "fish", 0, "A whale is the biggest animal in the sea."),
    "squirrel": ("chatters", "baby squirrel", "tree", "nuts", 4, "A squirrel hides nuts for the winter."),
    "ant": (None, "larva", "nest", "seeds", 6, "An ant is small but very strong."),
    "fish": (None, "baby fish", "water", "plants", 0, "A fish can breathe under water."),
    "penguin": ("calls", "chick", "ice", "fish", 2, "A penguin is a bird that cannot fly."),
    "giraffe": ("hums", "calf", "grassland", "leaves", 4, "A giraffe has a very long neck."),
    "parrot": ("squawks", "chick", "tree", "seeds", 2, "A parrot can learn to say words."),
    "crow": ("caws", "chick", "nest", "seeds", 2, "A crow is a clever black bird."),
}
SOUND_WORDS = {"cat": "meow", "dog": "woof", "cow": "moo", "sheep": "baa", "duck": "quack", "hen": "cluck",
               "pig": "oink", "owl": "hoot", "bee": "buzz", "lion": "roar", "snake": "hiss", "mouse": "squeak",
               "frog": "croak", "horse": "neigh", "crow": "caw"}
BIRDS = ["duck", "hen", "owl", "penguin", "parrot", "crow"]
INSECTS = ["bee", "ant"]

SIZES = ["ant", "bee", "mouse", "frog", "squirrel", "cat", "fox", "sheep", "lion", "horse", "giraffe", "elephant",
         "whale"]  # from small to big

COLOURS = {  # thing -> colour (things that take "is" with an article or stand alone)
    "grass": "green", "snow": "white", "the sky": "blue", "the sun": "yellow", "a banana": "yellow",
    "a lemon": "yellow", "a tomato": "red", "a strawberry": "red", "blood": "red", "coal": "black",
    "milk": "white", "an orange": "orange", "a carrot": "orange", "a plum": "purple", "a leaf": "green",
    "chocolate": "brown", "a pumpkin": "orange", "the sea": "blue", "a crow": "black", "a swan": "white",
    "a frog": "green", "a pea": "green", "a cherry": "red", "the night sky": "black", "a mouse": "grey",
    "an elephant": "grey", "a fire engine": "red", "sand": "yellow", "a cucumber": "green", "wood": "brown",
}
OPPOSITES = [("big", "small"), ("hot", "cold"), ("day", "night"), ("up", "down"), ("left", "right"),
             ("happy", "sad"), ("fast", "slow"), ("open", "closed"), ("full", "empty"), ("old", "young"),
             ("long", "short"), ("hard", "soft"), ("wet", "dry"), ("light", "dark"), ("good", "bad"),
             ("early", "late"), ("loud", "quiet"), ("clean", "dirty"), ("near", "far"), ("strong", "weak"),
             ("high", "low"), ("in", "out"), ("yes", "no"), ("first", "last"), ("rich", "poor"),
             ("thick", "thin"), ("heavy", "light"), ("black", "white"), ("begin", "end"), ("push", "pull"),
             ("give", "take"), ("laugh", "cry"), ("win", "lose"), ("love", "hate"), ("easy", "difficult"),
             ("before", "after"), ("top", "bottom"), ("front", "back"), ("brave", "afraid"), ("sweet", "sour")]
OPPOSITE_OF = {}
for one, other in OPPOSITES:
    OPPOSITE_OF.setdefault(one, other)
    OPPOSITE_OF.setdefault(other, one)
OPPOSITE_OF["light"] = "dark"

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "England": "London",
            "Japan": "Tokyo", "China": "Beijing", "Russia": "Moscow", "Egypt": "Cairo", "Greece": "Athens",
            "Portugal": "Lisbon", "Norway": "Oslo", "Sweden": "Stockholm", "Poland": "Warsaw", "Austria": "Vienna",
            "Ireland": "Dublin", "India": "New Delhi", "Canada": "Ottawa", "Kenya": "Nairobi", "Peru": "Lima",
            "Cuba": "Havana", "Finland": "Helsinki", "Hungary": "Budapest", "Denmark": "Copenhagen"}

FRUITS = ["apple", "pear", "plum", "cherry", "banana", "orange", "grape", "lemon", "peach", "strawberry"]
VEGETABLES = ["carrot", "potato", "onion", "pea", "bean", "cabbage", "cucumber", "pumpkin"]
DRINKS = ["water", "milk", "tea", "juice", "lemonade"]
CLOTHES = ["hat", "coat", "shirt", "scarf", "dress", "sock", "shoe", "glove"]
TOOLS = {"hammer": "hit nails", "saw": "cut wood", "spade": "dig holes", "broom": "sweep the floor",
         "needle": "sew clothes", "knife": "cut bread", "spoon": "eat soup", "pen": "write letters",
         "brush": "paint pictures", "ladder": "climb up", "umbrella": "stay dry in the rain",
         "key": "open a door", "lamp": "see in the dark", "clock": "tell the time", "oven": "bake bread",
         "scissors": "cut paper", "bed": "sleep", "boat": "cross the water", "soap": "wash our hands",
         "map": "find the way"}
FURNITURE = ["table", "chair", "bed", "lamp", "cupboard"]
CATEGORIES = {"fruit": FRUITS, "vegetable": VEGETABLES, "drink": DRINKS, "piece of clothing": CLOTHES,
              "bird": BIRDS, "insect": INSECTS}
MADE_OF = {"a table": "wood", "a window": "glass", "a coin": "metal", "a book": "paper", "a scarf": "wool",
           "bread": "flour", "cheese": "milk", "a shoe": "leather", "a snowman": "snow", "a wall": "stone",
           "jam": "fruit", "a sandcastle": "sand", "honey": "nectar", "a candle": "wax"}
SHAPES = {"triangle": 3, "square": 4, "rectangle": 4, "pentagon": 5, "hexagon": 6}
BODY = {"see": "eyes", "hear": "ears", "smell": "nose", "taste": "tongue", "walk": "legs", "chew": "teeth",
        "hold things": "hands", "think": "brain"}
COUNT_FACTS = [("days are there in a week", "There are seven days in a week.", "seven"),
               ("months are there in a year", "There are twelve months in a year.", "twelve"),
               ("seasons are there in a year", "There are four seasons in a year.", "four"),
               ("hours are there in a day", "There are twenty-four hours in a day.", "twenty-four"),
               ("minutes are there in an hour", "There are sixty minutes in an hour.", "sixty"),
               ("seconds are there in a minute", "There are sixty seconds in a minute.", "sixty"),
               ("fingers are on one hand", "There are five fingers on one hand.", "five"),
               ("letters are in the alphabet", "There are twenty-six letters in the alphabet.", "twenty-six"),
               ("wheels does a bicycle have", "A bicycle has two wheels.", "two"),
               ("wheels does a car have", "A car has four wheels.", "four"),
               ("eggs are in a dozen", "There are twelve eggs in a dozen.", "twelve"),
               ("colours are in a rainbow", "There are seven colours in a rainbow.", "seven")]
PLURALS = {"cat": "cats", "dog": "dogs", "mouse": "mice", "child": "children", "foot": "feet", "tooth": "teeth",
           "sheep": "sheep", "man": "men", "woman": "women", "goose": "geese", "box": "boxes", "baby": "babies",
           "leaf": "leaves", "fox": "foxes", "house": "houses", "apple": "apples", "cherry": "cherries",
           "fish": "fish", "wolf": "wolves", "knife": "knives", "story": "stories", "bus": "buses", "day": "days",
           "book": "books", "tree": "trees", "person": "people"}
PAST = {"go": "went", "see": "saw", "run": "ran", "eat": "ate", "come": "came", "sing": "sang", "swim": "swam",
        "find": "found", "make": "made", "take": "took", "give": "gave", "say": "said", "play": "played",
        "jump": "jumped", "walk": "walked", "fly": "flew", "write": "wrote", "think": "thought", "bring": "brought",
        "sleep": "slept", "build": "built", "catch": "caught", "buy": "bought", "fall": "fell", "know": "knew"}
RHYMES = [("cat", "hat"), ("dog", "frog"), ("sun", "fun"), ("tree", "bee"), ("house", "mouse"), ("moon", "spoon"),
          ("star", "car"), ("cake", "lake"), ("rain", "train"), ("light", "night"), ("bear", "chair"),
          ("king", "ring"), ("boat", "goat"), ("ball", "wall"), ("snow", "crow"), ("fish", "dish"), ("fox", "box"),
          ("hen", "pen"), ("day", "play"), ("bed", "red")]
WHY = [("Why do birds have wings", "Birds have wings because they fly with them."),
       ("Why do we sleep", "We sleep because our bodies need to rest."),
       ("Why do we eat", "We eat because food makes us strong."),
       ("Why does ice melt", "Ice melts because it gets warm."),
       ("Why do we wear coats in winter", "We wear coats in winter because it is cold."),
       ("Why do plants need rain", "Plants need rain because they drink the water."),
       ("Why do we use an umbrella", "We use an umbrella because it keeps us dry in the rain."),
       ("Why is it dark at night", "It is dark at night because the sun is on the other side of the world."),
       ("Why do leaves fall in autumn", "Leaves fall in autumn because the trees get ready for winter."),
       ("Why do bees visit flowers", "Bees visit flowers because they look for nectar."),
       ("Why do we wash our hands", "We wash our hands because it keeps us clean and healthy."),
       ("Why do squirrels hide nuts", "Squirrels hide nuts because they want to eat in winter."),
       ("Why do we read books", "We read books because they tell us stories and teach us new things."),
       ("Why is the sky blue", "The sky is blue because the air scatters the blue light of the sun."),
       ("Why is the grass green", "The grass is green because there is a green colour in its leaves that catches the light."),
       ("Why does it rain", "It rains because the clouds are full of water."),
       ("Why is the sea salty", "The sea is salty because rivers carry salt from the rocks into it."),
       ("Why do stars shine", "Stars shine because they are very hot, like the sun."),
       ("Why do cats purr", "Cats purr because they feel well."),
       ("Why do we have two ears", "We have two ears because we want to hear where a sound comes from."),
       ("Why is snow white", "Snow is white because its crystals throw back all the light."),
       ("Why do we say thank you", "We say thank you because it is kind and polite."),
       ("Why do dogs wag their tails", "Dogs wag their tails because they are happy.")]
JOKES = [("What has legs but cannot walk?", "A table."), ("What has hands but cannot clap?", "A clock."),
         ("What has teeth but cannot bite?", "A comb."), ("What gets wet while it dries?", "A towel."),
         ("What goes up when the rain comes down?", "An umbrella."), ("What has a neck but no head?", "A bottle."),
         ("What has many leaves but is no tree?", "A book."), ("What runs but has no feet?", "A river."),
         ("Why did the clock go to bed?", "It had run all day."), ("Why was the broom late?", "It had swept in."),
         ("What do you call a bear in the rain?", "A wet bear."), ("What is big, grey and has wheels?", "An elephant on a bicycle."),
         ("Why do hens never use a map?", "They always know the way to lay."), ("What did one wall say to the other wall?", "We meet at the corner."),
         ("What did the big candle say to the small candle?", "I am going out tonight."), ("Why did the cookie go to the doctor?", "It felt crumby."),
         ("What is full of holes and still holds water?", "A sponge."), ("What can you catch but not throw?", "A cold."),
         ("Why is the river so rich?", "It has two banks."), ("Which key opens no door?", "A donkey.")]
NATURE = [("Where does the sun rise", "The sun rises in the east."),
          ("Where does the sun set", "The sun sets in the west."),
          ("Where does rain come from", "Rain comes from the clouds."),
          ("What shines at night", "The moon and the stars shine at night."),
          ("What shines in the day", "The sun shines in the day."),
          ("What is ice", "Ice is frozen water."),
          ("What is snow", "Snow is frozen water that falls from the clouds."),
          ("What comes after the rain", "After the rain, there is often a rainbow."),
          ("What do plants need", "Plants need water, light and air."),
          ("What do we drink", "We drink water, milk and juice."),
          ("Where do fish live", "Fish live in the water."),
          ("Where do birds sleep", "Birds sleep in trees and nests."),
          ("What do bees make", "Bees make honey."),
          ("Who gives us milk", "The cow gives us milk."),
          ("Who lays eggs", "The hen lays eggs."),
          ("Who gives us wool", "The sheep gives us wool."),
          ("What grows on an apple tree", "Apples grow on an apple tree."),
          ("What falls from the clouds", "Rain and snow fall from the clouds."),
          ("What is the biggest animal in the sea", "The whale is the biggest animal in the sea."),
          ("Which planet do we live on", "We live on the planet Earth."),
          ("What is the moon", "The moon is a big ball of rock that goes around the Earth."),
          ("What is the sun", "The sun is a star. It gives us light and warmth."),
          ("What is a rainbow", "A rainbow is a bow of seven colours in the sky."),
          ("What is the first letter of the alphabet", "The first letter of the alphabet is A."),
          ("What is the last letter of the alphabet", "The last letter of the alphabet is Z."),
          ("What does a sentence begin with", "A sentence begins with a capital letter."),
          ("What does a sentence end with", "A sentence ends with a full stop."),
          ("What does a question end with", "A question ends with a question mark."),
          ("What does a name begin with", "A name begins with a capital letter."),
          ("Which letters are vowels", "The vowels are A, E, I, O and U.")]

SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
TENS = {2: "twenty", 3: "thirty", 4: "forty", 5: "fifty"}


def number(n: int) -> str:
    """The number in words, up to fifty-nine."""
    if n <= 20:
        return SMALL[n]
    return TENS[n // 10] + (f"-{SMALL[n % 10]}" if n % 10 else "")


def join(items: list[str], word: str = "and") -> str:
    """a, b and c."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" {word} {items[-1]}"
