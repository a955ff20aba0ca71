import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

/**
 * `node test/upgrade/pack-releases.ts`: writes the programs of earlier states as they were, so that tests can run them where the
 * history is not at hand. They run on the packages of this release, which has all of theirs.
 */
const STATES = { 'first-release': 'b5e5889', '2026-11-28': '36fcf7a6' };
const PARTS = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'package.json'];

const cwd = fileURLToPath(new URL('../../', import.meta.url));
const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
for (const [name, commit] of Object.entries(STATES)) {
  const archive = execFileSync('git', ['archive', commit, ...PARTS], { cwd, maxBuffer: 1 << 28 });
  writeFileSync(new URL(`${name}.tar.br`, import.meta.url), brotliCompressSync(archive, { params }));
}
