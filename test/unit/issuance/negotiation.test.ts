import { expect } from 'chai';
import { acceptedTypes, languageRanges, pickEncoding } from '../../../adapters/http/negotiation.ts';
import {
  localeListsOf,
  narrowTo,
  onlyLocaleOf,
  pickLocale,
} from '../../../domain/issuance/localized-metadata.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';

const JSON_FORM = { names: ['application/json'] };
const JWT_FORM = { names: ['application/jwt'] };
const takenOf = (accept: string | undefined) => acceptedTypes(accept, [JSON_FORM, JWT_FORM]);

describe('Signed metadata', () => {
  const wanted = [
    'application/jwt',
    'Application/JWT',
    'application/jwt;q=0.1',
    'application/jwt, application/json',
    'application/jwt, */*;q=0.5',
    'application/json;q=0.9, application/jwt',
    'text/html, application/jwt;q=0.8, application/*;q=0.7',
    'application/jwt;charset=utf-8;q=1.000',
    'application/json;q=0.5, application/*',
    'application/json;q=0, */*',
  ];
  for (const accept of wanted) {
    it(`are sent for ${accept}`, () => expect(takenOf(accept)[0]).to.equal(JWT_FORM));
  }

  const unwanted = [
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/xml',
    'application/jwt;q=0',
    'application/jwt;q=0.0, */*;q=0.1',
    'application/json, application/jwt',
    'application/jwt;q=0.5, application/json',
    'application/jwt;q=0.5, */*',
    'application/jwt;q=2',
    'application/jwt;q=',
    'application/jwtx',
    `${'x/y,'.repeat(1000)}application/jwt`,
  ];
  for (const accept of unwanted) {
    it(`are not sent for ${accept?.slice(0, 50)}`, () => expect(takenOf(accept)[0]).to.not.equal(JWT_FORM));
  }
});

describe('Media types', () => {
  const STATUS_JWT = { names: ['application/statuslist+jwt', 'application/jwt'] };
  const STATUS_CWT = { names: ['application/statuslist+cwt', 'application/cwt'] };
  const cases: [string | undefined, readonly object[]][] = [
    [undefined, [STATUS_JWT, STATUS_CWT]],
    ['  ', [STATUS_JWT, STATUS_CWT]],
    ['*/*', [STATUS_JWT, STATUS_CWT]],
    ['application/statuslist+cwt, application/statuslist+jwt;q=0.1', [STATUS_CWT, STATUS_JWT]],
    ['application/statuslist+jwt;q=0.1, application/statuslist+cwt', [STATUS_CWT, STATUS_JWT]],
    ['application/statuslist+cwt;q=0.2, application/statuslist+jwt;q=0.3', [STATUS_JWT, STATUS_CWT]],
    ['application/statuslist+cwt, application/statuslist+jwt', [STATUS_CWT, STATUS_JWT]],
    ['application/statuslist+cwt, */*', [STATUS_CWT, STATUS_JWT]],
    ['*/*, application/statuslist+cwt;q=0.9', [STATUS_JWT, STATUS_CWT]],
    ['*/*, application/statuslist+jwt;q=0', [STATUS_CWT]],
    ['*/*;q=0, application/*', [STATUS_JWT, STATUS_CWT]],
    ['application/jwt, application/statuslist+jwt;q=0', []],
    ['application/cwt', [STATUS_CWT]],
    ['text/*, application/json', []],
    ['application/statuslist+cwt;q=nan', []],
    [`${'x/y,'.repeat(1000)}*/*`, []],
  ];
  for (const [accept, expected] of cases) {
    it(`are ${expected.length} for ${accept?.slice(0, 80)}, the best one first`, () => {
      expect(acceptedTypes(accept, [STATUS_JWT, STATUS_CWT])).to.deep.equal(expected);
    });
  }
});

describe('The encoding of an answer', () => {
  const cases: [string | undefined, string | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['deflate, zstd', undefined],
    ['gzip', 'gzip'],
    ['X-GZIP', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0.2, gzip;q=0.8', 'gzip'],
    ['br;q=0.8, gzip;q=0.2', 'br'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['*;q=0', undefined],
    ['gzip;q=0, br;q=0', undefined],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['gzip;q=7', undefined],
    [`${'x,'.repeat(2000)}gzip`, undefined],
  ];
  for (const [header, expected] of cases) {
    it(`is ${expected ?? 'none'} for ${header?.slice(0, 50)}`, () => {
      expect(pickEncoding(header)).to.equal(expected);
    });
  }
});

describe('The language of metadata', () => {
  const LOCALES = ['en', 'de-AT', 'de-CH', 'fr-FR', 'zh-Hant'];
  const cases: [string | undefined, string | undefined][] = [
    ['en', 'en'],
    ['EN-us', 'en'],
    ['de-at', 'de-AT'],
    ['de', 'de-AT'],
    ['fr-CA', undefined],
    ['fr', 'fr-FR'],
    ['zh-Hant-TW', 'zh-Hant'],
    ['es, de-CH;q=0.9, en;q=0.8', 'de-CH'],
    ['en;q=0.5, fr-FR', 'fr-FR'],
    ['es, *', undefined],
    ['*', undefined],
    ['en;q=0, fr', 'fr-FR'],
    ['es', undefined],
    [undefined, undefined],
    ['--', undefined],
  ];
  for (const [header, expected] of cases) {
    it(`is ${expected ?? 'every one'} for ${header}`, () => {
      expect(pickLocale(LOCALES, languageRanges(header))).to.equal(expected);
    });
  }

  const METADATA: JsonObject = {
    display: [{ name: 'Acme', locale: 'en' }, { name: 'Acme GmbH', locale: 'de' }, { name: 'no language' }],
    credential_configurations_supported: {
      display: {
        credential_metadata: {
          display: [{ name: 'Carte', locale: 'fr' }],
          claims: [
            {
              path: ['a', null],
              display: [
                { name: 'A', locale: 'de' },
                { name: 'B', locale: 'en' },
              ],
            },
          ],
        },
      },
    },
  };

  it('is one of those that are there', () => {
    expect(localeListsOf(METADATA)).to.deep.equal([['en', 'de'], ['fr'], ['de', 'en']]);
    expect(localeListsOf({ display: [{ name: 'Acme', locale: 7 }, 'Acme'] })).to.deep.equal([[]]);
    expect(pickLocale(['de', 'en'], ['fr', '*', 'de']), 'any will do').to.equal(undefined);
  });

  it('leaves out what is written in others, unless nothing else is there', () => {
    const narrowed = narrowTo(METADATA, ['de']);
    expect(onlyLocaleOf(narrowed)).to.equal(undefined);
    expect(narrowed).to.deep.equal({
      display: [{ name: 'Acme GmbH', locale: 'de' }],
      credential_configurations_supported: {
        display: {
          credential_metadata: {
            display: [{ name: 'Carte', locale: 'fr' }],
            claims: [{ path: ['a', null], display: [{ name: 'A', locale: 'de' }] }],
          },
        },
      },
    });
  });

  it('is looked up in each list, so that en finds en-US in one and en-GB in another', () => {
    const lists = (office: readonly string[], card: readonly string[]) => ({
      display: office.map((locale) => ({ locale })),
      card: { display: card.map((locale) => ({ locale })) },
    });
    const all = lists(['de-DE', 'en-US'], ['de', 'en-GB']);
    for (const [ranges, office, card, language] of [
      [['en'], 'en-US', 'en-GB', undefined],
      [['de'], 'de-DE', 'de', undefined],
      [['en-GB', 'en'], 'en-US', 'en-GB', undefined],
    ] as const) {
      const narrowed = narrowTo(all, ranges);
      expect(narrowed).to.deep.equal(lists([office], [card]));
      expect(onlyLocaleOf(narrowed)).to.equal(language);
    }
    expect(narrowTo(all, ['fr'])).to.deep.equal(all);
    expect(onlyLocaleOf(narrowTo(lists(['de', 'en'], ['en']), ['en']))).to.equal('en');
  });
});
