import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { MAX_CLAIMS_LENGTH } from '../../domain/formats/credential-size.ts';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { Backend } from '../support/backend.ts';
import { deviceResponse } from '../support/device.ts';
import { bindToRequest, responseForm, Shop } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';

const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const display = [{ name: 'Card', locale: 'en' }];
const image = (bytes: number) => `data:image/jpeg;base64,${randomBytes(bytes).toString('base64')}`;
const query = (path: readonly string[]) => ({
  credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:photo'] }, claims: [{ path }] }],
});

describe('credential with a large image', () => {
  let shop: Shop;
  let backend: Backend;

  before(async () => {
    shop = await Shop.open();
    backend = await Backend.start();
    const config = { format: 'dc+sd-jwt', display };
    const photo = { config, vct: 'urn:photo', claimsWebhook: { url: `${backend.url}/claims` } };
    const sdJwts = {
      hidden: { disclosureFrame: { _sd: ['portrait'] } },
      nested: { disclosureFrame: { person: { _sd: ['portrait'] }, _sd: ['person'] } },
      visible: {},
    };
    for (const [id, more] of Object.entries(sdJwts)) await write({ id, ...photo, ...more });
    await write({ id: 'mdl', config: { format: 'mso_mdoc', docType: DOC_TYPE, display }, claimsWebhook: { url: `${backend.url}/claims` } });
    const paths = { hidden: ['portrait'], nested: ['person', 'portrait'], visible: ['portrait'] };
    for (const [id, path] of Object.entries(paths)) {
      for (const responseMode of ['direct_post', 'direct_post.jwt']) {
        await shop.configure({ id: `${id}-${responseMode}`, dcql_query: query(path), responseMode });
      }
    }
    const claims = [{ path: [NAMESPACE, 'portrait'] }];
    const mdoc = { id: 'card', format: 'mso_mdoc', meta: { doctype_value: DOC_TYPE }, claims };
    await shop.configure({ id: 'mdl', dcql_query: { credentials: [mdoc] } });
  });
  after(async () => {
    await shop.close();
    await backend.close();
  });

  async function write(configuration: object): Promise<void> {
    const written = await shop.call('POST', '/issuer/credentials', configuration, shop.acme.token);
    expect(written.status, written.text).to.equal(201);
  }

  /** Issues by a deferred transaction, whose body may have 1 MiB of claims. */
  async function issue(id: string, claims: object) {
    backend.on('/claims', { json: { deferred: true } });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] };
    const { body } = await shop.call('POST', '/issuer/offer', offer, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const holder = newKey();
    const token = await wallet.accessToken(body.uri);
    const request = { credential_configuration_id: id, proofs: { jwt: [keyProof(holder, wallet.issuer, await wallet.nonce())] } };
    const deferred = await wallet.request(token, id, { body: request });
    expect(deferred.status, deferred.text).to.equal(202);
    const { transaction_id } = deferred.body;
    const completed = await shop.call('POST', `/issuer/deferred/${transaction_id}/complete`, { claims }, shop.acme.token);
    if (completed.status !== 200) return completed;
    const issued = await shop.service.call('POST', '/acme/deferred_credential', {
      headers: wallet.authorization(token, { path: 'deferred_credential' }),
      json: { transaction_id },
    });
    return { status: 200, text: issued.body.credentials[0].credential as string, holder, session: '' };
  }

  const shapes: readonly [string, (portrait: string) => object][] = [
    ['hidden', (portrait) => ({ portrait })],
    ['nested', (portrait) => ({ person: { portrait } })],
    ['visible', (portrait) => ({ portrait })],
  ];
  for (const [id, claims] of shapes) {
    for (const mode of ['direct_post', 'direct_post.jwt']) {
      it(`is issued and verified with 780,000 bytes as a ${id} claim in response mode ${mode}`, async () => {
        const portrait = image(780_000);
        const held = await issue(id, claims(portrait));
        if (!('holder' in held)) throw new Error(held.text);
        const asked = await shop.requestPresentation(`${id}-${mode}`);
        const answer = await shop.postResponse(asked, await responseForm(asked, { card: [bindToRequest(asked, held)] }));
        expect(answer.status, answer.text).to.equal(200);
        const session = await shop.session(asked.session);
        expect(session['status']).to.equal('completed');
        expect(JSON.stringify(session['credentials']).includes(portrait)).to.equal(true);
      });
    }
  }

  it('is issued and verified with 780,000 bytes as an mdoc', async () => {
    const held = await issue('mdl', { [NAMESPACE]: { portrait: image(780_000), issuing_country: 'DE' } });
    if (!('holder' in held)) throw new Error(held.text);
    const asked = await shop.requestPresentation('mdl');
    const { client_id: clientId, nonce, response_uri: responseUri, client_metadata } = asked.payload;
    const encryptionKey = client_metadata.jwks.keys[0];
    const transcript = redirectTranscript({ clientId, nonce, responseUri, encryptionKey });
    const response = deviceResponse({ ...held, docType: DOC_TYPE }, transcript);
    const answer = await shop.postResponse(asked, await responseForm(asked, { card: [response] }));
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(asked.session))['status']).to.equal('completed');
  });

  it('is rejected on completion of a deferred transaction when no verifier could read it, with the limit in the message', async () => {
    const text = 'ä, '.repeat(8_000);
    const answer = await issue('visible', { portrait: text });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.match(/at most 4900 in what is always visible, 2000 in one disclosure/);
    const large = await issue('hidden', { portrait: `${'ä'.repeat(300_000)}${'b'.repeat(420_000)}` });
    expect(large.status, large.text).to.equal(200);
  });

  it('is rejected when a claims webhook delivers more disclosures than a verifier accepts', async () => {
    const names = Array.from({ length: 1_001 }, (_, index) => `c${index}`);
    const claims = Object.fromEntries(names.map((name) => [name, 1]));
    const configuration = { config: { format: 'dc+sd-jwt', display }, vct: 'urn:photo', disclosureFrame: { _sd: names } };
    const answer = await shop.call('POST', '/issuer/credentials', { id: 'many', ...configuration, claims }, shop.acme.token);
    expect(answer.status).to.equal(400);
    expect(answer.body.errors[0]).to.deep.equal({ path: 'claims', message: 'The frame creates 1001 disclosures; the maximum is 1000.' });
    await write({ id: 'many', ...configuration, claimsWebhook: { url: `${backend.url}/claims` } });
    backend.on('/claims', { json: { many: claims } });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['many'] };
    const made = await shop.call('POST', '/issuer/offer', offer, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const token = await wallet.accessToken(made.body.uri);
    const refused = await wallet.request(token, 'many', { key: newKey() });
    expect([refused.status, refused.body.error]).to.deep.equal([400, 'credential_request_denied']);
    const { failure } = (await shop.call('GET', `/session/${made.body.session}`, undefined, shop.acme.token)).body;
    expect(failure.message).to.match(/the maximum is 1000/);
    const inline = { ...offer, credentialClaims: { many: { type: 'inline', claims } } };
    const rejected = await shop.call('POST', '/issuer/offer', inline, shop.acme.token);
    expect([rejected.status, rejected.text.includes('the maximum is 1000')]).to.deep.equal([400, true]);
  });

  /** Collects an offer with as many keys as `copies`. */
  async function collect(offer: object, id: string, copies = 1) {
    const made = await shop.call('POST', '/issuer/offer', offer, shop.acme.token);
    expect(made.status, made.text.slice(0, 300)).to.equal(201);
    const wallet = new RawWallet(shop.service, 'acme');
    const token = await wallet.accessToken(made.body.uri);
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: copies }, () => keyProof(newKey(), wallet.issuer, nonce));
    return wallet.request(token, id, { body: { credential_configuration_id: id, proofs: { jwt } } });
  }
  const preAuthorized = (id: string) => ({ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] });

  for (const bytes of [300_000, 780_000]) {
    it(`is issued with ${bytes} bytes from an offer and from a claims webhook`, async () => {
      for (const id of ['hidden', 'mdl']) {
        const claims = { portrait: image(bytes) };
        const inline = { ...preAuthorized(id), credentialClaims: { [id]: { type: 'inline', claims } } };
        expect((await collect(inline, id)).status).to.equal(200);
        backend.on('/claims', { json: { [id]: claims } });
        expect((await collect(preAuthorized(id), id)).status).to.equal(200);
      }
    });
  }

  it('is issued with 300,000 bytes when the configuration has a schema', async () => {
    const schema = { type: 'object', properties: { portrait: { type: 'string', minLength: 1 } } };
    const config = { format: 'dc+sd-jwt', display };
    await write({ id: 'typed', config, vct: 'urn:photo', schema });
    const claims = { portrait: image(300_000) };
    const inline = { ...preAuthorized('typed'), credentialClaims: { typed: { type: 'inline', claims } } };
    expect((await collect(inline, 'typed')).status).to.equal(200);
  });

  it('is rejected in an offer of more than 1 MiB, with the limit in the message', async () => {
    const claims = { portrait: 'x'.repeat(1024 * 1024) };
    const inline = { ...preAuthorized('hidden'), credentialClaims: { hidden: { type: 'inline', claims } } };
    const answer = await shop.call('POST', '/issuer/offer', inline, shop.acme.token);
    expect([answer.status, answer.text.includes('1048576')]).to.deep.equal([413, true]);
  });

  it('is issued in as many copies as 16 MiB of claims allow', async () => {
    const written = await shop.call(
      'POST',
      '/issuer/config',
      { display: [{ name: 'Acme', locale: 'en' }], batchSize: 30 },
      shop.acme.token,
    );
    expect(written.status, written.text).to.be.oneOf([200, 201]);
    backend.on('/claims', { json: { hidden: { portrait: image(700_000) } } });
    const large = await collect(preAuthorized('hidden'), 'hidden', 30);
    expect([large.status, large.body.credentials.length]).to.deep.equal([200, 17]);
    backend.on('/claims', { json: { hidden: { portrait: image(7_000) } } });
    const small = await collect(preAuthorized('hidden'), 'hidden', 30);
    expect([small.status, small.body.credentials.length]).to.deep.equal([200, 30]);
  });

  it('fits into a credential when an offer of 1 MiB contains it', () => expect(MAX_CLAIMS_LENGTH).to.be.greaterThan((1024 * 1024 * 4) / 3));
});
