import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

/**
 * `node test/upgrade/pack-first-release.ts`: writes `first-release.tar.br`, the program of the first release as it was, so that
 * tests can run it where the history is not at hand. It runs on the packages of this release, which has all of its own.
 */
const FIRST_RELEASE = 'b5e5889';
const PARTS = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'package.json'];

const cwd = fileURLToPath(new URL('../../', import.meta.url));
const archive = execFileSync('git', ['archive', FIRST_RELEASE, ...PARTS], { cwd, maxBuffer: 1 << 28 });
const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
writeFileSync(new URL('first-release.tar.br', import.meta.url), brotliCompressSync(archive, { params }));
