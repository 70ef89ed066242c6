"""Signatures: the functions that the definitions of the simulated game describe, in words of our own.

Those that scripts use most, not all of the game's: a sentence, and below it the signature.
"""

from __future__ import annotations

TYPES = """
type ScriptArg = string | number | boolean;
type FilenameOrPID = number | string;
interface BasicHGWOptions { threads?: number; stock?: boolean; additionalMsec?: number; }
interface RunOptions { threads?: number; temporary?: boolean; ramOverride?: number; \
preventDuplicates?: boolean; }
interface SpawnOptions extends RunOptions { spawnDelay?: number; }
interface ProcessInfo { filename: string; threads: number; args: ScriptArg[]; pid: number; \
temporary: boolean; }
interface Server { hostname: string; ip: string; hasAdminRights: boolean; maxRam: number; \
ramUsed: number; cpuCores: number; moneyAvailable?: number; moneyMax?: number; hackDifficulty?: number; \
minDifficulty?: number; requiredHackingSkill?: number; numOpenPortsRequired?: number; \
backdoorInstalled?: boolean; }
interface Skills { hacking: number; strength: number; defense: number; dexterity: number; \
agility: number; charisma: number; intelligence: number; }
interface Player { money: number; city: string; skills: Skills; exp: Skills; hp: HP; }
interface HP { current: number; max: number; }
interface RunningScript { filename: string; server: string; pid: number; threads: number; \
ramUsage: number; logs: string[]; args: ScriptArg[]; }
interface NetscriptPort { read(): any; write(value: any): any; peek(): any; empty(): boolean; \
full(): boolean; clear(): void; nextWrite(): Promise<void>; }
interface NodeStats { name: string; level: number; ram: number; cores: number; production: number; }
"""

FUNCTIONS = {
    "NS": """
Take money from a server. Resolves with the amount.
    hack(host: string, opts?: BasicHGWOptions): Promise<number>;
Let the money on a server grow. Resolves with the factor.
    grow(host: string, opts?: BasicHGWOptions): Promise<number>;
Lower the security of a server. Resolves with the drop.
    weaken(host: string, opts?: BasicHGWOptions): Promise<number>;
Tell the part of a server's money that one thread of hack takes.
    hackAnalyze(host: string): number;
Tell how many threads of hack take an amount.
    hackAnalyzeThreads(host: string, hackAmount: number): number;
Tell the chance that hack succeeds, from 0 to 1.
    hackAnalyzeChance(host: string): number;
Tell by how much hack raises the security.
    hackAnalyzeSecurity(threads: number, hostname?: string): number;
Tell the threads of grow for a factor.
    growthAnalyze(host: string, multiplier: number, cores?: number): number;
Tell what grow adds to security.
    growthAnalyzeSecurity(threads: number, hostname?: string, cores?: number): number;
Tell by how much weaken lowers the security.
    weakenAnalyze(threads: number, cores?: number): number;
Wait, and let others run.
    sleep(millis: number): Promise<true>;
Wait beside other functions of the same script.
    asleep(millis: number): Promise<true>;
Write a line to the script's own log.
    print(...args: any[]): void;
Write a line to the terminal.
    tprint(...args: any[]): void;
Write a formatted line to the log.
    printf(format: string, ...args: any[]): void;
Write a formatted line to the terminal.
    tprintf(format: string, ...args: any[]): void;
Empty the script's log.
    clearLog(): void;
Keep a function from writing to the log.
    disableLog(fn: string): void;
Let a function write to the log again.
    enableLog(fn: string): void;
Read the log of a script.
    getScriptLogs(fn?: FilenameOrPID, hostname?: string, ...args: ScriptArg[]): string[];
Show a note in the corner of the screen.
    toast(msg: string, variant?: string, duration?: number | null): void;
List the servers that a server is connected to.
    scan(host?: string): string[];
Gain root access to a server whose ports are open enough.
    nuke(host: string): boolean;
Open the SSH port of a server.
    brutessh(host: string): boolean;
Open the FTP port of a server.
    ftpcrack(host: string): boolean;
Open the SMTP port of a server.
    relaysmtp(host: string): boolean;
Open the HTTP port of a server.
    httpworm(host: string): boolean;
Open the SQL port of a server.
    sqlinject(host: string): boolean;
Start a script here.
    run(script: string, threadOrOptions?: number | RunOptions, ...args: ScriptArg[]): number;
Start a script on any server. Returns its PID, or 0.
    exec(script: string, host: string, threadOrOptions?: number | RunOptions, ...args: ScriptArg[]): number;
End this script and start another one.
    spawn(script: string, threadOrOptions?: number | SpawnOptions, ...args: ScriptArg[]): void;
Describe the script that asks.
    self(): RunningScript;
End a script by its PID.
    kill(pid: number): boolean;
End all scripts on a server.
    killall(host?: string, safetyGuard?: boolean): boolean;
End this script.
    exit(): never;
Name a function that runs when this script ends.
    atExit(f: () => void, id?: string): void;
Copy files between servers.
    scp(files: string | string[], destination: string, source?: string): boolean;
List the files on a server.
    ls(host: string, substring?: string): string[];
List the scripts that run on a server.
    ps(host?: string): ProcessInfo[];
Tell whether you have root access.
    hasRootAccess(host: string): boolean;
Tell the server that this script runs on.
    getHostname(): string;
Tell your hacking skill.
    getHackingLevel(): number;
Describe the player.
    getPlayer(): Player;
Describe a server.
    getServer(host?: string): Server;
Tell the money that is on a server.
    getServerMoneyAvailable(host: string): number;
Tell the most money that can be on a server.
    getServerMaxMoney(host: string): number;
Tell how fast money grows on a server.
    getServerGrowth(host: string): number;
Tell the security of a server now.
    getServerSecurityLevel(host: string): number;
Tell the lowest security of a server.
    getServerMinSecurityLevel(host: string): number;
Tell the skill that a server asks for.
    getServerRequiredHackingLevel(host: string): number;
Tell how many open ports nuke needs.
    getServerNumPortsRequired(host: string): number;
Tell the RAM of a server in GB.
    getServerMaxRam(host: string): number;
Tell the RAM in use on a server in GB.
    getServerUsedRam(host: string): number;
Tell whether there is a server of this name.
    serverExists(host: string): boolean;
Tell whether a file is on a server.
    fileExists(filename: string, host?: string): boolean;
Tell whether a script runs.
    isRunning(script: FilenameOrPID, host?: string, ...args: ScriptArg[]): boolean;
Describe a script that runs.
    getRunningScript(filename?: FilenameOrPID, host?: string, ...args: ScriptArg[]): RunningScript | null;
Tell the price of a server with so much RAM.
    getPurchasedServerCost(ram: number): number;
Buy a server. Returns its name.
    purchaseServer(hostname: string, ram: number): string;
Give a server of yours more RAM.
    upgradePurchasedServer(hostname: string, ram: number): boolean;
Give up a server of yours.
    deleteServer(host: string): boolean;
List your servers.
    getPurchasedServers(): string[];
Tell how many servers you can have.
    getPurchasedServerLimit(): number;
Tell the most RAM that a server of yours can have.
    getPurchasedServerMaxRam(): number;
Write a text or a script.
    write(filename: string, data?: string, mode?: "w" | "a"): void;
Read a text or a script.
    read(filename: string): string;
Delete a file.
    rm(name: string, host?: string): boolean;
Rename a file.
    mv(host: string, source: string, destination: string): void;
Look at the first entry of a port.
    peek(portNumber: number): any;
Empty a port.
    clearPort(handle: number): void;
Put an entry into a port.
    writePort(portNumber: number, data: any): any;
Take the first entry out of a port.
    readPort(portNumber: number): any;
Return a port as an object.
    getPortHandle(portNumber: number): NetscriptPort;
Tell the RAM cost of a script in GB.
    getScriptRam(script: string, host?: string): number;
Tell how long hack takes, in milliseconds.
    getHackTime(host: string): number;
Tell how long grow takes, in milliseconds.
    getGrowTime(host: string): number;
Tell how long weaken takes, in milliseconds.
    getWeakenTime(host: string): number;
Tell what all scripts earn in a second.
    getTotalScriptIncome(): [number, number];
Tell what a script earns in a second.
    getScriptIncome(script: string, host: string, ...args: ScriptArg[]): number;
Ask the player.
    prompt(txt: string, options?: { type?: "boolean" | "text" | "select"; choices?: string[] }): \
Promise<boolean | string>;
Load a page into a file.
    wget(url: string, target: string, host?: string): Promise<boolean>;
Read the arguments of this script as flags.
    flags(schema: [string, string | number | boolean | string[]][]): { [key: string]: ScriptArg | string[] };
""",
    "Hacknet": """
Count your nodes.
    numNodes(): number;
Buy a node. Returns its index, or -1.
    purchaseNode(): number;
Tell the price of the next node.
    getPurchaseNodeCost(): number;
Describe a node.
    getNodeStats(index: number): NodeStats;
Raise the level of a node.
    upgradeLevel(index: number, n?: number): boolean;
Raise the RAM of a node.
    upgradeRam(index: number, n?: number): boolean;
Raise the cores of a node.
    upgradeCore(index: number, n?: number): boolean;
""",
    "Singularity": """
Connect the terminal to a server.
    connect(hostname: string): boolean;
Hack the connected server by hand.
    manualHack(): Promise<number>;
Install a backdoor on the connected server.
    installBackdoor(): Promise<void>;
Tell the server that the terminal is connected to.
    getCurrentServer(): string;
Buy the router that leads to the dark web.
    purchaseTor(): boolean;
Buy a program.
    purchaseProgram(programName: string): boolean;
Travel to another city.
    travelToCity(city: string): boolean;
Join a faction that has invited you.
    joinFaction(faction: string): boolean;
Work for a faction.
    workForFaction(faction: string, workType: string, focus?: boolean): boolean;
Apply for a job.
    applyToCompany(companyName: string, field: string): boolean;
Give your home server more RAM.
    upgradeHomeRam(): boolean;
""",
    "Stock": """
List the symbols of the market.
    getSymbols(): string[];
Tell the price of a share.
    getPrice(sym: string): number;
Tell what you hold of a share.
    getPosition(sym: string): [number, number, number, number];
Tell the chance that a price rises, from 0 to 1.
    getForecast(sym: string): number;
Buy shares. Returns the price of each.
    buyStock(sym: string, shares: number): number;
Sell shares. Returns the price of each.
    sellStock(sym: string, shares: number): number;
""",
    "CodingContract": """
Hand in the answer to a contract.
    attempt(answer: any, filename: string, host?: string): string;
Tell the kind of a contract.
    getContractType(filename: string, host?: string): string;
Give the input of a contract.
    getData(filename: string, host?: string): any;
Tell how often you may still try.
    getNumTriesRemaining(filename: string, host?: string): number;
""",
    "Formulas": """
Tell the chance of hack for any server and player.
    hackChance(server: Server, player: Player): number;
Tell what a thread of hack takes for any server and player.
    hackPercent(server: Server, player: Player): number;
Tell the factor of grow.
    growPercent(server: Server, threads: number, player: Player, cores?: number): number;
Tell how long hack takes for any server and player.
    hackTime(server: Server, player: Player): number;
""",
}
