import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import { withClockAdvanced } from '../support/chained-world.ts';
import { addClient, createResource, offerBody, type PopulatedTenant, populate } from '../support/populated.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('offer that is requested again with its Idempotency-Key', () => {
  let service: TestService;
  let world: PopulatedTenant;

  before(async () => {
    service = await startTestService({ JWT_EXPIRES_IN: '72h' });
    world = await populate(service, 'acme');
  });
  after(() => service.close());
  afterEach(() => sinon.restore());

  const ask = (key: string, json: object, token = world.token, path = '/issuer/offer') =>
    service.call('POST', path, { token, json, headers: { 'Idempotency-Key': key } });
  const body = () => offerBody(world.ids.credential);

  it('is the same offer, also with properties in another order and a quoted key', async () => {
    const first = await ask('one', body());
    expect(first.status, first.text).to.equal(201);
    const turned = Object.fromEntries(Object.entries(body()).reverse());
    for (const again of [await ask('one', body()), await ask('"one"', turned)])
      expect([again.status, again.text]).to.deep.equal([201, first.text]);
    expect((await ask('other', body())).body.session).not.to.equal(first.body.session);
    expect((await service.call('POST', '/issuer/offer', { token: world.token, json: body() })).body.session).not.to.equal(
      first.body.session,
    );
  });

  it('is rejected with another body, and the first answer stays', async () => {
    const first = await ask('two', body());
    const other = await ask('two', { ...body(), expiresIn: 100 });
    expect([other.status, other.body.code], other.text).to.deep.equal([409, 'conflict']);
    expect((await ask('two', body())).text).to.equal(first.text);
  });

  it('is another offer for another client, another tenant and at the other address', async () => {
    const first = await ask('three', body());
    const token = await addClient(world, 'second', { roles: ['issuance:offer'] });
    const second = await ask('three', body(), token);
    expect([first.status, second.status]).to.deep.equal([201, 201]);
    expect(second.body.session).not.to.equal(first.body.session);
    const request = { response_type: 'uri', requestId: world.ids.presentation };
    const asked = await ask('three', request, world.token, '/verifier/offer');
    expect(asked.status, asked.text).to.equal(201);
    expect((await ask('three', request, world.token, '/verifier/offer')).text).to.equal(asked.text);
    const elsewhere = await populate(service, 'elsewhere');
    const foreign = await ask('three', offerBody(elsewhere.ids.credential), elsewhere.token);
    expect(foreign.status, foreign.text).to.equal(201);
  });

  it('is the same regardless of the state of its session, for 24 hours', async () => {
    const first = await ask('four', body());
    await service.call('DELETE', `/session/${first.body.session}`, { token: world.token });
    expect((await ask('four', body())).text).to.equal(first.text);
    const clock = sinon.useFakeTimers({ now: Date.now(), toFake: ['Date'] });
    clock.tick(86_399_000);
    expect((await ask('four', body())).text).to.equal(first.text);
    clock.tick(2_000);
    expect((await ask('four', body())).body.session).not.to.equal(first.body.session);
  });

  it('is not returned to a client whose rights have ended', async () => {
    const other = { ...offerBody(world.ids.credential), credentialConfigurationIds: ['other'] };
    const call = (method: string, path: string, json?: object) => service.call(method, path, { token: world.token, ...(json && { json }) });
    const { body: made } = await call('GET', `/issuer/credentials/${world.ids.credential}`);
    const { tenant: _tenant, createdAt: _created, updatedAt: _updated, ...configuration } = made;
    const { status, text } = await call('POST', '/issuer/credentials', { ...configuration, id: 'other' });
    expect(status, text).to.equal(201);
    const ends: Readonly<Record<string, () => Promise<{ readonly status: number }>>> = {
      role: () => call('PATCH', '/client/role', { roles: ['presentation:request'] }),
      restricted: () => call('PATCH', '/client/restricted', { roles: ['issuance:offer'], allowedIssuanceConfigs: [world.ids.credential] }),
      removed: () => call('DELETE', '/client/removed'),
    };
    for (const [id, end] of Object.entries(ends)) {
      const token = await addClient(world, id, { roles: ['issuance:offer'] });
      expect((await ask('rights', other, token)).status, id).to.equal(201);
      expect((await end()).status, id).to.equal(200);
      expect((await ask('rights', other, token)).status, id).to.be.oneOf([401, 403]);
    }
    const secret = 'another-secret-of-the-one-that-was-removed';
    await call('POST', '/client', { clientId: 'removed', secret, roles: ['issuance:offer'] });
    const anew = await service.token('removed', secret);
    const asked = await ask('rights', { ...other, expiresIn: 100 }, anew);
    expect(asked.status, asked.text).to.equal(201);
  });

  it('is not stored for a rejected request', async () => {
    const refused = await ask('five', { ...body(), credentialConfigurationIds: ['nothing'] });
    expect(refused.status).to.equal(400);
    expect((await ask('five', body())).status).to.equal(201);
  });

  it('is deleted when its lifetime ends', async () => {
    const { maintenance } = service.service.container.get(Store);
    await ask('six', body());
    while ((await maintenance.forgetExpired(new Date(Date.now() + 86_500_000), 1000)) > 0);
    expect((await ask('six', { ...body(), expiresIn: 50 })).status).to.equal(201);
  });

  for (const [what, key] of [
    ['an empty key', ''],
    ['an endless one', 'x'.repeat(256)],
    ['one with an open quote', '"open'],
    ['one with spaces outside of quotes', 'a b'],
  ] as const) {
    it(`rejects ${what}`, async () => {
      const { status, text } = await ask(key, body());
      expect(status, text).to.equal(400);
    });
  }
});

const DISPLAY = [{ name: 'Card', locale: 'en' }];
const LICENCE = {
  id: 'mdl',
  config: {
    format: 'mso_mdoc',
    docType: 'org.iso.18013.5.1.mDL',
    display: DISPLAY,
    claimsByNamespace: { 'org.iso.18013.5.1': {}, 'org.iso.18013.5.1.DE': {} },
  },
};
const NAMED = { type: 'inline', claims: { name: 'Ada' } };
const WEBHOOK = { url: 'https://backend.example/claims' };

describe('offer of a credential that cannot be issued', () => {
  const CARD = {
    id: 'card',
    config: { format: 'dc+sd-jwt', display: DISPLAY, claims: [{ path: ['name'], mandatory: true }] },
    vct: 'urn:card:1',
  };

  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    const key = { id: 'licences', usages: ['signing'], country: 'DE', organization: 'A', subjectName: 'A' };
    await call('POST', '/key-chain', key);
  });
  after(() => service.close());

  const call = (method: string, path: string, json: unknown) => service.call(method, path, { token: tenant.token, json });
  const write = async (...configurations: object[]) => {
    for (const configuration of configurations) {
      const answer = await call('POST', '/issuer/credentials', configuration);
      expect(answer.status, answer.text).to.equal(201);
    }
  };
  const offer = (ids: string[], more: object = {}) =>
    call('POST', '/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ids, ...more });
  const refused = async (ids: string[], more?: object) => {
    const answer = await offer(ids, more);
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors).to.have.length(1);
    return answer.body.errors[0] as { path: string; message: string };
  };

  it('is rejected with the missing claim, its configuration and its possible sources', async () => {
    await write(CARD, { ...CARD, id: 'full', claims: { name: 'Ada' } });
    for (const flow of ['pre_authorized_code', 'authorization_code']) {
      expect(await refused(['full', 'card'], { flow })).to.deep.equal({
        path: 'credentialConfigurationIds.1',
        message:
          'card cannot be issued: claims.name is mandatory but missing; claims come from credentialClaims.card of ' +
          'the offer, or from claimsWebhook, claims of its configuration',
      });
    }
  });

  it('is rejected for static claims without promised claims or against the schema', async () => {
    await write({ ...CARD, claims: { surname: 'Lovelace' } });
    expect((await refused(['card'])).message).to.include('claims.name is mandatory');
    const schema = { type: 'object', required: ['name'] };
    await write({ ...CARD, config: { format: 'dc+sd-jwt', display: DISPLAY }, schema });
    expect((await refused(['card'])).message).to.match(/^card cannot be issued: .*name.*; claims come from/);
  });

  it('is rejected for an mdoc without any element', async () => {
    await write({ ...LICENCE, keyChainId: 'licences' });
    const { path, message } = await refused(['mdl']);
    expect(path).to.equal('credentialConfigurationIds.0');
    expect(message).to.include('mdl cannot be issued: an mdoc requires at least one element');
    expect(message).to.include('config.claimsByNamespace of its configuration');
  });

  it('is accepted while claims can still come from another source', async () => {
    await write(CARD, { ...CARD, id: 'hooked', claimsWebhook: WEBHOOK });
    const sources: [string, object][] = [
      ['hooked', {}],
      ['card', { credentialClaims: { card: NAMED } }],
      ['card', { credentialClaims: { card: { type: 'webhook', webhook: WEBHOOK } } }],
    ];
    for (const [id, more] of sources) {
      const answer = await offer([id], more);
      expect(answer.status, answer.text).to.equal(201);
    }
  });

  it('is accepted as soon as the configuration has claims', async () => {
    await write(CARD);
    await refused(['card']);
    await call('PATCH', '/issuer/credentials/card', { claims: { name: 'Ada' } });
    expect((await offer(['card'])).status).to.equal(201);
  });

  it('is accepted for a credential without promised claims', async () => {
    await write({ ...CARD, id: 'empty', config: { format: 'dc+sd-jwt', display: DISPLAY } });
    expect((await offer(['empty'])).status).to.equal(201);
  });
});

const question = (id: string, more: object = {}) => ({
  id,
  dcql_query: {
    credentials: [
      {
        id: 'card',
        format: 'dc+sd-jwt',
        meta: { vct_values: ['urn:card:1'] },
        claims: [{ path: ['family_name'] }, { path: ['birth_date'] }],
      },
      { id: 'other', format: 'dc+sd-jwt', meta: { vct_values: ['urn:other:1'] } },
    ],
  },
  purpose: [{ lang: 'en', content: 'To let you in' }],
  ...more,
});

describe('offer page', () => {
  const CARD = {
    id: 'card',
    vct: 'urn:card:1',
    config: {
      format: 'dc+sd-jwt',
      display: [
        { name: 'Card', locale: 'en', background_color: '#004400' },
        { name: 'Karte', locale: 'de' },
      ],
      claims: [{ path: ['family_name'], display: [{ name: 'Family name', locale: 'en' }] }],
    },
    claims: { family_name: 'Lovelace-Unmistakable' },
  };

  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createTenant(service, 'other');
    wallet = new RawWallet(service, 'acme');
    await createResource(service, token, '/key-chain', { id: 'keys', usages: ['signing', 'access'] });
    await createResource(service, token, '/issuer/config', {
      display: [{ name: 'Ministry', locale: 'en' }],
      pages: { backgroundColor: '#440000' },
    });
    await createResource(service, token, '/issuer/credentials', CARD);
    await createResource(service, token, '/verifier/config', question('asks'));
    await createResource(service, token, '/verifier/config', question('unsigned', { clientIdPrefix: 'redirect_uri' }));
    await createResource(
      service,
      token,
      '/verifier/config',
      question('named', { clientName: 'The Shop', invocationUri: 'haip-vp://', requestUriMethod: 'post' }),
    );
  });
  after(() => service.close());

  const offer = (more: object = {}) => createResource(service, token, '/issuer/offer', { ...offerBody('card'), ...more });
  const request = (requestId: string, more: object = {}) =>
    createResource(service, token, '/verifier/offer', { response_type: 'uri', requestId, ...more });
  const open = (pageUrl: string, headers: Record<string, string> = {}) => {
    const { pathname, search } = new URL(pageUrl);
    return service.call('GET', pathname + search, { headers });
  };
  const linkIn = (text: string) => {
    const [, link = ''] = /<a class="button primary" href="([^"]+)"/.exec(text) ?? [];
    return link.replaceAll('&#38;', '&').replaceAll('&#39;', "'");
  };

  it('contains the code, the link, the credentials and the expiry in the design of the tenant', async () => {
    const { uri, pageUrl } = await offer();
    const page = await open(pageUrl, { 'Accept-Language': 'de' });
    expect([page.status, page.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8']);
    expect(linkIn(page.text)).to.equal(uri);
    expect(page.text)
      .to.include('<html lang="de">')
      .and.include('Ministry: für Ihre Wallet')
      .and.include('role="img" aria-label="QR-Code für Ihre Wallet"><svg')
      .and.include('<span>Karte</span>')
      .and.include('<span lang="en">Family name</span>')
      .and.match(/Gültig bis <time datetime="[^"]+Z">[^<]+UTC<\/time>/)
      .and.include('--back: #440000');
    expect(page.text)
      .to.not.include('Unmistakable')
      .and.not.match(/<script| style=/);
    const other = await open(`${pageUrl}?lang=fi`, { 'Accept-Language': 'de' });
    expect(other.text).to.include('<html lang="fi">');
  });

  it('is uncacheable, not indexed and sends no referrer', async () => {
    const { headers, text } = await open((await offer()).pageUrl);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('referrer-policy')).to.equal('no-referrer');
    expect(headers.get('x-robots-tag')).to.equal('noindex');
    expect(text).to.include('<meta name="robots" content="noindex">');
    expect(headers.get('content-security-policy')).to.include("default-src 'none'");
  });

  it('cannot be found with the link or the session id, nor at another tenant', async () => {
    const { uri, session, pageUrl } = await offer();
    const publicId = (new URL(uri).searchParams.get('credential_offer_uri') ?? '').split('/').at(-1) ?? '';
    const [, pageId = ''] = /\/acme\/offer\/(.+)$/.exec(pageUrl) ?? [];
    expect(pageId).to.include(publicId).and.not.include(session);
    const last = pageId.at(-1) === 'A' ? 'g' : 'A';
    const wrong = [publicId, session, `${publicId}.`, `${publicId}.${'A'.repeat(22)}`, pageId.slice(0, -1) + last];
    for (const id of wrong) {
      const answer = await service.call('GET', `/acme/offer/${id}`);
      expect(answer.status, id).to.equal(404);
      expect(answer.text).to.include('There is nothing at this address');
    }
    expect((await service.call('GET', `/other/offer/${pageId}`)).status).to.equal(404);
    expect((await service.call('GET', `/nobody/offer/${pageId}`)).status).to.equal(404);
  });

  it('does not change the session, which is found by the address of the page', async () => {
    const { session, pageUrl } = await offer();
    await open(pageUrl);
    const seen = await service.call('GET', `/session/${session}`, { token });
    expect(seen.body.status).to.equal('active');
    const found = await service.call('GET', `/session?q=${encodeURIComponent(pageUrl)}`, { token });
    expect(found.body.map(({ id }: { id: string }) => id)).to.deep.equal([session]);
  });

  it('states that a transaction code is required, without the code', async () => {
    const { pageUrl } = await offer({ tx_code: '493536' });
    const { text } = await open(pageUrl);
    expect(text).to.include('Your wallet will ask you for a code. <bdi>Ministry</bdi> gives it to you');
    expect(text).to.not.include('493536');
    expect((await open((await offer()).pageUrl)).text).to.not.include('ask you for a code');
  });

  it('states that the offer was used, without data of the wallet', async () => {
    const { uri, pageUrl } = await offer();
    const accessToken = await wallet.accessToken(uri);
    expect((await wallet.request(accessToken, 'card', { key: newKey() })).status).to.equal(200);
    const { status, text } = await open(pageUrl);
    expect(status).to.equal(410);
    expect(text).to.include('This link has been used');
    expect(text).to.not.include('<svg').and.not.include('openid-credential-offer').and.not.include('Lovelace');
  });

  it('states that the offer was withdrawn or expired', async () => {
    const [withdrawn, late] = [await offer(), await offer({ expiresIn: 60 })];
    await service.call('POST', `/session/${withdrawn.session}/cancel`, { token });
    const gone = await open(withdrawn.pageUrl, { 'Accept-Language': 'nl' });
    expect([gone.status, gone.text.includes('Deze link is ingetrokken')]).to.deep.equal([410, true]);
    const expired = await withClockAdvanced(61, () => open(late.pageUrl));
    expect([expired.status, expired.text.includes('This link has expired')]).to.deep.equal([410, true]);
    await service.call('DELETE', `/session/${withdrawn.session}`, { token });
    expect((await open(withdrawn.pageUrl)).status).to.equal(404);
  });

  it('exists for a presentation request, with the requested data and the purpose', async () => {
    const { uri, pageUrl, session } = await request('asks');
    const { text, status } = await open(pageUrl);
    expect(status).to.equal(200);
    expect(linkIn(text)).to.equal(uri);
    expect(text)
      .to.include('Ministry asks your wallet')
      .and.include('<span>Card</span>')
      .and.include('<li>Family name</li>')
      .and.include('<li>birth date</li>')
      .and.include('<span>urn:other:1</span>')
      .and.include('All information in it')
      .and.include('<p>To let you in</p>');
    await service.call('POST', `/session/${session}/cancel`, { token });
    expect((await open(pageUrl)).text).to.include('This link was withdrawn');
  });

  it('contains the same link as the answer, also for an unsigned request and another wallet', async () => {
    for (const id of ['unsigned', 'named']) {
      const { uri, pageUrl } = await request(id);
      const { text } = await open(pageUrl);
      expect(linkIn(text), id).to.equal(uri);
      expect(text.includes('<svg'), id).to.equal(uri.length <= 1_200);
    }
    expect((await open((await request('named')).pageUrl)).text).to.include('The Shop asks your wallet');
  });

  it('has a button without a QR code for another device if a redirect follows', async () => {
    const redirected = await request('asks', { redirectUri: 'https://shop.example/done' });
    const { text } = await open(redirected.pageUrl);
    expect(linkIn(text)).to.equal(redirected.uri);
    const { renderSVG } = await import('uqr');
    expect(text).to.include(renderSVG(redirected.crossDeviceUri, { border: 2 }));
  });

  it('does not exist with the Digital Credentials API or if the result waits for the response code', async () => {
    const written = await service.call('PATCH', '/verifier/config/asks', { token, json: { requireResponseCode: true } });
    expect(written.status, written.text).to.equal(200);
    const waiting = await request('asks', { redirectUri: 'https://shop.example/done' });
    expect(waiting).to.not.have.any.keys('pageUrl', 'crossDeviceUri');
    await service.call('PATCH', '/verifier/config/asks', { token, json: { requireResponseCode: null } });
    expect(await offer({ response_type: 'dc-api' })).to.not.have.property('pageUrl');
  });
});
