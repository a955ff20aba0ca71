#!/usr/bin/env node
/**
 * `npx vidimus <command>`, in plain JavaScript: when the running Node is too old, it starts the command on the Node from the packages.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runAsChild, startService } from './start-service.mjs';

/** The commands. `hasHelp`: the command prints its own help. `isService`: the command replaces this process. */
const COMMANDS = {
  demo: {
    script: 'test/demo/demo',
    usage: 'demo [--eu] [--keep]',
    about: 'starts a service, and a wallet that receives, presents and loses credentials',
    hasHelp: true,
  },
  start: {
    script: 'bootstrap/main',
    usage: 'start [--env-file=<file>]…',
    about: 'starts the service; it is configured by the environment variables in docs/reference/settings.md, or by files with them',
    isService: true,
  },
  doctor: {
    script: 'bootstrap/commands/doctor',
    usage: 'doctor [--json] [--strict] [--offline] [--backup <file>]…',
    about: 'checks settings, database, address, clock, keys and unsafe defaults in production; changes nothing',
  },
  config: {
    check: {
      script: 'bootstrap/commands/config-check',
      usage: 'config check <folder> [--profile haip|eu] [--strict]',
      about: 'validates configuration files without a database',
    },
    export: {
      script: 'bootstrap/commands/config-export',
      usage: 'config export <tenant> <folder> [--force]',
      about: 'writes a tenant as configuration files',
    },
  },
  audit: {
    verify: {
      script: 'bootstrap/commands/audit-verify',
      usage: 'audit verify [--expect <chain>=<sequence>:<hash>]…',
      about: 'verifies the chains of the audit log',
    },
  },
  kms: {
    migrate: {
      script: 'bootstrap/commands/kms-migrate',
      usage: 'kms migrate <tenant> <provider>',
      about: 'migrates the keys of a tenant to another key provider',
    },
  },
  restore: {
    fence: {
      script: 'bootstrap/commands/restore-fence',
      usage: 'restore fence [--force] [--lost-releases <n>]',
      about: 'after a restored database: invalidates single-use values that were issued before',
      hasHelp: true,
    },
  },
  migrate: {
    script: 'bootstrap/commands/migrate',
    usage: 'migrate [--grant-to <user>]',
    about: 'creates the tables of the database, or migrates those of an earlier release',
    hasHelp: true,
  },
  reseal: {
    script: 'bootstrap/commands/reseal',
    usage: 'reseal',
    about: 'reseals all data under the first master secret, so that former ones can be removed',
  },
  wallet: {
    script: 'packages/wallet/src/main',
    usage: 'wallet <link> [options]',
    about: 'a test wallet: accepts offers, answers presentation requests, and misbehaves on demand',
    hasHelp: true,
  },
  attack: {
    script: 'packages/attack/src/main',
    usage: 'attack <options>',
    about: 'attacks an issuer or a verifier that you operate, and reports vulnerabilities',
    hasHelp: true,
  },
};
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const given = process.argv.slice(2);
const { command, rest } = find(splitName(given));
if (command === undefined) endWith(isHelp(given[0]) ? 0 : 2, given);
if (command.script === undefined) endWith(isHelp(rest[0]) ? 0 : 2, given, Object.values(command));
if (rest.some(isHelp) && command.hasHelp !== true) endWith(0, [], [command]);
run(command, rest);

/** @returns the command, or the table of the commands that begin with its first word. */
function find([name = '', ...rest]) {
  if (name === '--version') {
    console.log(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version);
    process.exit(0);
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined || command.script !== undefined) return { command, rest };
  const [second = '', ...further] = rest;
  return Object.hasOwn(command, second) ? { command: command[second], rest: further } : { command, rest };
}

/** @returns the words of a command whose name was typed with a colon, like the scripts of a clone. */
function splitName([name = '', ...rest]) {
  const [first, second] = name.split(':', 2);
  const commands = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : {};
  return second !== undefined && commands.script === undefined && Object.hasOwn(commands, second)
    ? [first, second, ...rest]
    : [name, ...rest];
}

/** @returns the commands that differ from the typed words by a few characters, the nearest first. */
function similarCommands(words) {
  const named = Object.entries(COMMANDS).flatMap(([name, command]) =>
    command.script ? [name] : Object.keys(command).map((second) => `${name} ${second}`),
  );
  const typed = words.slice(0, 2).join(' ').replaceAll(':', ' ').slice(0, 40);
  return named
    .map((name) => ({ name, changes: Math.min(distance(typed, name), distance(words[0]?.slice(0, 40) ?? '', name)) }))
    .filter(({ name, changes }) => changes <= Math.max(1, Math.floor(name.length / 4)))
    .sort((match, otherMatch) => match.changes - otherMatch.changes)
    .map(({ name }) => name);
}

/** @returns the edit distance of two words, in which two exchanged neighbours count as one change. */
function distance(word, otherWord) {
  const rows = [Array.from({ length: otherWord.length + 1 }, (_, index) => index)];
  for (let at = 1; at <= word.length; at++) {
    const [row, previous] = [[at], rows[at - 1]];
    for (let to = 1; to <= otherWord.length; to++) {
      const isSwap = at > 1 && to > 1 && word[at - 1] === otherWord[to - 2] && word[at - 2] === otherWord[to - 1];
      const replaced = previous[to - 1] + (word[at - 1] === otherWord[to - 1] ? 0 : 1);
      row.push(Math.min(previous[to] + 1, row[to - 1] + 1, replaced, isSwap ? rows[at - 2][to - 2] + 1 : Number.POSITIVE_INFINITY));
    }
    rows.push(row);
  }
  return rows[word.length][otherWord.length];
}

function isHelp(word) {
  return word === '--help' || word === '-h' || word === 'help';
}

/** Requested help is written to standard output, so that a pager can read it. */
function endWith(
  code,
  given,
  commands = Object.values(COMMANDS).flatMap((command) => (command.script ? [command] : Object.values(command))),
) {
  const say = code === 0 ? console.log : console.error;
  const unknown = given.find((word) => !word.startsWith('-'));
  if (code !== 0 && unknown !== undefined) {
    say(`npx vidimus ${given.join(' ')}: there is no such command`);
    const [suggestion] = similarCommands(given);
    if (suggestion !== undefined) say(`did you mean "npx vidimus ${suggestion}"?`);
  }
  if (commands.length === 1) say(`usage: npx vidimus ${commands[0].usage}\n${commands[0].about}`);
  else {
    say('usage: npx vidimus <command>\n');
    for (const { usage, about } of commands) say(`  ${usage}\n      ${about}`);
  }
  process.exit(code);
}

function run({ script, usage, isService }, args) {
  const source = join(root, `${script}.ts`);
  const built = join(root, `dist/${script}.js`);
  const program = existsSync(source) ? source : built;
  if (!existsSync(program)) {
    console.error(`${program} is missing: reinstall the package, or run "npm ci" and "npm run build"`);
    process.exit(2);
  }
  const environment = { VIDIMUS_USAGE: `npx vidimus ${usage}` };
  if (isService) startService(findNode(), program, args, environment);
  else runAsChild(findNode(), [program, ...args], { ...process.env, ...environment });
}

/** @returns the running Node when it is new enough, otherwise the Node from the packages. */
function findNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 7)) return process.execPath;
  try {
    const own = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/package.json`);
    return join(dirname(own), 'bin/node');
  } catch {
    console.error(`Vidimus requires Node 24.7 or newer (this is ${process.version}), which its packages include on Linux.`);
    process.exit(2);
  }
}
