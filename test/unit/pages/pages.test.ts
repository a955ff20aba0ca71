import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import { chooseLanguage, displayFor, type Language, preferredLanguages, TEXTS } from '../../../adapters/http/pages/languages.ts';
import { escapeHtml, fill, inlineImage } from '../../../adapters/http/pages/markup.ts';
import { contrastOf, findContrastProblems, readableColours } from '../../../domain/shared/contrast.ts';
import { brandingOf } from '../../../domain/tenants/branding.ts';

const registered = (privacy_policy: string, support_uri: string) => ({ body: { privacy_policy, support_uri } });

describe('tenant page branding', () => {
  it('uses links of the registration if the pages have none', () => {
    const registrationCert = registered('https://a.example/privacy', 'tel:+49');
    const ownAddresses = { privacyUri: 'https://b.example/privacy' };
    expect(brandingOf('Acme', { display: [], registrationCert })).to.include({
      privacyUri: 'https://a.example/privacy',
      supportUri: 'tel:+49',
    });
    expect(brandingOf('Acme', { display: [], registrationCert, pages: ownAddresses })).to.include({
      privacyUri: 'https://b.example/privacy',
      supportUri: 'tel:+49',
    });
    const clientAddresses = registered('https://c.example/privacy', 'tel:+43');
    expect(brandingOf('Acme', { display: [], registrationCert }, [clientAddresses])).to.include({
      privacyUri: 'https://c.example/privacy',
      supportUri: 'tel:+43',
    });
    expect(brandingOf('Acme', { display: [], registrationCert: { jwt: 'a.b.c' } })).to.deep.equal({ name: 'Acme', displays: [] });
  });

  it('shows embedded images of a few types and a limited size', () => {
    for (const type of ['png', 'jpeg', 'webp', 'svg+xml']) {
      expect(inlineImage(`data:image/${type};base64,AAAA`)).to.include('<img');
    }
    const rejected = [
      'https://cdn.example/x.png',
      'data:image/gif;base64,AAAA',
      'data:text/html;base64,AAAA',
      'javascript:x',
      `data:image/png;base64,${'A'.repeat(70_000)}`,
    ];
    for (const uri of rejected) expect(inlineImage(uri), uri.slice(0, 40)).to.equal('');
    expect(inlineImage('data:image/svg+xml,"><script>')).to.not.include('"><');
  });

  it('escapes names in texts', () => {
    const name = escapeHtml('<b>{issuer}</b> $& "x"');
    expect(fill('{issuer} & {place}', { issuer: name, place: 'there' })).to.equal(
      '&#60;b&#62;{issuer}&#60;/b&#62; $&#38; &#34;x&#34; &#38; there',
    );
  });
});

const OFFICIAL = 'bg cs da de el en es et fi fr ga hr hu it lt lv mt nl pl pt ro sk sl sv'.split(' ');
const placeholders = (text: string) => (text.match(/\{[a-z]+\}/g) ?? []).toSorted();

describe('page texts', () => {
  it('exist in the official languages of the EU, in one file each', async () => {
    expect(Object.keys(TEXTS)).to.have.members(OFFICIAL);
    const files = await readdir(new URL('../../../adapters/http/pages/texts', import.meta.url));
    expect(files).to.have.members([...OFFICIAL.map((code) => `${code}.json`)]);
  });

  for (const [language, texts] of Object.entries(TEXTS)) {
    it(`are complete in ${language}`, () => {
      expect(Object.keys(texts)).to.deep.equal(Object.keys(TEXTS.en));
      for (const [name, text] of Object.entries(texts)) {
        const english = TEXTS.en[name as keyof typeof TEXTS.en];
        expect(placeholders(text), `${name}: ${text}`).to.deep.equal(placeholders(english));
        expect(text.replaceAll(/\{[a-z]+\}/g, 'x'), name).to.not.match(/[{}<>&]|^\s|\s$|^$|\s{2}/);
        const isSentence = english.endsWith('.');
        expect(text.endsWith('.'), `${name}: ${text}`).to.equal(isSentence);
      }
    });
  }

  it('are written in their language', () => {
    const languages = Object.keys(TEXTS) as Language[];
    for (const left of languages) {
      for (const right of languages.filter((language) => language > left)) {
        const names = Object.keys(TEXTS.en) as (keyof typeof TEXTS.en)[];
        const untranslated = names.filter((name) => TEXTS[left][name] === TEXTS[right][name]);
        expect(untranslated.length, `${left} and ${right} both have ${untranslated}`).to.be.below(8);
      }
    }
  });
});

describe('page language', () => {
  const chosenLanguage = (acceptLanguage: string | undefined, fallback: string[] = [], url = '/') =>
    chooseLanguage(preferredLanguages({ url, headers: { 'accept-language': acceptLanguage } }), fallback);

  const CHOICES: readonly [string | undefined, string][] = [
    ['de', 'de'],
    ['de-AT', 'de'],
    ['DE-at', 'de'],
    ['fr;q=0.5, sv;q=0.9', 'sv'],
    ['tlh, mt;q=0.3', 'mt'],
    ['de;q=0, fr;q=0.1', 'fr'],
    ['de;q=nonsense', 'en'],
    ['ja', 'en'],
    ['*', 'en'],
    ['', 'en'],
    [undefined, 'en'],
    ['x'.repeat(5_000), 'en'],
    ['__proto__, constructor', 'en'],
  ];
  for (const [header, language] of CHOICES) {
    it(`for ${String(header).slice(0, 40)} is ${language}`, () => {
      expect(chosenLanguage(header)).to.equal(language);
    });
  }

  it('is that of the tenant if no supported one is accepted', () => {
    expect(chosenLanguage('ja', ['pt-BR', 'en'])).to.equal('pt');
    expect(chosenLanguage('ja', ['ja'])).to.equal('en');
    expect(chosenLanguage('fi', ['pt'])).to.equal('fi');
  });

  it('is kept from the previous page by its address', () => {
    expect(chosenLanguage('fr', [], '/acme/authorize?lang=et')).to.equal('et');
    expect(chosenLanguage('fr', [], '/acme/authorize?lang=nonsense!')).to.equal('fr');
    expect(chosenLanguage('fr', [], '//:::/?lang=%00')).to.equal('fr');
  });

  it('selects the display entry of the language, otherwise the one without a language, otherwise the first', () => {
    const entries = [{ locale: 'en', name: 'Card' }, { name: 'Any' }, { locale: 'de-DE', name: 'Karte' }];
    expect(displayFor(entries, ['de-AT', 'de'])?.name).to.equal('Karte');
    expect(displayFor(entries, ['en-GB'])?.name).to.equal('Card');
    expect(displayFor(entries, ['fr'])?.name).to.equal('Any');
    expect(displayFor(entries.slice(0, 1), ['fr'])?.name).to.equal('Card');
    expect(displayFor([], ['fr'])).to.equal(undefined);
  });
});

describe('contrast of two colours', () => {
  const KNOWN_RATIOS: readonly [string, string, number | undefined][] = [
    ['#000', '#fff', 21],
    ['#ffffff', '#FFFFFF', 1],
    ['#767676', '#fff', 4.54],
    ['#777777', '#ffffff', 4.48],
    ['#0000ff', '#ffffff', 8.59],
    ['#767676ff', '#ffff', 4.54],
    ['#76767680', '#fff', undefined],
    ['red', '#fff', undefined],
    ['#12345', '#fff', undefined],
    ['#12', '#fff', undefined],
  ];
  for (const [left, right, ratio] of KNOWN_RATIOS) {
    it(`of ${left} and ${right} is ${ratio}`, () => {
      const ratioOf = contrastOf(left, right);
      expect(ratioOf === undefined ? undefined : Math.round(ratioOf * 100) / 100).to.equal(ratio);
      expect(contrastOf(right, left)).to.equal(ratioOf);
    });
  }

  it('decides whether a page uses them', () => {
    const text = '#ffffff';
    expect(readableColours({ background: '#767676', text })).to.deep.equal({ background: '#767676', text });
    expect(readableColours({ background: '#777777', text })).to.equal(undefined);
    expect(readableColours({ text })).to.equal(undefined);
    expect(readableColours({ background: '#00000080', text })).to.equal(undefined);
    expect(readableColours({ background: '#0a0', text: 'url(//evil)' })).to.equal(undefined);
    expect(readableColours({ background: '#fff;} * { x' })).to.equal(undefined);
  });

  it('is sufficient for one text colour on every background', () => {
    for (let value = 0; value < 256; value += 5) {
      for (const background of [value * 0x010101, value * 0x0100, value * 0x010000 + 0xff]) {
        const hex = `#${background.toString(16).padStart(6, '0')}`;
        const colours = readableColours({ background: hex });
        expect(contrastOf(hex, colours?.text ?? hex), hex).to.be.at.least(4.5);
      }
    }
  });

  it('causes a warning when it is too low', () => {
    const [finding, ...rest] = findContrastProblems('pages.textColor', { background: '#777', text: '#fff' });
    expect(finding).to.deep.include({ member: 'pages.textColor' });
    expect(finding?.message).to.include('4.5 to 1');
    expect(rest).to.deep.equal([]);
    expect(findContrastProblems('x', { background: '#000', text: '#fff' })).to.deep.equal([]);
    expect(findContrastProblems('x', { background: '#000' })).to.deep.equal([]);
  });
});
