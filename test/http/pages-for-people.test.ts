import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import sinon from 'sinon';
import { PAGE_TYPE } from '../../adapters/http/pages/page.ts';
import type { Route } from '../../adapters/http/route.ts';
import { Store, StoreUnavailableError } from '../../application/ports/store.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { send } from '../support/raw-request.ts';
import { CLIENT_ID, RawWallet } from '../support/raw-wallet.ts';
import { nameOf } from '../support/requests.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const BROWSER_ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
/** What browsers send when a person follows a link. */
const BROWSER = { accept: BROWSER_ACCEPT, 'sec-fetch-mode': 'navigate' };
const JDK = JSON.parse(readFileSync(new URL('../fixtures/foreign-requests/jdk-accept.json', import.meta.url), 'utf8')) as {
  readonly accept: readonly string[];
};
/** What programs send, some of them without having been told to. */
const PROGRAMS: readonly Record<string, string>[] = [
  {},
  { accept: '*/*' },
  { accept: 'application/json' },
  { accept: 'application/json, text/plain, */*' },
  { accept: 'application/json, text/html;q=0.9' },
  ...JDK.accept.map((accept) => ({ accept })),
  { accept: BROWSER_ACCEPT },
  { accept: BROWSER_ACCEPT, 'sec-fetch-mode': 'cors' },
  { accept: BROWSER_ACCEPT, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
];
const FOR_PEOPLE = ['page', 'document', 'vp', 'vci'];
/** Pages in their own right, and what they are made of. */
const ITS_OWN = /^\/docs|^\/console|^\/openapi\.json$/;

describe('browser requests', () => {
  let service: TestService;
  let token: string;
  let routes: readonly Route[];

  before(async () => {
    service = await startTestService({ TRUST_PROXY: '1', RATE_LIMIT_NONCE: '200' });
    ({ token } = await createTenant(service, 'acme'));
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    const card = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };
    await createResource(service, token, '/issuer/credentials', card);
    routes = collectRoutes(service.service.container).filter(
      ({ method, surface, path }) => method === 'get' && FOR_PEOPLE.includes(surface) && !ITS_OWN.test(path),
    );
  });
  after(() => service.close());

  const ask = (path: string, headers: Record<string, string>, method = 'GET') => send(service.address, { method, path, headers });
  /** With a tenant that there is not, and names that nothing has. */
  const wrong = ({ path }: Route) => path.replaceAll(/:([A-Za-z]+)/g, (_, name: string) => (name === 'tenant' ? 'nobody' : 'nothing'));

  const expectPage = ({ status, headers, text }: Awaited<ReturnType<typeof ask>>, language: string, what: string) => {
    expect([status, headers['content-type']], what).to.deep.equal([status, PAGE_TYPE]);
    expect(text, what)
      .to.include(`<html lang="${language}">`)
      .and.include('<h1>')
      .and.include('role="alert"')
      .and.include(String(headers['x-request-id']));
    expect(text, what).to.not.match(/<script| style=|nobody|nothing"/);
    expect(headers['content-security-policy'], what).to.include("default-src 'none'; frame-ancestors 'none'");
    expect(headers['vary'], what).to.equal('Accept, Accept-Language, Sec-Fetch-Mode, Sec-Fetch-Dest');
    expect(headers['cache-control'], what).to.equal('no-store');
    expect(headers['referrer-policy'], what).to.equal('no-referrer');
  };

  it('get an error page at every address that a user may open', async () => {
    expect(routes.length).to.be.greaterThan(20);
    for (const route of routes) {
      const headers = { accept: 'text/html', 'accept-language': 'et' };
      const answer = await ask(wrong(route), headers);
      expect(answer.status, nameOf(route)).to.be.within(400, 499);
      expectPage(answer, 'et', nameOf(route));
    }
  });

  it('are distinguished from programs, which get the same answer as before', async () => {
    for (const route of routes.filter(({ surface }) => surface !== 'page')) {
      const seen = new Set<string>();
      for (const program of PROGRAMS) {
        const { status, headers, text } = await ask(wrong(route), { ...program, 'x-forwarded-for': '127.0.0.1' });
        expect(headers['content-type'], `${nameOf(route)} for ${JSON.stringify(program)}`).to.match(/json$/);
        expect(headers['content-language']).to.equal(undefined);
        seen.add(`${status} ${text.replaceAll(/"requestId":"[^"]+"/g, '')}`);
      }
      // A status list has forms of its own, none of which is JSON.
      const forms = route.path.includes('/status-list/') ? 2 : 1;
      expect([...seen], nameOf(route)).to.have.length(forms);
    }
  });

  it('get a page for an unknown address of any form', async () => {
    for (const path of ['/nowhere', '/a/b/c/d/e', '/acme/nowhere', '/%', '/%00', '/session/../x', '//']) {
      const answer = await ask(path, { ...BROWSER, 'accept-language': 'fr-BE' });
      expect(answer.status, path).to.be.within(400, 404);
      expectPage(answer, 'fr', path);
      const { headers } = await ask(path, { accept: '*/*' });
      expect(headers['content-type'], path).to.equal('application/problem+json');
    }
  });

  it('get errors of the administrative interface as JSON, since those are for operators', async () => {
    const { status, headers } = await ask('/session', BROWSER);
    expect([status, headers['content-type']]).to.deep.equal([401, 'application/problem+json']);
  });

  it('are redirected to the wallet with an offer or a request, which stays unchanged', async () => {
    const { uri, session } = await createResource(service, token, '/issuer/offer', offerBody('card'));
    const address = new URL(new URL(uri).searchParams.get('credential_offer_uri') ?? '');
    const shown = await ask(address.pathname, { ...BROWSER, 'accept-language': 'da' });
    expect(shown.status).to.equal(406);
    expectPage(shown, 'da', 'an offer');
    expect(shown.text).to.include('Dette link er til din tegnebog').and.not.include('pre-authorized_code');
    const seen = await service.call('GET', `/session/${session}`, { token });
    expect(seen.body.status).to.equal('active');
    const appended = await ask(address.pathname, { ...BROWSER, 'sec-fetch-mode': 'navigate, cors' });
    expect([appended.status, appended.headers['content-type']]).to.deep.equal([406, PAGE_TYPE]);
    const overwritten = { accept: BROWSER_ACCEPT, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'document' };
    const byDestination = await ask(address.pathname, overwritten);
    expect([byDestination.status, byDestination.headers['content-type']]).to.deep.equal([406, PAGE_TYPE]);
    for (const program of PROGRAMS) {
      const offer = await ask(address.pathname, program);
      expect([offer.status, offer.headers['content-type']], JSON.stringify(program)).to.deep.equal([200, 'application/json']);
    }
  });

  it('are redirected to the wallet where only wallets post', async () => {
    const answer = await ask('/acme/credential', { ...BROWSER, 'accept-language': 'ga' });
    expect(answer.status).to.equal(405);
    expectPage(answer, 'ga', 'a credential endpoint');
    expect(answer.headers['allow']).to.equal('POST');
  });

  it('get a page for lists that have no form for browsers', async () => {
    const answer = await ask('/acme/status-list/x?time=1', { accept: 'text/html', 'accept-language': 'lt' });
    expect(answer.status).to.equal(501);
    expectPage(answer, 'lt', 'a status list of the past');
  });

  it('are asked to wait after too many calls', async () => {
    const headers = { ...BROWSER, 'accept-language': 'hr', 'x-forwarded-for': '9.9.9.9' };
    let answer = await ask('/acme/offer/x', headers);
    for (let calls = 0; answer.status !== 429 && calls < 400; calls++) {
      answer = await ask('/acme/offer/x', headers);
    }
    expect(answer.status).to.equal(429);
    expectPage(answer, 'hr', 'too many');
    expect(answer.text).to.include('Previše zahtjeva').and.include('Pričekajte minutu');
    expect(Number(answer.headers['retry-after'])).to.be.within(1, 60);
  });

  it('are asked to wait while the database is unavailable, and get internal errors as a page', async () => {
    const store = service.service.container.get(Store);
    const failing = async (error: Error) => {
      const stub = sinon.stub(store, 'read').throws(error);
      try {
        return await ask('/acme/presented', { ...BROWSER, 'accept-language': 'hu' });
      } finally {
        stub.restore();
      }
    };
    const away = await failing(new StoreUnavailableError('secret-of-the-driver', new Error('secret')));
    expect(away.status).to.equal(503);
    expectPage(away, 'hu', 'no database');
    const fault = await failing(new Error('secret-of-the-driver'));
    expect(fault.status).to.equal(500);
    expectPage(fault, 'hu', 'a fault');
    for (const { text } of [away, fault]) expect(text).to.not.include('secret');
  });

  it('get a description of the service at the root, and programs get the same answer as before', async () => {
    const page = await ask('/', { ...BROWSER, 'accept-language': 'el' });
    expect([page.status, page.headers['content-type']]).to.deep.equal([200, PAGE_TYPE]);
    expect(page.text)
      .to.include('<html lang="el">')
      .and.include(`<a href="${service.address}/docs">`)
      .and.include(`<a href="${service.address}/console">`);
    for (const program of PROGRAMS) {
      const { headers, text } = await ask('/', program);
      expect(headers['content-type'], JSON.stringify(program)).to.equal('application/json');
      expect(JSON.parse(text)).to.include({ name: 'vidimus' });
    }
  });

  it('get errors in the design of the tenant unless it is suspended or unknown', async () => {
    const display = [{ name: 'Ministério', locale: 'pt' }];
    await createResource(service, token, '/issuer/config', { display, pages: { backgroundColor: '#440000' } });
    const refused = await ask('/acme/offer/x', { ...BROWSER, 'accept-language': 'ja' });
    expect(refused.status).to.equal(404);
    expectPage(refused, 'pt', 'a page that there is not');
    expect(refused.text).to.include('<span>Ministério</span>').and.include('--back: #440000');
    const pressed = await ask('/acme/authorize', { 'accept-language': 'ja' }, 'POST');
    expect(pressed.text).to.include('<span>Ministério</span>');
    const root = await service.rootToken();
    const suspend = (status: string) => service.call('PATCH', '/tenant/acme', { token: root, json: { status } });
    expect((await suspend('suspended')).status).to.equal(200);
    const suspended = await ask('/acme/offer/x', BROWSER);
    const nobody = await ask('/nobody/offer/x', BROWSER);
    const without = (text: string) => text.replace(/Reference: [^<]+/, '');
    expect(without(suspended.text)).to.equal(without(nobody.text));
    expect((await suspend('active')).status).to.equal(200);
  });

  it('get a page after an answer that may be closed, in the language of the browser', async () => {
    const { status, text } = await ask('/acme/presented', { ...BROWSER, 'accept-language': 'ro' });
    expect(status).to.equal(200);
    expect(text).to.include('<html lang="ro">').and.include('Puteți închide această fereastră.');
  });
});

const PIXEL = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const ELSEWHERE = 'https://cdn.example/logo.png';
const CARD = {
  id: 'card',
  vct: 'urn:card:1',
  config: {
    format: 'dc+sd-jwt',
    display: [
      { name: 'Card', locale: 'en', background_color: '#004400', text_color: '#ffffff', logo: { uri: PIXEL } },
      { name: 'Karte', locale: 'de', background_color: '#777777', text_color: '#ffffff' },
    ],
    claims: [
      {
        path: ['family_name'],
        display: [
          { name: 'Family name', locale: 'en' },
          { name: 'Familienname', locale: 'de' },
        ],
      },
      { path: ['address', 'street_name'] },
    ],
  },
  claims: { family_name: 'Lovelace-Unmistakable', address: { street_name: 'Weg' } },
};
const ISSUER = {
  display: [
    { name: 'Ministry of Examples', locale: 'en', logo: { uri: PIXEL } },
    { name: 'Ministerium für Beispiele', locale: 'de', logo: { uri: ELSEWHERE } },
  ],
  pages: {
    backgroundColor: '#440000',
    textColor: '#ffffff',
    privacyUri: 'https://ministry.example/privacy?a=1&b=2',
    supportUri: 'mailto:help@ministry.example',
  },
};

describe('The consent page', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    wallet = new RawWallet(service, 'acme');
    await configure({});
    await createResource(service, token, '/issuer/credentials', CARD);
  });
  after(() => service.close());

  const configure = async (more: object) => {
    const json = { ...ISSUER, ...more };
    const answer = await service.call('POST', '/issuer/config', { token, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const push = async () => {
    const body = { ...offerBody('card'), flow: 'authorization_code' };
    const { uri } = await createResource(service, token, '/issuer/offer', body);
    return wallet.push(uri, 'card');
  };
  const open = async (language?: string, requestUri?: string) => {
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: requestUri ?? (await push()) });
    const headers = language === undefined ? {} : { 'Accept-Language': language };
    return service.call('GET', `/acme/authorize?${query}`, { headers });
  };

  it('is in the language of the browser, with the names in that language', async () => {
    const page = await open('de-AT, en;q=0.5');
    expect(page.status).to.equal(200);
    expect(page.headers.get('vary')).to.include('Accept-Language');
    expect(page.headers.get('content-language')).to.equal('de');
    expect(page.text)
      .to.include('<html lang="de">')
      .and.include('Ministerium für Beispiele: in Ihre Wallet aufnehmen?')
      .and.include('<span>Karte</span>')
      .and.include('<li>Familienname</li>')
      .and.include('Diese Wallet ist nicht überprüft.');
    const other = await open('fr');
    expect(other.text)
      .to.include('<html lang="fr">')
      .and.include('<span lang="en">Card</span>')
      .and.include('Ce portefeuille n’est pas vérifié.');
  });

  it('is in the language of the tenant without a supported browser language, and in English without any', async () => {
    await configure({ display: [{ name: 'Ministério', locale: 'pt' }] });
    expect((await open('ja')).text).to.include('<html lang="pt">');
    await configure({});
    expect((await open()).text).to.include('<html lang="en">');
  });

  it('stays in its language after the form is sent', async () => {
    const page = await open('sl');
    const [, action = ''] = /action="([^"]+)"/.exec(page.text) ?? [];
    const { pathname, search } = new URL(action);
    expect(search).to.equal('?lang=sl');
    const answer = await service.call('POST', pathname + search, { form: { decision: 'approve' } });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.include('<html lang="sl">').and.include('Vrnite se v svojo denarnico');
  });

  it('names the credential, and never logs it', async () => {
    const { text } = await open('en');
    expect(text).to.include('<li>Family name</li>').and.include('<li>street name</li>');
    expect(text).to.not.include('Unmistakable').and.not.include('Weg');
  });

  it('has the colours of the tenant and its cards, by hashes in its policy', async () => {
    const { text, headers } = await open('en');
    expect(text).to.include(':root { --back: #440000; --fore: #ffffff; }').and.include('.card-0 { background: #004400; color: #ffffff; }');
    const policy = headers.get('content-security-policy') ?? '';
    const styles = [...text.matchAll(/<style>([^<]*)<\/style>/g)].map(([, style = '']) => style);
    expect(styles).to.have.length(2);
    for (const style of styles) {
      expect(policy).to.include(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
    }
    expect(policy).to.include("default-src 'none'").and.include('img-src data:').and.not.include('unsafe');
    expect(text).to.not.match(/ style=|<script|<link| on[a-z]+=/);
  });

  it('uses the default colours if the configured ones are unreadable, with a warning to the client', async () => {
    expect((await open('de')).text).to.not.include('#777777');
    const written = await service.call('POST', '/issuer/credentials', { token, json: CARD });
    const members = (warnings: { member: string }[]) => warnings.map(({ member }) => member);
    expect(members(written.body.warnings)).to.include('config.display.1.text_color');
    const pages = { backgroundColor: '#ffff00', textColor: '#ffffff' };
    const { warnings } = await configure({ pages });
    expect(members(warnings)).to.include('pages.textColor');
    expect((await open('en')).text).to.not.include('#ffff00');
    expect(members((await configure({})).warnings)).to.not.include('pages.textColor');
  });

  it('shows an embedded image and loads none from another server', async () => {
    const english = await open('en');
    expect(english.text.split(`<img src="${PIXEL}" alt="">`)).to.have.length(3);
    const german = await open('de');
    expect(german.text).to.include('<span>Ministerium für Beispiele</span>');
    expect(german.text).to.not.include(ELSEWHERE);
    expect(german.text).to.not.include('<img');
  });

  it('links to the privacy notice and to support if there are any', async () => {
    const { text } = await open('en');
    expect(text)
      .to.include('<a href="https://ministry.example/privacy?a=1&#38;b=2" rel="noreferrer">Privacy notice</a>')
      .and.include('<a href="mailto:help@ministry.example" rel="noreferrer">Help and contact</a>');
    await configure({ pages: undefined });
    expect((await open('en')).text).to.not.include('<footer>');
    await configure({});
  });

  it('works with screen readers: one main heading, one main landmark and labels for each control', async () => {
    const { text } = await open('en');
    for (const once of ['<main>', '<h1>', '<header>', '<footer>', '<title>']) {
      expect(text.split(once), once).to.have.length(2);
    }
    const levels = [...text.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level));
    expect(levels).to.deep.equal([1, 2]);
    expect(text)
      .to.match(/<button[^>]*>Approve<\/button>/)
      .and.match(/<button[^>]*>Deny<\/button>/);
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('rejects invalid colours and addresses', async () => {
    for (const pages of [
      { backgroundColor: 'red' },
      { textColor: '#12' },
      { privacyUri: 'javascript:alert(1)' },
      { supportUri: 'data:text/html,x' },
      { logo: 'x' },
    ]) {
      const json = { ...ISSUER, pages };
      const answer = await service.call('POST', '/issuer/config', { token, json });
      expect(answer.status, JSON.stringify(pages)).to.equal(400);
      expect(answer.body.errors[0].path).to.match(/^pages/);
    }
  });
});
