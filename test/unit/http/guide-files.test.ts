import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { GuideFiles } from '../../../adapters/http/service/guide-files.ts';

const PAGE = '<a href="/docs/guide/guides/first-hour.html">x</a><script id="check">run()</script><script src="/docs/guide/a.js"></script>';

describe('The files of the documentation site', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-guide-'));
    mkdirSync(join(folder, 'site/assets'), { recursive: true });
    writeFileSync(join(folder, 'secret.txt'), 'secret');
    writeFileSync(join(folder, 'site/index.html'), PAGE);
    writeFileSync(join(folder, 'site/assets/picture.png'), Buffer.of(0xff, 0x00));
    writeFileSync(join(folder, 'site/assets/program.exe'), 'x');
    for (const name of ['app.DsW19PQF.js', 'map.md.BACykgRU.lean.js', 'code.css']) writeFileSync(join(folder, 'site/assets', name), 'x');
  });
  after(() => rmSync(folder, { recursive: true }));
  const files = (base = '') => new GuideFiles(base, [pathToFileURL(`${folder}/none/`), pathToFileURL(`${folder}/site/`)]);

  it('have a content type and the hashes of the inline scripts of a page', async () => {
    const page = await files().read('index.html');
    expect(page).to.deep.include({ content: PAGE, contentType: 'text/html; charset=utf-8' });
    expect(page?.scriptHashes).to.deep.equal([hash('sha256', 'run()', 'base64')]);
  });

  it('link below the path of the public address', async () => {
    const page = await files('/id').read('index.html');
    expect(page?.content).to.include('href="/id/docs/guide/guides/first-hour.html"').and.include('src="/id/docs/guide/a.js"');
  });

  it('are unchanged when they are not text', async () => {
    expect((await files('/id').read('assets/picture.png'))?.content).to.deep.equal(Buffer.of(0xff, 0x00));
  });

  for (const name of [
    '../secret.txt',
    'assets/../../secret.txt',
    'assets',
    '',
    'none.html',
    'assets/program.exe',
    '/etc/passwd',
    'index.html/',
  ])
    it(`are not found by the name "${name}"`, async () => {
      expect(await files().read(name)).to.equal(undefined);
    });

  it('never change if their name contains a hash', async () => {
    const isHashed = async (name: string) => (await files().read(name))?.isHashed;
    expect(await isHashed('assets/app.DsW19PQF.js')).to.equal(true);
    expect(await isHashed('assets/map.md.BACykgRU.lean.js')).to.equal(true);
    expect(await isHashed('assets/code.css')).to.equal(false);
    expect(await isHashed('index.html')).to.equal(false);
  });

  it('are not found once they were removed', async () => {
    writeFileSync(join(folder, 'site/removed.html'), PAGE);
    const site = files();
    rmSync(join(folder, 'site/removed.html'));
    expect(await site.read('removed.html')).to.equal(undefined);
  });

  it('report an error when they cannot be read', async () => {
    // A folder with the name of a page is in the list, and cannot be read as a file.
    mkdirSync(join(folder, 'site/folder.html'));
    const error = await files()
      .read('folder.html')
      .catch((thrown: unknown) => thrown);
    expect(error).to.have.property('code', 'EISDIR');
  });

  it('are absent when the site was not built', async () => {
    const missingFolder = new GuideFiles('', [pathToFileURL(`${folder}/none/`)]);
    expect([missingFolder.isBuilt, await missingFolder.read('index.html')]).to.deep.equal([false, undefined]);
  });
});
