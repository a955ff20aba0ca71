import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import * as client from '../../client/index.ts';
import { framesOf } from '../support/docs-walk.ts';
import { runProgram } from '../support/program.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(join(ROOT, 'docs/client.md'), 'utf8');

/** What the page takes for granted. */
const GIVEN = 'declare const app: any, express: any, query: any, claimsFor: any;';

describe('the page about the client', () => {
  it('shows code that fits the types', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-docs-client-'));
    try {
      mkdirSync(join(folder, 'node_modules'));
      symlinkSync(ROOT, join(folder, 'node_modules/vidimus'));
      symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
      const [first, ...others] = framesOf(text).filter(
        ({ language }) => language === 'js' || language === 'ts',
      );
      const blocks = others.map((frame) => `{\n${frame.text}\n}`);
      writeFileSync(join(folder, 'page.mts'), [first?.text, GIVEN, ...blocks].join('\n'));
      const options = ['--noEmit', '--module', 'nodenext', '--target', 'es2024'];
      const args = [...options, '--strict', 'false', '--types', 'node', '--skipLibCheck', 'page.mts'];
      const compiler = join(ROOT, 'node_modules/.bin/tsc');
      const { code, output } = await runProgram(compiler, [...args, '--rewriteRelativeImportExtensions'], {
        cwd: folder,
        environment: { PATH: process.env['PATH'] },
      });
      expect(code, output).to.equal(0);
      expect(blocks).to.have.length.greaterThan(3);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('names all that there is', () => {
    const error = Object.keys(new client.VidimusError('timeout', 'late')).filter((name) => name !== 'name');
    const methods = Object.getOwnPropertyNames(client.VidimusClient.prototype).slice(1);
    for (const name of [...Object.keys(client), ...error, ...methods])
      expect(text, name).to.match(new RegExp(`\\b${name}\\b`));
  });
});
