#!/usr/bin/env node
/**
 * `npx vidimus <command>`, in plain JavaScript: it starts the command on the Node that came with the packages where the
 * one that runs this is older.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Of each what it runs, how it is called, and what it is for. `hasHelp`: it says more of itself. */
const COMMANDS = {
  demo: {
    script: 'test/demo/demo',
    usage: 'demo [--eu] [--keep]',
    about: 'starts a service, and a wallet that collects, shows and loses credentials',
    hasHelp: true,
  },
  start: {
    script: 'bootstrap/main',
    usage: 'start',
    about: 'starts the service; it is set by environment variables, which the README lists',
    // As `npm start` does; see the Dockerfile.
    environment: { MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_ARENA_MAX: '2' },
    nodeOptions: ['--max-semi-space-size=8'],
  },
  doctor: {
    script: 'bootstrap/commands/doctor',
    usage: 'doctor [--json] [--strict] [--offline] [--backup <file>]…',
    about:
      'looks at settings, database, address, clock, keys and what is unsafe in production; changes nothing',
  },
  config: {
    check: {
      script: 'bootstrap/commands/config-check',
      usage: 'config check <folder>',
      about: 'judges configuration files without a database',
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
      about: 'checks the chains of the audit log',
    },
  },
  kms: {
    migrate: {
      script: 'bootstrap/commands/kms-migrate',
      usage: 'kms migrate <tenant> <provider>',
      about: 'moves the keys of a tenant to another key provider',
    },
  },
  restore: {
    fence: {
      script: 'bootstrap/commands/restore-fence',
      usage: 'restore fence [--force] [--lost-releases <n>]',
      about: 'after a database was put back: ends what counts once and was handed out before',
    },
  },
  reseal: {
    script: 'bootstrap/commands/reseal',
    usage: 'reseal',
    about: 'seals everything under the first master secret, so that former ones can be dropped',
  },
  attack: {
    script: 'tools/attack/main',
    usage: 'attack <options>',
    about: 'attacks an issuer or a verifier that you operate, and says what is open',
    hasHelp: true,
  },
};
/** Signals that are for the command; this process ends when it has. */
const PASSED_ON = ['SIGTERM', 'SIGINT', 'SIGHUP'];

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const given = process.argv.slice(2);
const { command, rest } = find(given);
if (command === undefined) endWith(isHelp(given[0]) ? 0 : 2, given);
if (command.script === undefined) endWith(isHelp(rest[0]) ? 0 : 2, given, Object.values(command));
if (rest.some(isHelp) && command.hasHelp !== true) endWith(0, [], [command]);
run(command, rest);

/** @returns the command, or the table of those that its first word leaves open. */
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

function isHelp(word) {
  return word === '--help' || word === '-h' || word === 'help';
}

/** Help that was asked for goes where a pager reads it. */
function endWith(
  code,
  given,
  commands = Object.values(COMMANDS).flatMap((each) => (each.script ? [each] : Object.values(each))),
) {
  const say = code === 0 ? console.log : console.error;
  const unknown = given.find((word) => !word.startsWith('-'));
  if (code !== 0 && unknown !== undefined) say(`npx vidimus ${given.join(' ')}: there is no such command`);
  if (commands.length === 1) say(`usage: npx vidimus ${commands[0].usage}\n${commands[0].about}`);
  else {
    say('usage: npx vidimus <command>\n');
    for (const { usage, about } of commands) say(`  ${usage}\n      ${about}`);
  }
  process.exit(code);
}

function run({ script, usage, environment = {}, nodeOptions = [] }, args) {
  const source = join(root, `${script}.ts`);
  const built = join(root, `dist/${script}.js`);
  const program = existsSync(source) ? source : built;
  if (!existsSync(program)) {
    console.error(`${program} is missing: install the package anew, or run "npm ci" and "npm run build"`);
    process.exit(2);
  }
  const child = spawn(findNode(), [...nodeOptions, program, ...args], {
    stdio: 'inherit',
    env: { ...environment, ...process.env, VIDIMUS_USAGE: `npx vidimus ${usage}` },
  });
  for (const signal of PASSED_ON)
    process.on(signal, () => {
      // A terminal tells both.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  child.once('error', (error) => {
    console.error(error.message);
    process.exit(2);
  });
  child.once('exit', (code) => process.exit(code ?? 2));
}

/** Our own Node when it is new enough, else the one among the packages. */
function findNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 7)) return process.execPath;
  try {
    const own = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/package.json`);
    return join(dirname(own), 'bin/node');
  } catch {
    console.error(
      `Vidimus needs Node 24.7 or newer (this is ${process.version}), which its packages bring on Linux.`,
    );
    process.exit(2);
  }
}
