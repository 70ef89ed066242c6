"""Words: synonyms that players use for the API's words, and words that a search ignores."""

from __future__ import annotations

_STOP_WORDS = """
a an and any are as at be by can do does for from get give given have how i if in into is it me my
of on one or set so some that the their them there this to up use using want was we what when where
which who will with you your function functions method api ns call value return returns tell find
out way show make let lets many much now current
"""
_SYNONYM_LINES = """
money: cash funds dollars
buy: purchase acquire get
purchase: buy
purchased: bought own owned
server: host machine computer
host: server
hostname: server
ram: memory
delete: remove erase
rm: delete remove erase
scp: copy transfer another
mv: move rename
ls: list files
ps: processes running list
exec: execute run start launch another remote
at: handler callback hook
run: start launch execute
spawn: start replace
kill: stop end terminate
killall: stop kill all
scan: neighbours neighbors adjacent connected network
nuke: root access admin
brutessh: ssh port open
ftpcrack: ftp port open
relaysmtp: smtp port open
httpworm: http port open
sqlinject: sql port open
root: admin rooted
sleep: wait pause delay
asleep: wait pause
print: log write output
tprint: terminal print console output
tprintf: terminal print format
printf: log print format
toast: popup notification notify alert
prompt: ask dialog input
alert: popup message
wget: download url web
write: save file
read: load file
weaken: security lower reduce
security: difficulty
hack: steal
grow: increase
growth: grow
analyze: calculate estimate effect
time: long duration takes
chance: probability success odds
max: maximum most highest limit
min: minimum lowest least
cost: price expensive
upgrade: improve increase level
augmentation: aug augs augment implant
augmentations: aug augs augments implants
faction: guild
crime: heist crimes
backdoor: backdoors
hacknet: node nodes hash
stock: share shares market trade
tix: stock market trade
sym: share
contract: puzzle contracts cct
attempt: solve submit answer
corporation: company corp
sleeve: clone duplicate
bladeburner: bb
exit: quit end stop leave
port: queue channel
arguments: args parameters
args: arguments parameters
flags: arguments options parameters
player: stats me character
skill: level stat
hacking: skill
tail: window log
exists: exist check there
available: has left
forecast: predict prediction
program: exe darkweb
tor: darkweb router
ascend: ascension
recruit: hire member
share: reputation bonus
bit: bitnode
"""
STOP = frozenset(_STOP_WORDS.split())
SYNONYMS: dict[str, tuple[str, ...]] = {
    api: tuple(words.split())
    for api, _, words in (line.partition(":") for line in _SYNONYM_LINES.strip().splitlines())
}
"""Each word of the API with its synonyms."""
