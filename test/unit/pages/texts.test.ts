import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import {
  chooseLanguage,
  displayFor,
  type Language,
  languagesAsked,
  TEXTS,
} from '../../../adapters/http/pages/languages.ts';

const OFFICIAL = 'bg cs da de el en es et fi fr ga hr hu it lt lv mt nl pl pt ro sk sl sv'.split(' ');
const placeholders = (text: string) => (text.match(/\{[a-z]+\}/g) ?? []).toSorted();

describe('The texts of pages', () => {
  it('are there in the official languages of the Union, a file for each', async () => {
    expect(Object.keys(TEXTS)).to.have.members(OFFICIAL);
    const files = await readdir(new URL('../../../adapters/http/pages/texts', import.meta.url));
    expect(files).to.have.members([...OFFICIAL.map((code) => `${code}.ts`), 'texts.ts']);
  });

  for (const [language, texts] of Object.entries(TEXTS)) {
    it(`lack nothing in ${language}`, () => {
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

  it('are those of their language, and not of another', () => {
    const languages = Object.keys(TEXTS) as Language[];
    for (const one of languages) {
      for (const other of languages.filter((language) => language > one)) {
        const names = Object.keys(TEXTS.en) as (keyof typeof TEXTS.en)[];
        const same = names.filter((name) => TEXTS[one][name] === TEXTS[other][name]);
        expect(same.length, `${one} and ${other} both have ${same}`).to.be.below(8);
      }
    }
  });
});

describe('The language of a page', () => {
  const chosen = (acceptLanguage: string | undefined, otherwise: string[] = [], url = '/') =>
    chooseLanguage(languagesAsked({ url, headers: { 'accept-language': acceptLanguage } }), otherwise);

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
      expect(chosen(header)).to.equal(language);
    });
  }

  it('is the tenant’s for who wants none of ours', () => {
    expect(chosen('ja', ['pt-BR', 'en'])).to.equal('pt');
    expect(chosen('ja', ['ja'])).to.equal('en');
    expect(chosen('fi', ['pt'])).to.equal('fi');
  });

  it('stays that of the page before, which its address says', () => {
    expect(chosen('fr', [], '/acme/authorize?lang=et')).to.equal('et');
    expect(chosen('fr', [], '/acme/authorize?lang=nonsense!')).to.equal('fr');
    expect(chosen('fr', [], '//:::/?lang=%00')).to.equal('fr');
  });

  it('chooses the entry of a display, else the one without a language, else the first', () => {
    const entries = [{ locale: 'en', name: 'Card' }, { name: 'Any' }, { locale: 'de-DE', name: 'Karte' }];
    expect(displayFor(entries, ['de-AT', 'de'])?.name).to.equal('Karte');
    expect(displayFor(entries, ['en-GB'])?.name).to.equal('Card');
    expect(displayFor(entries, ['fr'])?.name).to.equal('Any');
    expect(displayFor(entries.slice(0, 1), ['fr'])?.name).to.equal('Card');
    expect(displayFor([], ['fr'])).to.equal(undefined);
  });
});
