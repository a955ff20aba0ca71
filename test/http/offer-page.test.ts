import { expect } from 'chai';
import { later } from '../support/chained-world.ts';
import { created, offerBody } from '../support/populated.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

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

describe('The page of an offer', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createTenant(service, 'other');
    wallet = new RawWallet(service, 'acme');
    await created(service, token, '/key-chain', { id: 'keys', usages: ['signing', 'access'] });
    await created(service, token, '/issuer/config', {
      display: [{ name: 'Ministry', locale: 'en' }],
      pages: { backgroundColor: '#440000' },
    });
    await created(service, token, '/issuer/credentials', CARD);
    await created(service, token, '/verifier/config', question('asks'));
    await created(
      service,
      token,
      '/verifier/config',
      question('unsigned', { clientIdPrefix: 'redirect_uri' }),
    );
    await created(
      service,
      token,
      '/verifier/config',
      question('named', { clientName: 'The Shop', invocationUri: 'haip-vp://', requestUriMethod: 'post' }),
    );
  });
  after(() => service.close());

  const offer = (more: object = {}) =>
    created(service, token, '/issuer/offer', { ...offerBody('card'), ...more });
  const request = (requestId: string, more: object = {}) =>
    created(service, token, '/verifier/offer', { response_type: 'uri', requestId, ...more });
  const open = (pageUrl: string, headers: Record<string, string> = {}) => {
    const { pathname, search } = new URL(pageUrl);
    return service.call('GET', pathname + search, { headers });
  };
  const linkIn = (text: string) => {
    const [, link = ''] = /<a class="button primary" href="([^"]+)"/.exec(text) ?? [];
    return link.replaceAll('&#38;', '&').replaceAll('&#39;', "'");
  };

  it('has the code, the link, what is offered and until when, in the look of the tenant', async () => {
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

  it('is nobody’s to keep, to find or to tell of', async () => {
    const { headers, text } = await open((await offer()).pageUrl);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('referrer-policy')).to.equal('no-referrer');
    expect(headers.get('x-robots-tag')).to.equal('noindex');
    expect(text).to.include('<meta name="robots" content="noindex">');
    expect(headers.get('content-security-policy')).to.include("default-src 'none'");
  });

  it('cannot be found by who knows the link or the session, nor at another tenant', async () => {
    const { uri, session, pageUrl } = await offer();
    const publicId = (new URL(uri).searchParams.get('credential_offer_uri') ?? '').split('/').at(-1) ?? '';
    const [, pageId = ''] = /\/acme\/offer\/(.+)$/.exec(pageUrl) ?? [];
    expect(pageId).to.include(publicId).and.not.include(session);
    const last = pageId.at(-1) === 'A' ? 'g' : 'A';
    const wrong = [
      publicId,
      session,
      `${publicId}.`,
      `${publicId}.${'A'.repeat(22)}`,
      pageId.slice(0, -1) + last,
    ];
    for (const id of wrong) {
      const answer = await service.call('GET', `/acme/offer/${id}`);
      expect(answer.status, id).to.equal(404);
      expect(answer.text).to.include('There is nothing at this address');
    }
    expect((await service.call('GET', `/other/offer/${pageId}`)).status).to.equal(404);
    expect((await service.call('GET', `/nobody/offer/${pageId}`)).status).to.equal(404);
  });

  it('is no step: the session stays as it was, and is found by the address of its page', async () => {
    const { session, pageUrl } = await offer();
    await open(pageUrl);
    const seen = await service.call('GET', `/session/${session}`, { token });
    expect(seen.body.status).to.equal('active');
    const found = await service.call('GET', `/session?q=${encodeURIComponent(pageUrl)}`, { token });
    expect(found.body.map(({ id }: { id: string }) => id)).to.deep.equal([session]);
  });

  it('says that a code will be asked for, and not which', async () => {
    const { pageUrl } = await offer({ tx_code: '493536' });
    const { text } = await open(pageUrl);
    expect(text).to.include('Your wallet will ask you for a code. <bdi>Ministry</bdi> gives it to you');
    expect(text).to.not.include('493536');
    expect((await open((await offer()).pageUrl)).text).to.not.include('ask you for a code');
  });

  it('says when it was used, and nothing of by whom', async () => {
    const { uri, pageUrl } = await offer();
    const accessToken = await wallet.accessToken(uri);
    expect((await wallet.request(accessToken, 'card', { key: newKey() })).status).to.equal(200);
    const { status, text } = await open(pageUrl);
    expect(status).to.equal(410);
    expect(text).to.include('This link has been used');
    expect(text)
      .to.not.include('<svg')
      .and.not.include('openid-credential-offer')
      .and.not.include('Lovelace');
  });

  it('says when it was withdrawn, and when its time was over', async () => {
    const [withdrawn, late] = [await offer(), await offer({ expiresIn: 60 })];
    await service.call('POST', `/session/${withdrawn.session}/cancel`, { token });
    const gone = await open(withdrawn.pageUrl, { 'Accept-Language': 'nl' });
    expect([gone.status, gone.text.includes('Deze link is ingetrokken')]).to.deep.equal([410, true]);
    const expired = await later(61, () => open(late.pageUrl));
    expect([expired.status, expired.text.includes('This link has expired')]).to.deep.equal([410, true]);
    await service.call('DELETE', `/session/${withdrawn.session}`, { token });
    expect((await open(withdrawn.pageUrl)).status).to.equal(404);
  });

  it('is there for a request, with what is asked for and why', async () => {
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

  it('has the link that the answer had, also of an unsigned request and of another wallet', async () => {
    for (const id of ['unsigned', 'named']) {
      const { uri, pageUrl } = await request(id);
      const { text } = await open(pageUrl);
      expect(linkIn(text), id).to.equal(uri);
      expect(text.includes('<svg'), id).to.equal(uri.length <= 1_200);
    }
    expect((await open((await request('named')).pageUrl)).text).to.include('The Shop asks your wallet');
  });

  it('has a button without the QR code of the other device where a redirect follows', async () => {
    const redirected = await request('asks', { redirectUri: 'https://shop.example/done' });
    const { text } = await open(redirected.pageUrl);
    expect(linkIn(text)).to.equal(redirected.uri);
    const { renderSVG } = await import('uqr');
    expect(text).to.include(renderSVG(redirected.crossDeviceUri, { border: 2 }));
  });

  it('is not there with the Digital Credentials API, nor where the result waits for the response code', async () => {
    const written = await service.call('PATCH', '/verifier/config/asks', {
      token,
      json: { requireResponseCode: true },
    });
    expect(written.status, written.text).to.equal(200);
    const waiting = await request('asks', { redirectUri: 'https://shop.example/done' });
    expect(waiting).to.not.have.any.keys('pageUrl', 'crossDeviceUri');
    await service.call('PATCH', '/verifier/config/asks', { token, json: { requireResponseCode: null } });
    expect(await offer({ response_type: 'dc-api' })).to.not.have.property('pageUrl');
  });
});
