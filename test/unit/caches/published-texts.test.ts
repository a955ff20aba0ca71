import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { PublishedTexts } from '../../../adapters/http/published-texts.ts';
import type { Reply } from '../../../adapters/http/route.ts';
import { setCacheMemory } from '../../../application/bounded.ts';

const TEXT = 'one of many words '.repeat(500);
const reply = (text: string | Buffer): Reply => ({
  status: 200,
  text,
  contentType: 'text/plain',
  etag: '"1"',
});
const asked = (encoding: string) => ({ headers: { 'accept-encoding': encoding } });
const textOf = (told: Reply) => ('text' in told ? told.text : undefined);
const headerOf = (told: Reply, name: string) => told.headers?.[name];

describe('Texts that are published', () => {
  let texts: PublishedTexts;
  beforeEach(() => {
    setCacheMemory(472);
    texts = new PublishedTexts();
  });
  after(() => setCacheMemory(472));

  it('are compressed once for all who ask at the same time, and for who comes later', async () => {
    const told = await Promise.all(
      Array.from({ length: 40 }, () => texts.answer(reply(TEXT), asked('gzip'))),
    );
    const [first] = told.map(textOf);
    expect(gunzipSync(first as Buffer).toString()).to.equal(TEXT);
    // The very same bytes, also for a text of equal content that was read anew.
    expect(new Set(told.map(textOf)).size).to.equal(1);
    expect(textOf(await texts.answer(reply(`${TEXT}`), asked('gzip')))).to.equal(first);
    const kept = Buffer.from(TEXT);
    expect(textOf(await texts.answer(reply(kept), asked('gzip')))).to.equal(first);
    expect(textOf(await texts.answer(reply(kept), asked('gzip')))).to.equal(first);
    expect(textOf(await texts.answer(reply(`${TEXT}!`), asked('gzip')))).to.not.equal(first);
    expect(textOf(await texts.answer(reply(TEXT), asked('br')))).to.not.equal(first);
  });

  it('are sent as they are where that is no longer', async () => {
    const dense = randomBytes(5_000);
    const told = await texts.answer(reply(dense), asked('br, gzip'));
    expect([textOf(told), headerOf(told, 'ETag'), headerOf(told, 'Content-Encoding')]).to.deep.equal([
      dense,
      '"1"',
      undefined,
    ]);
    expect(headerOf(told, 'Vary')).to.equal('Accept-Encoding');
  });

  it('are sent as they are where they would push all others out of memory', async () => {
    setCacheMemory(1);
    const texts = new PublishedTexts();
    const limit = Math.ceil((32 / 472) * 1024 * 1024) / 2;
    const told = await texts.answer(reply('x'.repeat(limit + 1)), asked('gzip'));
    expect(headerOf(told, 'Content-Encoding')).to.equal(undefined);
    const below = await texts.answer(reply('x'.repeat(limit - 1)), asked('gzip'));
    expect(headerOf(below, 'Content-Encoding')).to.equal('gzip');
  });

  it('are not what says that something failed', async () => {
    const failed: Reply = { status: 406, json: { error: 'x'.repeat(5_000) } };
    expect(await texts.answer(failed, asked('gzip'))).to.equal(failed);
  });
});
