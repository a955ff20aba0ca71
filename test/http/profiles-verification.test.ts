import { expect } from 'chai';
import { bind, decode, formOf, type Held, QUERY, Shop } from '../support/present.ts';

const REDIRECT = 'https://shop.example/done/{sessionId}';

describe('A verifier under the profile haip', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    const root = await shop.service.rootToken();
    const taken = await shop.call('PATCH', '/tenant/shop', { profile: 'haip' }, root);
    expect(taken.status, taken.text).to.equal(200);
    await shop.configure({ id: 'back', redirectUri: REDIRECT });
  });
  after(() => shop.close());

  it('asks in the ways that HAIP has', async () => {
    const { payload, link } = await shop
      .ask('back')
      .then((asked) => ({ ...asked, link: new URL(asked.uri) }));
    expect([...link.searchParams.keys()].toSorted()).to.deep.equal(['client_id', 'request_uri']);
    expect(payload['client_id']).to.match(/^x509_hash:/);
    expect(payload).to.include({ response_type: 'vp_token', response_mode: 'direct_post.jwt' });
    const { encrypted_response_enc_values_supported: values, jwks } = payload['client_metadata'];
    expect(values).to.have.members(['A128GCM', 'A256GCM']);
    expect(jwks.keys[0]).to.include({ kty: 'EC', crv: 'P-256', alg: 'ECDH-ES', use: 'enc' });
  });

  it('counts a result when the browser came back, although its configuration does not say so', async () => {
    const shown = (await shop.call('GET', '/verifier/config/back')).body;
    expect(shown.requireResponseCode, 'as it was written').to.equal(null);
    const asked = await shop.ask('back');
    const answer = await shop.present(asked, held);
    expect(answer.status, answer.text).to.equal(200);
    expect((await shop.session(asked.session)).status).to.equal('fetched');
    const code = new URL(answer.body.redirect_uri).searchParams.get('response_code');
    const seen = await shop.call('GET', `/session/${asked.session}?response_code=${code}`);
    expect([seen.body.status, seen.body.credentials[0].values.name]).to.deep.equal(['completed', 'Ada']);
  });

  it('returns both links, and waits for the browser of the same device alone', async () => {
    const calls = shop.backend.calls.length;
    await shop.configure({
      id: 'hooked',
      redirectUri: REDIRECT,
      webhook: { url: `${shop.backend.url}/presented` },
    });
    for (const json of [
      { requestId: 'back' },
      { requestId: 'hooked' },
      { requestId: 'check', redirectUri: REDIRECT },
    ]) {
      const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', ...json });
      expect(made.body, made.text).to.have.all.keys('uri', 'session', 'crossDeviceUri', 'pageUrl');
      const url = new URL(made.body.crossDeviceUri).searchParams.get('request_uri') ?? '';
      const { text } = await shop.service.call('GET', url);
      const asked = { session: made.body.session, uri: made.body.crossDeviceUri, url, text, ...decode(text) };
      const answer = await shop.present(asked, held);
      expect(answer.body, answer.text).to.deep.equal({
        redirect_uri: `${shop.service.address}/shop/presented`,
      });
      const events = await shop.service.call(
        'GET',
        `/session/${asked.session}/events?token=${encodeURIComponent(shop.token)}`,
      );
      expect(events.text).to.include('"status":"completed"');
      expect((await shop.session(asked.session)).credentials[0].values.name).to.equal('Ada');
    }
    expect(shop.backend.calls.length - calls, 'the backend of one of them').to.equal(1);
  });

  it('returns no link for another device with requireResponseCode: true', async () => {
    await shop.configure({ id: 'strict', redirectUri: REDIRECT, requireResponseCode: true });
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'strict' });
    expect(made.body, made.text).to.have.all.keys('uri', 'session');
  });

  it('makes no request that the browser would not come back from', async () => {
    const json = { response_type: 'uri', requestId: 'check' };
    const refused = await shop.call('POST', '/verifier/offer', json);
    expect([refused.status, refused.body.errors[0].path], refused.text).to.deep.equal([400, 'redirectUri']);
    expect(refused.text).to.include('HAIP 1.0 section 5.1');
    const given = await shop.call('POST', '/verifier/offer', { ...json, redirectUri: REDIRECT });
    expect(given.status, given.text).to.equal(201);
  });

  it('takes no credential without the proof of its key, and cannot be told to', async () => {
    const asked = await shop.ask('back');
    const bare = held.text.endsWith('~') ? held.text : `${held.text}~`;
    expect(decode(bare.split('~')[0] ?? '').payload).to.have.property('cnf');
    const refused = await shop.post(asked, await formOf(asked, { card: [bare] }));
    expect(refused.status).to.equal(400);
    const [query] = QUERY.credentials;
    const dcql_query = { credentials: [{ ...query, require_cryptographic_holder_binding: false }] };
    const written = await shop.call('POST', '/verifier/config', { id: 'waiving', dcql_query });
    expect([written.status, written.body.errors[0].path]).to.deep.equal([
      400,
      'dcql_query.credentials.0.require_cryptographic_holder_binding',
    ]);
    const good = await shop.ask('back');
    expect((await shop.post(good, await formOf(good, { card: [bind(good, held)] }))).status).to.equal(200);
  });
});
