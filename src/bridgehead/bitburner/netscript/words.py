"""Words: players' synonyms for the API's words and functions, and stop words."""

from __future__ import annotations

_STOP_WORDS = """
a an and any are as at be been being but by can could did do does for from get gets give given go has
have how i if in into is it its just me my of off on one or our set shall should so some such than that
the their them then there these they this those to too up use using want wants was we were what when
where which while who whose will with would you your am need needs like please tell find know see let
lets way out about around known function functions method api ns call value return returns show make
making many much now current something anything everything right really possible own again almost here
also very only else
"""
_SYNONYM_LINES = """
format: pretty nice nicely human readable
cloud: purchased bought own owned mine belong rent rented
accept: take agree
access: allowed permission permitted may
achievement: trophy award
action: task activity operation job contract
alert: popup message dialog box
analyze: calculate estimate effect predict compute
apply: hired application
arguments: args parameters options
args: arguments parameters options
ascend: ascension promote
ascension: ascend ascending
assignment: role job assign
at: handler callback hook when
attempt: solve submit answer try guess solution
augmentation: aug augs augment implant augments implants cyberware
authenticate: login password log unlock crack
autolevel: automatic automatically
available: left remaining currently
backdoor: backdoors
base: original initial starting default
bit: bitnode
bladeburner: bb
bonus: offline extra
buy: purchase acquire obtain pay
capacity: maximum limit store room hold most
cat: display contents
chance: probability odds likely likelihood success succeed succeeds risk successful win winning
chaos: unrest violence
charge: power boost strengthen
city: town cities place country
clash: fight battle war
class: course lesson lecture
clear: empty wipe clean
close: hide shut
company: employer firm business job workplace
connect: go jump move switch
contract: puzzle problem cct challenge contracts
cores: cpu processor
core: cpu processor
corporation: company corp business firm enterprise
cost: price expensive pay fee afford costs cheap paid
count: number many times
course: class lesson study lecture learn learning
create: start found begin build new write make establish
crime: heist crimes robbery rob illegal criminal
darknet: dark hidden
darkweb: dark web black market
data: information info input details
delete: remove erase destroy discard dispose sell rid throw
description: text explanation statement
destroy: break remove delete
details: info information
disable: hide mute silence turn suppress off
discontinue: stop remove delete end
division: branch department industry
donate: give pay money gift
employee: staff worker people employees personnel
enable: show turn on
enemies: rivals enemy hostile
equipment: gear weapon weapons armor armour vehicle item items rootkit equip
estimated: expected predicted
exec: execute run start launch another remote
exists: exist check there valid real
exit: quit end stop leave
exp: experience xp
expand: open new grow branch
export: send ship backup transfer
faction: guild
favor: favour
flags: arguments options parameters
focus: background attention
forecast: predict prediction rise fall trend up down future
fragment: piece part
gain: earn income production produce increase get rate per
gains: earn income production produce rewards
gift: stanek board grid
graft: grafting implant
grow: increase raise refill regrow growing fill
growth: grow growing increase
gym: train exercise workout training
hack: steal attack hacking rob
hacking: skill hack
hacknet: node nodes hash
hash: hashes
hire: recruit employ
home: computer
hospitalize: heal hospital health
hostname: server name
host: server
income: earn earned money profit salary makes revenue
industry: sector business
information: info details stats status data power strong size
info: information details
install: apply
investment: investor investors funding
invitations: invites invited invite want
invite: invitation invited
ip: address
job: work position
join: enter become member accept
kill: stop end terminate abort close
killall: stop kill all end terminate every
level: skill rank
limit: maximum most max highest cap
location: place building where
log: output logging message messages
logs: output lines
ls: list files directory
max: maximum most highest largest greatest limit full best biggest
market: exchange
member: gangster thug members
memory: ram
metadata: modified date timestamp
min: minimum lowest least smallest
mock: fake pretend simulate
money: cash funds dollars rich wealth balance dollar bank gold income
move: play put reposition
multiplier: bonus factor modifier mult multiplies
mult: multiplier bonus factor
multipliers: bonuses factors modifiers mults stats
mv: move rename
names: list which available
next: upcoming wait following
node: nodes
nuke: root access admin
num: number many count amount
offer: proposal
open: show display
opponent: enemy against rival
order: limit
owned: have mine possess own belong
party: celebration
pass: skip
percent: percentage fraction
place: put add insert set
player: me character myself
port: queue channel
position: own hold shares average paid
prereq: needed required before prerequisite requirement
price: cost expensive worth value costs paid
print: log write output
printf: log print format
probe: scan adjacent neighbours
product: goods
production: produce output make yield
program: exe software tool
prompt: ask dialog input question
ps: processes running list
purchase: buy acquire order obtain
purchased: bought own owned mine belong rent rented
quit: leave resign
ram: memory gb tb gigabyte gigabytes
rank: standing level
read: load open contents look
recent: last ended finished past
recovery: recover heal
recruit: hire member new
remaining: left available still
remove: delete take erase
rename: name call
rep: reputation standing
req: required requirement needed need
required: need needed necessary must minimum requirement enough
requirement: needed need necessary required
requirements: needed conditions need required
research: technology science
reset: restart again new begin
resize: size bigger smaller width height
rm: delete remove erase
root: admin rooted administrator
router: piece stone
run: start launch execute
running: active alive runs
sale: selling sell
save: backup
scan: neighbours neighbors adjacent connected network neighboring neighbouring reach reachable
scp: copy transfer another upload send
security: difficulty protection defence defense
self: this itself myself
sell: selling dispose rid dump
sector: industry
server: host machine computer n00dles foodnstuff joesguns target box machines hosts
servers: hosts machines computers
share: reputation bonus lend
shares: stock stocks
short: bet against falling
size: bigger large big larger
skill: level stat ability
sleep: wait pause delay
asleep: wait pause delay
sleeve: clone duplicate
spawn: start replace restart
spend: use exchange trade pay buy
sqlinject: sql port open crack
brutessh: ssh port open crack
ftpcrack: ftp port open crack
relaysmtp: smtp port open crack
httpworm: http port open crack
stamina: energy tired
start: begin do launch perform
stats: statistics info information details properties power
stock: share shares market trade trading stocks invest
stop: end quit cancel abort
styles: css font fonts
switch: change go move travel
sym: share ticker
symbols: tickers
synchronize: sync
tail: window log view
task: job work activity doing assignment duty
team: squad
terminal: console screen
territory: turf land
theme: colors colours dark colour color
time: long duration takes when until finish seconds minutes
tix: stock market trade trading
toast: popup notification notify alert
tor: darkweb router
total: all sum overall
tprint: terminal print console output
tprintf: terminal print format
training: train
travel: go move fly
tries: attempts
type: kind sort category
university: school college study learn learning
unlock: feature enable
update: change tick changes
upgrade: improve increase level more better bigger extend enhance add expand
used: use taken occupied free
valid: legal allowed
volatility: fluctuate unstable
wait: until sleep
warehouse: storage storehouse goods
warfare: war fight
weaken: security lower reduce decrease
wget: download url web internet
window: screen browser
work: job earn salary employed
workout: train exercise
write: save store put append add
"""
STOP = frozenset(_STOP_WORDS.split())
SYNONYMS: dict[str, tuple[str, ...]] = {
    api: tuple(words.split())
    for api, _, words in (line.partition(":") for line in _SYNONYM_LINES.strip().split("\n"))
}
"""Each word of the API with its synonyms."""

_PURPOSE_LINES = """
hack: steal take money from target
grow: increase raise refill restore money back more target empty
weaken: lower reduce decrease drop security target
scan: neighbours neighbors adjacent connected hosts network list all what is reach
nuke: gain get root admin access machine become
hasRootAccess: have admin rights rooted already check
getServerNumPortsRequired: open ports needed before nuke must number still
brutessh: ssh open port
ftpcrack: ftp open port
relaysmtp: smtp open port
httpworm: http open port
sqlinject: sql open port
getServerMoneyAvailable: money cash left now has much rich
getServerMaxMoney: maximum money most hold limit capacity could best amount full
getServerSecurityLevel: security now
getServerMinSecurityLevel: lowest minimum possible security far drop floor
getServerRequiredHackingLevel: skill level needed required minimum hack target reach attack must high enough
getHackingLevel: own my skill
getHackTime: how long hack take duration milliseconds finish done until when
getGrowTime: how long grow take duration milliseconds finish done until when
getWeakenTime: how long weaken take duration milliseconds finish done until when
hackAnalyze: percentage fraction part share stolen thread
hackAnalyzeChance: probability odds success succeed hack does works
hackAnalyzeThreads: threads needed steal given amount sum money
hackAnalyzeSecurity: security increase raise effect hack threads
growthAnalyze: threads needed multiply double grow money factor
growthAnalyzeSecurity: security increase raise effect grow threads
weakenAnalyze: security decrease effect weaken threads
getServerMaxRam: total memory size host all room space
getServerUsedRam: memory used free left available host in use much room space
getScriptRam: memory needed script uses costs
exec: launch start other different another remote machine host server script run worker threads with arguments
run: start launch script here this same host machine another again
spawn: replace running itself by another restart afterwards again
kill: stop end terminate running script process pid
killall: kill stop end terminate every all scripts host everything
ps: which what running script scripts process processes list pids
isRunning: already running check active alive still
getRunningScript: details information about running
scp: copy upload transfer send file other another server put several distribute machines
ls: list files directory folder host what which
write: save store text append file
read: load contents text file
rm: delete remove erase file script
fileExists: does there exist check file path have
mv: rename move file script
wget: download url web internet fetch get
sleep: wait pause delay second milliseconds stop for while between
asleep: wait pause delay meanwhile parallel
tprint: show print display message terminal
print: write log message
clearLog: empty erase log
disableLog: hide silence mute stop suppress log messages function cluttering noise turn off
enableLog: show again log messages function
tail: open show log window pop up
openTail: open show log window pop up
toast: notify notification popup corner message
alert: popup dialog message notify
prompt: ask question yes no dialog input answer text user
flags: parse command line arguments options parameters defaults
atExit: when script ends exits finished cleanup callback something clean up before dies
exit: end stop quit this script itself
writePort: send data between scripts through port put pass messages from one to another communicate
readPort: receive take data port next messages communicate
peek: look read port without removing
getPortHandle: port object queue data between messages communicate pass
purchaseServer: buy new server tb gb
deleteServer: sell remove bought server throw away rid
getPurchasedServerCost: price cost new server gb tb ram expensive
getServerCost: price cost new server gb tb ram expensive
getPurchasedServers: names list servers own bought my
getServerNames: names list servers own bought my
getPurchasedServerLimit: how many servers may own maximum number
getServerLimit: how many servers may own maximum number
upgradePurchasedServer: increase more ram memory bought server
upgradeServer: increase more ram memory bought server
getHostname: name this server current where am what runs on script
getPlayer: stats money skills me character city karma hp health who
getServer: all information details object host everything known
getMoneySources: income earned where from how much made
formatNumber: short readable thousands millions like
formatRam: memory readable gigabytes gb bytes print
getForecast: chance probability goes rise up predict prediction stock future fall down trend
getVolatility: risk change stock wildly move swing fluctuates
getPosition: hold own shares many bought average price stock
getSymbols: list all stock symbols names companies tickers
buyStock: buy purchase shares stock long
sellStock: sell shares stock symbol
buyShort: short shares bet fall against drop
connect: terminal go switch to server
installBackdoor: backdoor current server
joinFaction: accept invitation invite
checkFactionInvitations: pending open invitations who invited list
workForFaction: reputation job earn work hack
getFactionRep: reputation how much standing
purchaseAugmentation: buy
getAugmentationPrice: price cost how expensive
installAugmentations: reset install all bought
gymWorkout: gym train strength defense dexterity agility work lift weights run fitness
universityCourse: study class learn university course take attend
commitCrime: crime rob steal homicide do shoplift mug go
applyToCompany: job apply get hired find promotion new
workForCompany: job salary earn work at employer
purchaseProgram: buy program exe dark web get
purchaseTor: buy tor router dark web
upgradeHomeRam: more memory home computer bigger
attempt: solve answer submit solution coding contract guess
getData: input task data coding contract puzzle
getContractType: kind type coding contract
numNodes: number count how many nodes
purchaseNode: buy new node add more another
spendHashes: use exchange hashes trade turn into money sell
setMemberTask: assign job make member do task train work
ascendMember: ascend multipliers
recruitMember: hire new member
purchaseEquipment: equip buy weapons armor gear member
setTerritoryWarfare: war clashes territory fight
setToCommitCrime: send crime do
getScriptIncome: money per second earns makes
getScriptLogs: lines log of script
getServerGrowth: growth rate parameter fast
serverExists: there host valid check
getResetInfo: last reset bitnode since started node which
share: reputation bonus faction lend ram
nextPortWrite: wait until data arrives port listen sends message
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
travelToCity: go move fly city another
isBusy: doing something working occupied
stopAction: quit cancel end work doing
getCurrentWork: doing working now task activity what
upgradeHomeCores: more cpu home computer bigger
getCompanyRep: reputation standing employer job
getCompanyFavor: favour employer
getFactionInviteRequirements: conditions needed join invitation
getFactionEnemies: rivals conflict exclude
getFactionFavor: favour how much
donateToFaction: pay give money reputation buy
createProgram: write code develop exe
getCrimeChance: success probability odds
getOwnedAugmentations: have installed mine my already
getOwnedSourceFiles: have mine my levels
getAugmentationFactions: who sells offers
getAugmentationsFromFaction: sells offers available list
getAugmentationPrereq: needed first required before
getAugmentationRepReq: reputation needed required how much
getAugmentationStats: bonuses multipliers effects improves
hospitalize: heal hospital health hp injured hurt go
softReset: reset restart without installing
goToLocation: visit walk enter place go
getCurrentServer: connected terminal where am
getDarkwebPrograms: list programs sold
getDarkwebProgramCost: price program
destroyW0r1dD43m0n: finish bitnode next end world daemon destroy
maxNumNodes: most limit number nodes
getPurchaseNodeCost: price next new node
getNodeStats: production level cores details information node makes earns produces
upgradeCore: more cpu node
getCoreUpgradeCost: price more cpu node
getLevelUpgradeCost: price next levels node
getRamUpgradeCost: price more memory node
numHashes: amount have own stored
hashCapacity: most limit stored
getHashUpgrades: list what hashes buy trade for
startAction: begin do operation contract go perform blackop
stopBladeburnerAction: cancel quit idle
getCurrentAction: doing now
getActionTime: how long takes duration
getActionEstimatedSuccessChance: probability odds succeed
getActionCountRemaining: left how many
getRank: my standing points
getSkillPoints: unspent left
upgradeSkill: level improve spend points
getSkillUpgradeCost: price next level points
getStamina: energy tired exhausted rest low
getCityChaos: unrest violence level
getCityEstimatedPopulation: synthoids people number
switchCity: move travel go another
joinBladeburnerDivision: become start
getDescription: text task what problem
getNumTriesRemaining: attempts left tries guesses often still
createDummyContract: test practice generate
getServerUpgradeCost: price more memory bought
renameServer: new name bought
getRamLimit: most largest memory bought
number: short readable thousands millions like
ram: memory readable gigabytes bytes gb print
percent: percentage readable show as
time: duration readable hours minutes
createGang: start found begin
inGang: am member have
getMemberNames: list who my
getMemberInformation: stats skills details
getGangInformation: respect wanted power my stats income territory gain per second
getAllGangInformation: other rivals power territory enemy
getOtherGangInformation: other rivals power territory enemy
canRecruitMember: enough respect another new may
getTaskNames: list jobs available what which can members
getEquipmentNames: list weapons armor gear upgrades
getEquipmentCost: price weapons armor gear
getAscensionResult: gain multipliers would if worth before benefit
getChanceToWinClash: probability odds fight against war beat
getSleeve: stats skills shock sync details
getNumSleeves: how many count own
getTask: doing working now what is
setToIdle: stop nothing rest relax
setToShockRecovery: heal reduce lower recover
setToSynchronize: sync raise
setToFactionWork: send job reputation
setToCompanyWork: send job salary
setToUniversityCourse: send study learn class
setToGymWorkout: send train strength
travel: go move fly city
purchaseSleeveAug: buy augmentation augmentations
getSleevePurchasableAugs: list buy available
getAugmentationGraftPrice: cost how expensive
getAugmentationGraftTime: how long takes duration
graftAugmentation: start begin
makeMove: play place put stone
passTurn: skip
getBoardState: stones position board
getOpponent: who playing against
resetBoardState: new game start again opponent size
getValidMoves: legal allowed where
chargeFragment: power boost
placeFragment: put grid piece set
acceptGift: join church
getInfiltration: reward difficulty details hard easy company
moveTail: log window position place
resizeTail: log window size width height bigger
closeTail: hide log window
setTitle: name heading caption log window
setTailTitle: name heading caption log window
windowSize: screen width height browser
clearTerminal: empty erase screen
getRecentScripts: ended finished died last
getScriptName: file this own name what called
getScriptExpGain: experience per second
getTotalScriptIncome: money per second all earn
tryWritePort: send put port full
clearPort: empty remove delete all data
getFunctionRamCost: memory needed function costs
getBitNodeMultipliers: modifiers this
getFavorToDonate: needed favour donate
getPurchasedServerMaxRam: most largest memory bought
renamePurchasedServer: new name bought
formatPercent: percentage readable show as
createCorporation: start found begin own company business new
getCorporation: funds revenue details information
getDivision: details information industry
expandIndustry: new division start
expandCity: new office open
getInvestmentOffer: investors money how much
acceptInvestmentOffer: take investors money
getOffice: employees people staff size working
hireEmployee: recruit staff people worker someone
upgradeOfficeSize: bigger more employees room
hireAdVert: advertise marketing campaign popularity awareness
sellMaterial: sell price amount division makes goods
sellProduct: sell price amount division makes goods
makeProduct: design develop new
buyMaterial: purchase amount per second
purchaseWarehouse: buy storage
upgradeWarehouse: bigger more storage
setSmartSupply: automatic buy materials
research: unlock technology
goPublic: ipo shares exchange
issueDividends: pay shareholders
clear: empty file
dnsLookup: ip address hostname resolve translate
dynamicImport: load module import runtime
getFileMetadata: when modified changed created date time file
getHackingMultipliers: my hacking bonuses speed money
getHacknetMultipliers: my hacknet bonuses production
getIP: address of this server
getPurchasedServerUpgradeCost: price more memory bought
getServerBaseSecurityLevel: starting original security
getSharePower: reputation bonus share effect
getTimeSinceLastAug: long ago installed augmentations reset
getTotalScriptExpGain: experience per second all scripts
isLogEnabled: is logging on
nFormat: readable short number
printRaw: react element html log
printf: format text log placeholders
ramOverride: change limit memory static script less
scriptKill: stop end every script that name
scriptRunning: any script that name running check
self: information about this script itself pid
sprintf: format text template placeholders
tFormat: readable duration hours minutes
tprintRaw: react element html terminal
tprintf: format text terminal placeholders
vsprintf: format text template list
getActionAutolevel: automatic level
getActionCurrentLevel: level operation contract
getActionCurrentTime: elapsed progress passed already
getActionMaxLevel: highest level operation contract
getActionRankGain: how much rank earn reward
getActionRankLoss: how much rank lose fail failure
getActionRepGain: how much reputation earn reward
getActionSuccesses: how many times done completed
getBlackOpNames: list black operations
getBlackOpRank: needed required rank black operation
getBonusTime: offline stored extra speed
getCityCommunities: synthoid number
getContractNames: list contracts
getGeneralActionNames: list general training field analysis recruitment diplomacy
getNextBlackOp: which black operation next
getOperationNames: list operations
getSkillLevel: level of skill
getSkillNames: list skills
getTeamSize: how many members team
inBladeburner: am member joined
joinBladeburnerFaction: join become
nextUpdate: wait sleep until tick happens
setActionAutolevel: automatic level turn
setActionLevel: choose level
setTeamSize: assign members operation
getContract: object everything input type description
getContractTypes: list kinds
bribe: faction reputation pay
bulkPurchase: buy materials at once large amount
buyBackShares: repurchase own stock
buyTea: energy morale employees
canCreateCorporation: possible allowed start check
cancelExportMaterial: stop sending
discontinueProduct: stop making remove
exportMaterial: send ship transfer between cities divisions
getHireAdVertCost: price advertising
getHireAdVertCount: how many advertising campaigns
getIndustryData: facts materials needed produced
getMaterial: stock amount quality price demand warehouse
getMaterialData: facts size
getOfficeSizeUpgradeCost: price bigger office more employees
getProduct: rating quality price demand development progress
getResearchCost: price points technology
getUnlockCost: price feature
getUpgradeLevel: level of upgrade
getUpgradeLevelCost: price next level upgrade
getUpgradeWarehouseCost: price bigger storage
getWarehouse: storage space used size
hasCorporation: do own have
hasResearched: know technology already
hasUnlock: bought feature already
hasWarehouse: have storage there
issueNewShares: sell new stock raise money
levelUpgrade: buy improve level
limitMaterialProduction: cap restrict produce less
limitProductProduction: cap restrict produce less
purchaseUnlock: buy feature
sellDivision: close get rid
sellShares: own stock money
setAutoJobAssignment: assign employees automatically roles
setJobAssignment: assign employees roles operations engineer research
setMaterialMarketTA1: automatic price
setMaterialMarketTA2: automatic best price
setProductMarketTA1: automatic price
setProductMarketTA2: automatic best price
setSmartSupplyOption: leftovers imports
throwParty: morale happiness employees
authenticate: password login guess crack access
connectToSession: log in again password known
getBlockedRam: memory occupied owner
getDarknetInstability: unstable network
getDepth: how deep
getServerAuthDetails: password hint model format length
getServerRequiredCharismaLevel: charisma needed
getStasisLinkLimit: how many links
getStasisLinkedServers: list servers linked
heartbleed: read steal logs hints
induceServerMigration: move server closer
isDarknetServer: check whether dark
memoryReallocation: free blocked memory
nextMutation: wait until network changes
openCache: loot reward file
phishingAttack: emails money
probe: neighbours adjacent connected dark servers
promoteStock: propaganda raise volatility
setStasisLink: keep server connected remote
unleashStormSeed: storm run
mockPerson: fake empty person object
mockPlayer: fake empty player object
mockServer: fake empty server object
skillMaxUpgradeCount: how many levels afford points
growAmount: money after growing
growPercent: factor per thread grow
growThreads: threads needed to fill grow maximum money
growTime: how long grow
hackChance: odds succeed hack hypothetical
hackExp: experience hack gives
hackPercent: part fraction stolen per thread
hackTime: how long hack
weakenEffect: security decrease per thread
weakenTime: how long weaken
hacknetNodeCost: price new node
moneyGainRate: production money per second node
hashGainRate: production hashes per second server
calculateFavorToRep: reputation needed for favor
calculateRepToFavor: favor from reputation after reset
donationForRep: money to donate for reputation
repFromDonation: reputation for donating money
sharePower: bonus of share threads
calculateExp: experience needed for level
calculateSkill: level from experience
companyGains: salary reputation per work
crimeGains: money experience crime
crimeSuccessChance: odds crime
factionGains: reputation experience work
gymGains: experience training
universityGains: experience study
ascensionMultiplier: bonus factor
ascensionPointsGain: points ascending
moneyGain: income per task
respectGain: respect per task
wantedLevelGain: wanted per task
wantedPenalty: loss through wanted level
getEquipmentStats: bonuses effect weapon armor
getEquipmentType: kind weapon armor vehicle
getInstallResult: lose installing augmentations
getRecruitsAvailable: how many new members
getTaskStats: respect money wanted difficulty job
renameMember: name change
respectForNextRecruit: respect needed next new member
getCurrentPlayer: whose turn
getGameState: score turn over winner
getMoveHistory: previous moves
opponentNextTurn: wait until opponent moved
getChains: connected groups stones
getControlledEmptyNodes: territory who controls
getLiberties: freedom open neighbours
getStats: wins losses record bonuses
resetStats: forget wins losses
setTestingBoardState: custom board test
highlightPoint: mark color circle
clearPointHighlight: unmark
clearAllPointHighlights: unmark all
destroyNode: remove empty point
getCheatCount: how many times cheated
getCheatSuccessChance: odds cheating caught
playTwoMoves: two stones at once
removeRouter: remove take enemy stone
repairOfflineNode: restore dead point
getGraftableAugmentations: list can which
waitForOngoingGrafting: until finished done
getCacheUpgradeCost: price more hash storage
getHashUpgradeLevel: times bought
getStudyMult: bonus university
getTrainingMult: bonus gym
hashCost: price hashes needed
upgradeCache: more hash storage capacity
upgradeLevel: improve node production
upgradeRam: more memory node server
getPossibleLocations: list where places companies
b1tflum3: switch leave bitnode
cat: show contents file terminal
exportGame: backup save download
exportGameBonus: backup reward favor
getSaveData: backup save file
getAugmentationBasePrice: original price cost
getCompanyFavorGain: favor after reset
getCompanyPositionInfo: job requirements salary
getCompanyPositions: list jobs titles
getCrimeStats: difficulty money time karma details
getFactionFavorGain: favor after reset
getFactionWorkTypes: hacking field security kinds
getHackingLevelRequirementOfProgram: level needed write create
getUnlockedAchievements: list done
getUpgradeHomeCoresCost: price more cpu home
getUpgradeHomeRamCost: price more memory home
isFocused: background working
manualHack: hack by hand terminal connected server
quitJob: leave resign employer
setFocus: background foreground work
getMemoryUpgradeCost: price sleeve memory
getSleeveAugmentationPrice: cost sleeve
getSleeveAugmentationRepReq: reputation needed
getSleeveAugmentations: which installed has
getSleeveCost: price another new sleeve
purchaseSleeve: buy another new more
setToBladeburnerAction: send operation contract
upgradeMemory: increase sleeve memory
activeFragments: which placed on board
canPlaceFragment: fits possible check there
clearGift: remove all pieces empty board
fragmentDefinitions: list all kinds pieces
getFragment: which piece at position
giftHeight: board rows size
giftWidth: board columns size
removeFragment: take piece away
has4SData: own market data
has4SDataTIXAPI: own market data api
has4SDataTixApi: own market data api
hasTIXAPIAccess: may allowed trade script own
hasTixApiAccess: may allowed trade script own
hasWSEAccount: own have account
hasWseAccount: own have account
purchase4SMarketData: buy forecast data
purchase4SMarketDataTixApi: buy forecast data script access
purchaseTixApi: buy access trade script
purchaseWseAccount: buy open account access
getGameInfo: version commit platform
getStyles: css font
getTheme: colors colours
renderTail: redraw refresh log window
resetStyles: default original
resetTheme: default original colors
setStyles: css font change
setTailFontSize: text bigger smaller log window
setTailMinimized: collapse log window
setTheme: colors colours change dark
"""
PURPOSES: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, _, words in (line.partition(":") for line in _PURPOSE_LINES.strip().split("\n"))
}
"""Players' words for the purpose of a function, by its bare name."""
