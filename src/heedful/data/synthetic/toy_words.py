"""The words of the toy language: German and English, a few hundred of each.

Nouns are `gender singular plural = singular plural`; `*` marks German nouns that take -(e)n outside the nominative.
Adjectives are `German(stem if it differs)=English`. Verbs are `prefix|infinitive third participle = base past`, with
`!` where the perfect takes "sein", `_` before an English particle and `~` before an English preposition.
"""

import re
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun of both languages; `kind` says what it can do and what can be done to it."""

    kind: str
    gender: str
    weak: bool
    german: tuple[str, str]
    english: tuple[str, str]


class Verb(NamedTuple):
    """A verb of both languages; the German `prefix` is separable; English pronouns stand before the `particle`."""

    prefix: str
    infinitive: str
    third: str
    participle: str
    auxiliary: str
    english: str
    past: str
    particle: str
    preposition: str


_NOUNS = {
    "person": """
m Mann Männer = man men; f Frau Frauen = woman women; n Kind Kinder = child children
m Lehrer Lehrer = teacher teachers; m Arzt Ärzte = doctor doctors; m* Junge Jungen = boy boys
n Mädchen Mädchen = girl girls; m Freund Freunde = friend friends; f Schwester Schwestern = sister sisters
m Bruder Brüder = brother brothers; f Mutter Mütter = mother mothers; m Vater Väter = father fathers
m* Bauer Bauern = farmer farmers; m Koch Köche = cook cooks; m König Könige = king kings
f Königin Königinnen = queen queens; m* Student Studenten = student students; f Tante Tanten = aunt aunts
m Onkel Onkel = uncle uncles; m* Nachbar Nachbarn = neighbour neighbours; m Gast Gäste = guest guests
m Richter Richter = judge judges; f Krankenschwester Krankenschwestern = nurse nurses
m Fahrer Fahrer = driver drivers; m Sänger Sänger = singer singers; m* Soldat Soldaten = soldier soldiers
m Maler Maler = painter painters; m Bäcker Bäcker = baker bakers; m Dieb Diebe = thief thieves
f Prinzessin Prinzessinnen = princess princesses; m* Kunde Kunden = customer customers
m Schüler Schüler = pupil pupils""",
    "animal": """
m Hund Hunde = dog dogs; f Katze Katzen = cat cats; n Pferd Pferde = horse horses; m Vogel Vögel = bird birds
f Kuh Kühe = cow cows; n Schaf Schafe = sheep sheep; f Maus Mäuse = mouse mice; m Fuchs Füchse = fox foxes
m* Bär Bären = bear bears; m* Löwe Löwen = lion lions; m* Affe Affen = monkey monkeys; f Ente Enten = duck ducks
n Huhn Hühner = chicken chickens; f Ziege Ziegen = goat goats; m Wolf Wölfe = wolf wolves
n Kaninchen Kaninchen = rabbit rabbits; m Frosch Frösche = frog frogs""",
    "thing": """
n Buch Bücher = book books; m Brief Briefe = letter letters; f Zeitung Zeitungen = newspaper newspapers
n Bild Bilder = picture pictures; m Tisch Tische = table tables; m Stuhl Stühle = chair chairs
f Tasche Taschen = bag bags; m Schlüssel Schlüssel = key keys; n Auto Autos = car cars
n Fahrrad Fahrräder = bicycle bicycles; m Ball Bälle = ball balls; f Lampe Lampen = lamp lamps
f Uhr Uhren = clock clocks; n Messer Messer = knife knives; n Glas Gläser = glass glasses
m Teller Teller = plate plates; f Flasche Flaschen = bottle bottles; m Koffer Koffer = suitcase suitcases
m Korb Körbe = basket baskets; m Stein Steine = stone stones; f Kerze Kerzen = candle candles
n Geschenk Geschenke = present presents; m Spiegel Spiegel = mirror mirrors; m Löffel Löffel = spoon spoons
f Decke Decken = blanket blankets; n Kissen Kissen = pillow pillows; m Ring Ringe = ring rings
f Blume Blumen = flower flowers; m Regenschirm Regenschirme = umbrella umbrellas""",
    "clothing": """
n Hemd Hemden = shirt shirts; m Mantel Mäntel = coat coats; m Hut Hüte = hat hats; m Schuh Schuhe = shoe shoes
n Kleid Kleider = dress dresses; f Jacke Jacken = jacket jackets; m Rock Röcke = skirt skirts
m Schal Schals = scarf scarves""",
    "food": """
m Apfel Äpfel = apple apples; f Birne Birnen = pear pears; m Kuchen Kuchen = cake cakes; n Ei Eier = egg eggs
f Suppe Suppen = soup soups; f Kartoffel Kartoffeln = potato potatoes; f Tomate Tomaten = tomato tomatoes
f Kirsche Kirschen = cherry cherries; f Erdbeere Erdbeeren = strawberry strawberries
m Pfannkuchen Pfannkuchen = pancake pancakes; f Wurst Würste = sausage sausages
f Zwiebel Zwiebeln = onion onions; f Banane Bananen = banana bananas""",
    "place": """
m Garten Gärten = garden gardens; n Haus Häuser = house houses; f Stadt Städte = city cities
m Wald Wälder = forest forests; f Schule Schulen = school schools; m Park Parks = park parks
f Küche Küchen = kitchen kitchens; n Dorf Dörfer = village villages; f Kirche Kirchen = church churches
n Zimmer Zimmer = room rooms; m Keller Keller = cellar cellars; n Museum Museen = museum museums
f Bibliothek Bibliotheken = library libraries; n Hotel Hotels = hotel hotels
n Restaurant Restaurants = restaurant restaurants; m Hof Höfe = yard yards; n Schloss Schlösser = castle castles
m Laden Läden = shop shops""",
}

_ADJECTIVES = {
    "person": """
alt=old jung=young klein=small groß=big freundlich=friendly müde(müd)=tired glücklich=happy traurig=sad
klug=clever stark=strong schwach=weak reich=rich arm=poor berühmt=famous nett=nice ruhig=quiet faul=lazy
mutig=brave höflich=polite hungrig=hungry krank=ill""",
    "animal": """
alt=old jung=young klein=small groß=big müde(müd)=tired schwarz=black weiß=white braun=brown grau=grey dick=fat
hungrig=hungry wild=wild schnell=fast""",
    "thing": """
alt=old neu=new klein=small groß=big rot=red blau=blue grün=green gelb=yellow schwarz=black weiß=white
schwer=heavy leicht=light teuer(teur)=expensive billig=cheap schön=beautiful schmutzig=dirty sauber=clean
kaputt=broken""",
    "clothing": """
alt=old neu=new rot=red blau=blue grün=green gelb=yellow schwarz=black weiß=white teuer(teur)=expensive
billig=cheap schön=beautiful schmutzig=dirty sauber=clean warm=warm""",
    "food": """
frisch=fresh süß=sweet kalt=cold warm=warm heiß=hot groß=big klein=small lecker=delicious billig=cheap""",
    "place": """
alt=old neu=new groß=big klein=small ruhig=quiet dunkel(dunkl)=dark schön=beautiful leer=empty hell=bright
schmutzig=dirty""",
}

# Kinds of subject and object → verbs; "animate" is a person or an animal, "object" anything that can be held.
_VERBS = {
    "animate": """
schlafen schläft geschlafen = sleep slept; sitzen sitzt gesessen = sit sat; stehen steht gestanden = stand stood
!laufen läuft gelaufen = run ran; warten wartet gewartet = wait waited; auf|!wachen wacht gewacht = wake_up woke
ein|!schlafen schläft geschlafen = fall_asleep fell; weg|!laufen läuft gelaufen = run_away ran
zurück|!kommen kommt gekommen = come_back came""",
    "person": """
lachen lacht gelacht = laugh laughed; singen singt gesungen = sing sang; tanzen tanzt getanzt = dance danced
arbeiten arbeitet gearbeitet = work worked; weinen weint geweint = cry cried
auf|!stehen steht gestanden = get_up got; an|!kommen kommt gekommen = arrive arrived
ein|kaufen kauft gekauft = shop shopped; schwimmen schwimmt geschwommen = swim swam""",
    "animate animate": """
sehen sieht gesehen = see saw; hören hört gehört = hear heard; suchen sucht gesucht = look~for looked
finden findet gefunden = find found""",
    "person animate": """
lieben liebt geliebt = love loved; malen malt gemalt = paint painted; retten rettet gerettet = save saved
vergessen vergisst vergessen = forget forgot""",
    "person person": """
kennen kennt gekannt = know knew; fragen fragt gefragt = ask asked; besuchen besucht besucht = visit visited
ab|holen holt geholt = pick_up picked; an|rufen ruft gerufen = call called
ein|laden lädt geladen = invite invited""",
    "person place": """
verlassen verlässt verlassen = leave left; betreten betritt betreten = enter entered
putzen putzt geputzt = clean cleaned""",
    "animal animal": """
jagen jagt gejagt = chase chased; beißen beißt gebissen = bite bit""",
    "person object": """
kaufen kauft gekauft = buy bought; verkaufen verkauft verkauft = sell sold
tragen trägt getragen = carry carried; holen holt geholt = fetch fetched
weg|werfen wirft geworfen = throw_away threw; mit|bringen bringt gebracht = bring brought
waschen wäscht gewaschen = wash washed; stehlen stiehlt gestohlen = steal stole
verlieren verliert verloren = lose lost; ein|packen packt gepackt = pack packed
brauchen braucht gebraucht = need needed""",
    "person clothing": """
an|ziehen zieht gezogen = put_on put; aus|ziehen zieht gezogen = take_off took; nähen näht genäht = sew sewed""",
    "animate food": """
essen isst gegessen = eat ate; riechen riecht gerochen = smell smelled""",
    "person food": """
kochen kocht gekocht = cook cooked; schneiden schneidet geschnitten = cut cut
bestellen bestellt bestellt = order ordered; auf|essen isst gegessen = eat_up ate""",
    "person dative": """
helfen hilft geholfen = help helped; danken dankt gedankt = thank thanked
antworten antwortet geantwortet = answer answered; vertrauen vertraut vertraut = trust trusted
zu|hören hört gehört = listen~to listened""",
    "person gift": """
geben gibt gegeben = give gave; zeigen zeigt gezeigt = show showed; schicken schickt geschickt = send sent
bringen bringt gebracht = bring brought; leihen leiht geliehen = lend lent""",
    "animate goal": """
!gehen geht gegangen = go went; !laufen läuft gelaufen = run ran; !springen springt gesprungen = jump jumped""",
    "person that": """
sagen sagt gesagt = say said; glauben glaubt geglaubt = believe believed; hoffen hofft gehofft = hope hoped
denken denkt gedacht = think thought; wissen weiß gewusst = know knew""",
}

# (verb, German preposition, its case, English preposition, kind of object)
PREPOSITIONAL = (
    ("warten wartet gewartet = wait waited", "auf", "acc", "for", "person"),
    ("träumen träumt geträumt = dream dreamed", "von", "dat", "of", "thing"),
    ("sprechen spricht gesprochen = talk talked", "mit", "dat", "to", "person"),
    ("lachen lacht gelacht = laugh laughed", "über", "acc", "at", "animate"),
    ("denken denkt gedacht = think thought", "an", "acc", "of", "person"),
    ("spielen spielt gespielt = play played", "mit", "dat", "with", "animate"),
)

# German pronoun in three cases, and the English pair; first, second, third person singular, then plural.
PRONOUNS = (
    (1, "sg", "ich", "mich", "mir", "I", "me"),
    (2, "sg", "du", "dich", "dir", "you", "you"),
    (3, "sg", "er", "ihn", "ihm", "he", "him"),
    (3, "sg", "sie", "sie", "ihr", "she", "her"),
    (1, "pl", "wir", "uns", "uns", "we", "us"),
    (3, "pl", "sie", "sie", "ihnen", "they", "them"),
)

POSSESSIVES = (("mein", "my"), ("dein", "your"), ("sein", "his"), ("ihr", "her"), ("unser", "our"))
NUMBERS = (("zwei", "two"), ("drei", "three"), ("vier", "four"), ("fünf", "five"))
PLACES = (("in", "in"), ("neben", "beside"), ("vor", "outside"), ("hinter", "behind"))
CONJUNCTIONS = (("weil", "because"), ("da", "since"), ("obwohl", "although"), ("während", "while"))

COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "grey")
OFTEN = (("oft", "often"), ("immer", "always"), ("nie", "never"), ("manchmal", "sometimes"), ("selten", "rarely"))
HOW = (("schnell", "quickly"), ("langsam", "slowly"), ("leise", "quietly"), ("vorsichtig", "carefully"))
WHEN = {
    "present": (("heute", "today"), ("jetzt", "now")),
    "perfect": (("gestern", "yesterday"), ("heute", "today"), ("vorgestern", "the day before yesterday")),
}


def _nouns() -> dict[str, tuple[Noun, ...]]:
    table: dict[str, tuple[Noun, ...]] = {}
    for kind, text in _NOUNS.items():
        found = []
        for entry in text.strip().replace("\n", ";").split(";"):
            german, english = (side.split() for side in entry.split("="))
            found.append(
                Noun(kind, german[0][0], german[0].endswith("*"), (german[1], german[2]), (english[0], english[1]))
            )
        table[kind] = tuple(found)
    table["animate"] = table["person"] + table["animal"]
    table["object"] = table["thing"] + table["clothing"]
    return table


def _adjectives() -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Kind → (predicative form, stem, English)."""
    table = {}
    for kind, text in _ADJECTIVES.items():
        pairs = (entry.split("=") for entry in text.split())
        table[kind] = tuple(
            (german.split("(")[0], german.partition("(")[2].rstrip(")") or german, english) for german, english in pairs
        )
    return table


def verb(text: str) -> Verb:
    """Read one verb.

    >>> verb("auf|!wachen wacht gewacht = wake_up woke").prefix
    'auf'
    """
    german, english = (side.split() for side in text.split("="))
    prefix, _, infinitive = german[0].rpartition("|")
    base, _, particle = english[0].partition("_")
    base, _, preposition = base.partition("~")
    auxiliary = "sein" if infinitive.startswith("!") else "haben"
    infinitive = infinitive.lstrip("!")
    return Verb(prefix, infinitive, german[1], german[2], auxiliary, base, english[1], particle, preposition)


NOUNS = _nouns()
ADJECTIVES = _adjectives()
VERBS = {frame: tuple(verb(entry) for entry in re.split(r"[;\n]", text.strip())) for frame, text in _VERBS.items()}
