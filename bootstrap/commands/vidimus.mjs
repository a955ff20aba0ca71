#!/usr/bin/env node
/**
 * `npx vidimus <command>`, in plain JavaScript: it starts the command on the Node that came with the packages where the
 * one that runs this is older.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMANDS = { attack: 'tools/attack/main' };
const [name = '', ...rest] = process.argv.slice(2);
const script = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (script === undefined) {
  console.error(`usage: npx vidimus <${Object.keys(COMMANDS).join(' | ')}> [options]`);
  process.exit(2);
}

const { node, root } = findNode(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const source = join(root, `${script}.ts`);
const built = join(root, `dist/${script}.js`);
const { status } = spawnSync(node, [existsSync(source) ? source : built, ...rest], { stdio: 'inherit' });
process.exit(status ?? 2);

/** Our own Node when it is new enough, else the one among the packages. */
function findNode(root) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 7)) return { node: process.execPath, root };
  try {
    const own = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/package.json`);
    return { node: join(dirname(own), 'bin/node'), root };
  } catch {
    console.error(`Vidimus needs Node 24.7 or newer (this is ${process.version}). Run "npm ci" first.`);
    process.exit(2);
  }
}
