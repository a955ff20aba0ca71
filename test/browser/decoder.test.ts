import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { recognise } from '../../packages/console/src/pages/decoder/recognise.ts';
import { DIPLOMA, UNIVERSITY } from '../../packages/console/src/pages/playground/samples.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { Visitors } from './support/visitors.ts';

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const PAYLOAD = { vct: 'urn:example:degree', exp: 1_700_000_000, _sd: ['x'] };
const SD_JWT = `${encoded({ alg: 'ES256', typ: 'dc+sd-jwt' })}.${encoded(PAYLOAD)}.c2ln~${encoded(['salt', 'given_name', 'Ada'])}~`;
const STATUS = `${encoded({ alg: 'ES256', typ: 'statuslist+jwt' })}.${encoded({ sub: 'https://x' })}.c2ln`;

describe('decoder', () => {
  const sentence = (text: string) => recognise(text)?.sentence;

  it('detects the type of a text', () => {
    expect(sentence(SD_JWT)).to.match(/^A credential \(SD-JWT\) of type urn:example:degree, 1 claim disclosed\. It ended/);
    expect(sentence(STATUS)).to.match(/status list/);
    expect(sentence('openid-credential-offer://?credential_offer_uri=https%3A%2F%2Fx%2Foffer')).to.match(/offers/);
    expect(sentence('openid4vp://?client_id=x&request_uri=https%3A%2F%2Fx')).to.match(/asks a wallet/);
    expect(sentence(`did:jwk:${encoded({ kty: 'EC' })}`)).to.match(/did:jwk/);
    expect(recognise('did:web:id.example:acme')?.parts[0]?.value).to.equal('https://id.example/acme/did.json');
    expect(sentence('{"kty":"EC"}')).to.equal('A key (JWK, EC).');
  });

  it('shows the disclosures of an SD-JWT', () => {
    expect(recognise(SD_JWT)?.parts.find(({ title }) => title === 'Disclosures')?.value).to.deep.equal([{ given_name: 'Ada' }]);
  });

  it('shows an mdoc in diagnostic notation', () => {
    const mdoc = encodeCbor(new Map([['issuerAuth', embed(encodeCbor(new Map([['docType', 'org.iso.18013.5.1.mDL']])))]]));
    const found = recognise(mdoc.toString('base64url'));
    expect(found?.sentence).to.match(/IssuerSigned/);
    expect(found?.parts[0]?.value).to.match(/"issuerAuth": 24\(<<\{\s+"docType": "org\.iso\.18013\.5\.1\.mDL"\s+\}>>\)/);
  });

  it('shows nothing for empty, truncated or expensive input', () => {
    const deep = Buffer.from(`${'81'.repeat(5_000)}00`, 'hex').toString('base64url');
    const many = Buffer.from('9b7fffffffffffffff', 'hex').toString('base64url');
    for (const text of ['', 'mwuyxyp1ddj-7z', 'hello', SD_JWT.slice(0, 40), 'a.b.c', deep, many, 'x'.repeat(1_000_001)])
      expect(recognise(text), text.slice(0, 60)).to.equal(undefined);
  });
});

const PRIVATE = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const PEM = PRIVATE.export({ format: 'pem', type: 'pkcs8' }).toString();

describe('private key in the decoder', () => {
  it('is detected in every format and never shown', () => {
    const jwk = PRIVATE.export({ format: 'jwk' });
    const forms = [
      PEM,
      PEM.replaceAll('\n', ' '),
      PRIVATE.export({ format: 'pem', type: 'sec1' }).toString(),
      PRIVATE.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
      PRIVATE.export({ format: 'der', type: 'sec1' }).toString('hex'),
      JSON.stringify(jwk),
      JSON.stringify({ keys: [{ kty: 'EC' }, jwk] }),
      JSON.stringify({ kty: 'oct', k: 'c2VjcmV0' }),
      `did:jwk:${encoded(jwk)}`,
      encoded(jwk),
    ];
    for (const form of forms) {
      const found = recognise(form);
      expect(found?.isPrivate, form).to.equal(true);
      expect(found?.parts, form).to.deep.equal([]);
    }
    const publicKey = createPublicKey(PRIVATE);
    for (const form of [
      JSON.stringify(publicKey.export({ format: 'jwk' })),
      publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
      `did:jwk:${encoded(publicKey.export({ format: 'jwk' }))}`,
      SD_JWT,
    ])
      expect(recognise(form)?.isPrivate, form).to.equal(undefined);
  });
});

describe('command palette (Ctrl-K) and decoder page', function () {
  this.timeout(60_000);
  let visitors: Visitors;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  async function paste(page: Page, text: string): Promise<void> {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByLabel('Find a page, or paste anything').fill(text);
    await page.keyboard.press('Enter');
  }
  const call = (method: string, path: string, json?: unknown) =>
    visitors.served.service.call(method, path, { token: visitors.token, ...(json !== undefined && { json }) });

  it('decodes the pasted text and stores it nowhere', async () => {
    const page = await visitors.as(['clients:manage'], '');
    await paste(page, SD_JWT);
    await page.getByText('A credential (SD-JWT) of type urn:example:degree').waitFor();
    await page.getByText('given_name').waitFor();
    await expectAccessible(page, 'an SD-JWT');
    expect(page.url()).to.match(/#decode$/);
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state])');
    expect(kept).to.equal('[{},{},null]');
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('given_name').waitFor({ state: 'detached' });
  });

  it('handles deeply nested and very long input', async () => {
    const page = await visitors.as(['clients:manage'], 'decode');
    const field = page.getByLabel('Paste anything', { exact: true });
    await field.fill('['.repeat(20_000) + ']'.repeat(20_000));
    await page.getByText('deeper than 40 levels').waitFor({ state: 'attached' });
    await field.fill(JSON.stringify(Array.from({ length: 5_000 }, (_, index) => index)));
    await page.getByText('and 4500 more').waitFor();
  });

  it('decodes a certificate', async () => {
    const { body } = await call('GET', '/key-chain/signing');
    const page = await visitors.as(['clients:manage'], 'decode');
    await page.getByLabel('Paste anything', { exact: true }).fill(body.rootCertificate);
    await page.getByText(/^A certificate of .* it ends in \d+ days/).waitFor();
    await page.getByText('keyCertSign').waitFor();
    await expectAccessible(page, 'a certificate');
  });

  it('opens the session of a pasted link', async () => {
    await call('POST', '/issuer/config', UNIVERSITY);
    const made = await call('POST', '/issuer/credentials', DIPLOMA);
    expect(made.status, made.text).to.equal(201);
    const offer = await call('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [DIPLOMA.id],
    });
    expect(offer.status, offer.text).to.be.lessThan(300);
    const page = await visitors.as(['issuance:offer'], '');
    await paste(page, offer.body.uri);
    await page.waitForURL(`**/console#sessions/${offer.body.session}`);
    // Nothing of it is in what is asked of the service for somebody who sees no sessions.
    const other = await visitors.as(['clients:manage'], '');
    await paste(other, offer.body.uri);
    await other.getByText('A link that offers a credential').waitFor();
  });

  it('sends no possible secret, name or credential to the service', async () => {
    const page = await visitors.as(['issuance:offer'], 'decode');
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.resourceType() === 'fetch') asked.push(request.url());
    });
    const field = page.getByLabel('Paste anything', { exact: true });
    for (const text of [
      PEM,
      SD_JWT,
      `Bearer ${STATUS}`,
      'Adelheid Mustermann',
      'a-password-of-22-chars',
      generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }).d as string,
      'a1b2c3d4'.repeat(8),
      'https://wallet.example/back?code=0123456789abcdef',
    ]) {
      await field.fill('');
      await paste(page, text);
      await page.locator('dialog.palette').waitFor({ state: 'hidden' });
      expect(await field.inputValue(), text).to.include(text.slice(0, 20));
    }
    expect(asked).to.deep.equal([]);
    await field.fill(PEM);
    await page.getByRole('alert').getByText('Stop: that is a private key.').waitFor();
    await expectAccessible(page, 'a private key');
  });

  it('searches sessions by free text on request, and sends no authorization code', async () => {
    const { id } = DIPLOMA;
    const made = await call('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [id],
      reference: 'order of Ada',
    });
    expect(made.status, made.text).to.equal(201);
    const page = await visitors.as(['issuance:offer'], 'decode');
    const look = async (text: string) => {
      await page.keyboard.press('Control+k');
      await page.getByLabel('Find a page, or paste anything').fill(text);
      await page.getByRole('button', { name: `Ask the service for a session called “${text}”` }).click();
    };
    await look('order of nobody');
    await page.getByText('No session that you may see is called so.').waitFor();
    await page.keyboard.press('Escape');
    const code = 'aB3-'.repeat(11);
    await look(code);
    await page.getByText('No session that you may see is called so.').waitFor();
    await expectAccessible(page, 'a session that is not there');
    await page.keyboard.press('Escape');
    await look('order of Ada');
    await page.waitForURL(`**/console#sessions/${made.body.session}`);
    await page.getByRole('button', { name: /^Calls/ }).click();
    const calls = page.getByRole('complementary', { name: 'Calls of this page' });
    await calls.getByText('q=order+of+Ada').first().waitFor();
    expect(await calls.innerText()).not.to.include(code);
    await page.keyboard.press('Control+k');
    await page.getByLabel('Find a page, or paste anything').fill(SD_JWT);
    expect(await page.getByRole('button', { name: /^Ask the service/ }).count()).to.equal(0);
  });

  it('searches with a button in the session list, which sends no token either', async () => {
    const page = await visitors.as(['issuance:offer'], 'sessions');
    const field = page.getByLabel('Id, reference, link, code or nonce');
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await field.fill(SD_JWT);
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByText('so the service was not asked for it').waitFor();
    expect(asked.filter((url) => url.includes('eyJ'))).to.deep.equal([]);
    expect(page.url()).not.to.include('eyJ');
    await expectAccessible(page, 'a token in the place of a name');
    await field.fill('order of Ada');
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await page.getByRole('table', { name: 'Sessions' }).getByText('order of Ada').waitFor();
    await page.getByText('so the service was not asked for it').waitFor({ state: 'detached' });
    expect(page.url()).to.include('q=order');
  });

  it('keeps text that is typed in the session list before the page is ready', async () => {
    const page = await visitors.as(['issuance:offer'], 'health');
    await page.evaluate(`new MutationObserver((_, observer) => {
      const field = document.querySelector('main input[type=search]');
      if (field === null) return;
      observer.disconnect();
      field.value = 'order of Ada';
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }).observe(document.body, { subtree: true, childList: true })`);
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByRole('table', { name: 'Sessions' }).getByText('order of Ada').waitFor();
    expect(await page.getByLabel('Id, reference, link, code or nonce').inputValue()).to.equal('order of Ada');
  });

  it('opens a page by its link, and a session by the prefix of its id', async () => {
    const { body } = await call('GET', '/session?limit=1');
    const session = body[0].id as string;
    const page = await visitors.as(['issuance:offer'], 'decode');
    await paste(page, `${session.slice(0, 8)}…`);
    await page.waitForURL(`**/console#sessions/${session}`);
    await paste(page, `${visitors.served.address}/console#health`);
    await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
    await paste(page, `${visitors.served.address}/console#settings`);
    await page.getByText('This client has no such page.').waitFor();
    await page.keyboard.press('Escape');
    await paste(page, '________…');
    await page.getByText('has an id that begins with ________').waitFor();
  });

  it('opens pages by name with the keyboard', async () => {
    const page = await visitors.as(['clients:manage'], 'decode');
    await page.keyboard.press('Control+k');
    await expectAccessible(page, 'the palette');
    await page.keyboard.press('Escape');
    await paste(page, 'audit');
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  });

  it('fits a phone in dark mode', async () => {
    const page = await visitors.as(['clients:manage'], 'decode', { width: 390, dark: true });
    await page.getByLabel('Paste anything', { exact: true }).fill(SD_JWT);
    await page.getByText('given_name').waitFor();
    await expectFits(page, 'decoder at 390 px');
    await expectAccessible(page, 'decoder in the dark');
  });
});
