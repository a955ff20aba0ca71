import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type BuildOptions, build } from 'esbuild';
import { BROWSER_OPTIONS } from '../src/browser-bundle.ts';

const CORE = 'packages/wallet/src/core/index.ts';
const MOST_BYTES = 250_000;

async function bundled(input: Pick<BuildOptions, 'entryPoints' | 'stdin'>) {
  const { outputFiles, metafile } = await build({ ...BROWSER_OPTIONS, ...input, write: false, metafile: true, logLevel: 'silent' });
  const imports = Object.values(metafile?.inputs ?? {}).flatMap((one) => one.imports);
  return { text: outputFiles?.[0]?.text ?? '', imports };
}

describe('the simulated wallet in a browser', () => {
  it('is bundled without anything of Node, and small', async () => {
    const { text, imports } = await bundled({ entryPoints: [CORE] });
    const builtins = imports.filter(({ path, external }) => external === true || path.startsWith('node:'));
    expect(builtins).to.deep.equal([]);
    const bytes = gzipSync(text).length;
    console.log(`      ${text.length} characters minified, ${bytes} bytes with gzip`);
    expect(bytes).to.be.lessThan(MOST_BYTES);
  });

  it('needs no right to compile code', async () => {
    const { text } = await bundled({ entryPoints: [CORE] });
    expect(text).to.not.match(/new Function\b|\beval\(/);
  });

  it('would be noticed if it used a module of Node', async () => {
    const contents = `export * from './${CORE}'; export { readFileSync } from 'node:fs';`;
    const failed = await bundled({ stdin: { contents, resolveDir: BROWSER_OPTIONS.absWorkingDir } }).then(
      () => 'bundled',
      (error: Error) => error.message,
    );
    expect(failed).to.include('node:fs');
  });
});
