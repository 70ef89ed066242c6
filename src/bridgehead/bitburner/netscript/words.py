"""Words: what players say for the API's words and functions, and words that a search ignores."""

from __future__ import annotations

_STOP_WORDS = """
a an and any are as at be by can do does for from get give given have how i if in into is it me my
of on one or set so some that the their them there this to up use using want was we what when where
which who will with you your function functions method api ns call value return returns tell find
out way show make let lets many much now current about everything known please
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

_PURPOSE_LINES = """
hack: steal take money from target
grow: increase raise refill restore money back more target
weaken: lower reduce decrease drop security target
scan: neighbours neighbors adjacent connected hosts network list all
nuke: gain get root admin access machine
hasRootAccess: have admin rights rooted already check
getServerNumPortsRequired: open ports needed before nuke must number
brutessh: ssh open port
ftpcrack: ftp open port
relaysmtp: smtp open port
httpworm: http open port
sqlinject: sql open port
getServerMoneyAvailable: money cash left now has
getServerMaxMoney: maximum money most hold limit capacity
getServerSecurityLevel: security now
getServerMinSecurityLevel: lowest minimum possible security
getServerRequiredHackingLevel: skill level needed required minimum hack target
getHackingLevel: own my skill
getHackTime: how long hack take duration milliseconds
getGrowTime: how long grow take duration milliseconds
getWeakenTime: how long weaken take duration milliseconds
hackAnalyze: percentage fraction part share stolen thread
hackAnalyzeChance: probability odds success succeed hack
hackAnalyzeThreads: threads needed steal given amount sum money
hackAnalyzeSecurity: security increase raise effect hack threads
growthAnalyze: threads needed multiply double grow money factor
growthAnalyzeSecurity: security increase raise effect grow threads
weakenAnalyze: security decrease effect weaken threads
getServerMaxRam: total memory size host all
getServerUsedRam: memory used free left available host
getScriptRam: memory needed script uses costs
exec: launch start other different another remote machine host script
run: start launch script here this same host machine another
spawn: replace running itself by another restart afterwards
kill: stop end terminate running script process pid
killall: stop end terminate every all scripts host
ps: which what running scripts processes list
isRunning: already running check active
getRunningScript: details information about running
scp: copy upload transfer send file other another server
ls: list files directory folder host
write: save store text append file
read: load contents text file
rm: delete remove erase file
fileExists: does there exist check file
mv: rename move file script
wget: download url web internet
sleep: wait pause delay second milliseconds
asleep: wait pause delay meanwhile parallel
tprint: show print display message terminal
print: write log message
clearLog: empty erase log
disableLog: hide silence mute stop suppress log messages function
enableLog: show again log messages function
tail: open show log window
openTail: open show log window
toast: notify notification popup corner message
alert: popup dialog message notify
prompt: ask question yes no dialog input answer
flags: parse command line arguments options parameters
atExit: when script ends exits finished cleanup callback something
exit: end stop quit this script itself
writePort: send data between scripts through port put
readPort: receive take data port next
peek: look read port without removing
getPortHandle: port object queue data between
purchaseServer: buy new server
deleteServer: sell remove bought server
getPurchasedServerCost: price cost new server gb
getServerCost: price cost new server gb
getPurchasedServers: names list servers own bought my
getServerNames: names list servers own bought my
getPurchasedServerLimit: how many servers may own maximum number
getServerLimit: how many servers may own maximum number
upgradePurchasedServer: increase more ram memory bought server
upgradeServer: increase more ram memory bought server
getHostname: name this server current where am
getPlayer: stats money skills me character
getServer: all information details object host
getMoneySources: income earned where from
formatNumber: short readable thousands millions like
formatRam: memory readable gigabytes
getForecast: chance probability goes rise up predict prediction stock
getVolatility: risk change stock
getPosition: hold own shares many bought average price stock
getSymbols: list all stock symbols names
buyStock: buy purchase shares stock long
sellStock: sell shares stock symbol
buyShort: short shares bet fall
connect: terminal go switch to server
installBackdoor: backdoor current server
joinFaction: accept invitation invite
checkFactionInvitations: pending open invitations
workForFaction: reputation job earn
getFactionRep: reputation how much standing
purchaseAugmentation: buy
getAugmentationPrice: price cost how expensive
installAugmentations: reset install all bought
gymWorkout: gym train strength defense dexterity agility work
universityCourse: study class learn university course
commitCrime: crime rob steal homicide do
applyToCompany: job apply get hired
workForCompany: job salary earn
purchaseProgram: buy program exe dark web
purchaseTor: buy tor router dark web
upgradeHomeRam: more memory home computer
attempt: solve answer submit solution coding contract
getData: input task data coding contract
getContractType: kind type coding contract
numNodes: number count how many nodes
purchaseNode: buy new node
spendHashes: use exchange hashes
setMemberTask: assign job make member do task
ascendMember: ascend multipliers
recruitMember: hire new member
purchaseEquipment: equip buy weapons armor gear member
setTerritoryWarfare: war clashes territory fight
setToCommitCrime: send crime do
getScriptIncome: money per second earns
getScriptLogs: lines log of script
getServerGrowth: growth rate parameter fast
serverExists: there host valid check
getResetInfo: last reset bitnode since started
share: reputation bonus faction lend
nextPortWrite: wait until data arrives port
hasTorRouter: own have tor
getOrganization: company behind symbol name
getPrice: worth value share stock
getAskPrice: buy price worth share
getBidPrice: sell price worth share
getMaxShares: most limit own company
getPurchaseCost: total pay buying shares fee commission
getSaleGain: total earn selling shares profit fee commission
sellShort: close cover bet fall shares
placeOrder: limit stop order later automatic
cancelOrder: withdraw remove limit stop
getOrders: open pending limit stop
travelToCity: go move fly city
isBusy: doing something working occupied
stopAction: quit cancel end work doing
getCurrentWork: doing working now task activity
upgradeHomeCores: more cpu home computer
getCompanyRep: reputation standing employer job
getCompanyFavor: favour employer
getFactionInviteRequirements: conditions needed join invitation
getFactionEnemies: rivals conflict exclude
getFactionFavor: favour how much
donateToFaction: pay give money reputation
createProgram: write code develop exe
getCrimeChance: success probability odds
getOwnedAugmentations: have installed mine my already
getOwnedSourceFiles: have mine my levels
getAugmentationFactions: who sells offers
getAugmentationsFromFaction: sells offers available list
getAugmentationPrereq: needed first required before
getAugmentationRepReq: reputation needed required
getAugmentationStats: bonuses multipliers effects improves
hospitalize: heal hospital health hp
softReset: reset restart without installing
goToLocation: visit walk enter place
getCurrentServer: connected terminal where am
getDarkwebPrograms: list programs sold
getDarkwebProgramCost: price program
destroyW0r1dD43m0n: finish bitnode next end
maxNumNodes: most limit number nodes
getPurchaseNodeCost: price next new node
getNodeStats: production level cores details information node
upgradeCore: more cpu node
getCoreUpgradeCost: price more cpu node
getLevelUpgradeCost: price next levels node
getRamUpgradeCost: price more memory node
numHashes: amount have own stored
hashCapacity: most limit stored
getHashUpgrades: list what hashes buy
startAction: begin do operation contract
stopBladeburnerAction: cancel quit idle
getCurrentAction: doing now
getActionTime: how long takes duration
getActionEstimatedSuccessChance: probability odds succeed
getActionCountRemaining: left how many
getRank: my standing points
getSkillPoints: unspent left
upgradeSkill: level improve spend points
getSkillUpgradeCost: price next level points
getStamina: energy tired exhausted rest
getCityChaos: unrest violence
getCityEstimatedPopulation: synthoids people number
switchCity: move travel go
joinBladeburnerDivision: become start
getDescription: text task what problem
getNumTriesRemaining: attempts left tries
createDummyContract: test practice generate
getServerUpgradeCost: price more memory bought
renameServer: new name bought
getRamLimit: most largest memory bought
number: short readable thousands millions like
ram: memory readable gigabytes bytes
percent: percentage readable
time: duration readable hours minutes
createGang: start found begin
inGang: am member have
getMemberNames: list who my
getMemberInformation: stats skills details
getGangInformation: respect wanted power my stats
getAllGangInformation: other rivals power territory
getOtherGangInformation: other rivals power territory
canRecruitMember: enough respect another new
getTaskNames: list jobs available
getEquipmentNames: list weapons armor gear upgrades
getEquipmentCost: price weapons armor gear
getAscensionResult: gain multipliers would if
getChanceToWinClash: probability odds fight against war
getSleeve: stats skills shock sync details
getNumSleeves: how many count own
getTask: doing working now
setToIdle: stop nothing rest
setToShockRecovery: heal reduce lower
setToSynchronize: sync raise
setToFactionWork: send job reputation
setToCompanyWork: send job salary
setToUniversityCourse: send study learn class
setToGymWorkout: send train strength
travel: go move fly city
purchaseSleeveAug: buy
getSleevePurchasableAugs: list buy available
getAugmentationGraftPrice: cost how expensive
getAugmentationGraftTime: how long takes duration
graftAugmentation: start begin
makeMove: play place put stone
passTurn: skip
getBoardState: stones position board
getOpponent: who playing against
resetBoardState: new game start again
getValidMoves: legal allowed where
chargeFragment: power boost
placeFragment: put grid
acceptGift: join church
getInfiltration: reward difficulty details
moveTail: log window position place
resizeTail: log window size width height bigger
closeTail: hide log window
setTitle: name heading caption log window
setTailTitle: name heading caption log window
windowSize: screen width height browser
clearTerminal: empty erase screen
getRecentScripts: ended finished died last
getScriptName: file this own name
getScriptExpGain: experience per second
getTotalScriptIncome: money per second all earn
tryWritePort: send put port full
clearPort: empty remove delete all data
getFunctionRamCost: memory needed function costs
getBitNodeMultipliers: modifiers this
getFavorToDonate: needed favour donate
getPurchasedServerMaxRam: most largest memory bought
renamePurchasedServer: new name bought
formatPercent: percentage readable
createCorporation: start found begin
getCorporation: funds revenue details information
getDivision: details information industry
expandIndustry: new division start
expandCity: new office open
getInvestmentOffer: investors money
acceptInvestmentOffer: take investors money
getOffice: employees people staff size
hireEmployee: recruit staff people worker
upgradeOfficeSize: bigger more employees room
hireAdVert: advertise marketing
sellMaterial: sell price amount
sellProduct: sell price amount
makeProduct: design develop new
buyMaterial: purchase amount per second
purchaseWarehouse: buy storage
upgradeWarehouse: bigger more storage
setSmartSupply: automatic buy materials
research: unlock technology
goPublic: ipo shares exchange
issueDividends: pay shareholders
"""
PURPOSES: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, _, words in (line.partition(":") for line in _PURPOSE_LINES.strip().splitlines())
}
"""What players say they want from a function, by its bare name."""
