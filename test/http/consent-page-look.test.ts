import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { created, offerBody } from '../support/populated.ts';
import { CLIENT_ID, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const ELSEWHERE = 'https://cdn.example/logo.png';
const CARD = {
  id: 'card',
  vct: 'urn:card:1',
  config: {
    format: 'dc+sd-jwt',
    display: [
      {
        name: 'Card',
        locale: 'en',
        background_color: '#004400',
        text_color: '#ffffff',
        logo: { uri: PIXEL },
      },
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
    await created(service, token, '/issuer/credentials', CARD);
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
    const { uri } = await created(service, token, '/issuer/offer', body);
    return wallet.push(uri, 'card');
  };
  const open = async (language?: string, requestUri?: string) => {
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: requestUri ?? (await push()) });
    const headers = language === undefined ? {} : { 'Accept-Language': language };
    return service.call('GET', `/acme/authorize?${query}`, { headers });
  };

  it('is in the language of the browser, with the names of that language', async () => {
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

  it('is in the language of the tenant for who wants none of ours, and in English for who says nothing', async () => {
    await configure({ display: [{ name: 'Ministério', locale: 'pt' }] });
    expect((await open('ja')).text).to.include('<html lang="pt">');
    await configure({});
    expect((await open()).text).to.include('<html lang="en">');
  });

  it('stays in its language after the form', async () => {
    const page = await open('sl');
    const [, action = ''] = /action="([^"]+)"/.exec(page.text) ?? [];
    const { pathname, search } = new URL(action);
    expect(search).to.equal('?lang=sl');
    const answer = await service.call('POST', pathname + search, { form: { decision: 'approve' } });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.include('<html lang="sl">').and.include('Vrnite se v svojo denarnico');
  });

  it('names what will be issued, and never says it', async () => {
    const { text } = await open('en');
    expect(text).to.include('<li>Family name</li>').and.include('<li>street name</li>');
    expect(text).to.not.include('Unmistakable').and.not.include('Weg');
  });

  it('has the colours of the tenant and of its cards, by hashes that its policy names', async () => {
    const { text, headers } = await open('en');
    expect(text)
      .to.include(':root { --back: #440000; --fore: #ffffff; }')
      .and.include('.card-0 { background: #004400; color: #ffffff; }');
    const policy = headers.get('content-security-policy') ?? '';
    const styles = [...text.matchAll(/<style>([^<]*)<\/style>/g)].map(([, style = '']) => style);
    expect(styles).to.have.length(2);
    for (const style of styles) {
      expect(policy).to.include(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
    }
    expect(policy).to.include("default-src 'none'").and.include('img-src data:').and.not.include('unsafe');
    expect(text).to.not.match(/ style=|<script|<link| on[a-z]+=/);
  });

  it('takes its own colours where nobody could read the others, of which the writer is warned', async () => {
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

  it('shows an image that comes with it, and loads none from elsewhere', async () => {
    const english = await open('en');
    expect(english.text.split(`<img src="${PIXEL}" alt="">`)).to.have.length(3);
    const german = await open('de');
    expect(german.text).to.include('<span>Ministerium für Beispiele</span>');
    expect(german.text).to.not.include(ELSEWHERE);
    expect(german.text).to.not.include('<img');
  });

  it('leads to the privacy notice and to support, where there are any', async () => {
    const { text } = await open('en');
    expect(text)
      .to.include(
        '<a href="https://ministry.example/privacy?a=1&#38;b=2" rel="noreferrer">Privacy notice</a>',
      )
      .and.include('<a href="mailto:help@ministry.example" rel="noreferrer">Help and contact</a>');
    await configure({ pages: undefined });
    expect((await open('en')).text).to.not.include('<footer>');
    await configure({});
  });

  it('can be used without eyes: one heading for all, one main part, and words for every control', async () => {
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

  it('refuses what is no colour and no address', async () => {
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
