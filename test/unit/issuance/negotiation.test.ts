import { expect } from 'chai';
import { languageRanges, prefersJwt } from '../../../adapters/http/negotiation.ts';
import { localesOf, narrowTo, pickLocale } from '../../../domain/issuance/localized-metadata.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';

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
  ];
  for (const accept of wanted) {
    it(`are sent for ${accept}`, () => expect(prefersJwt(accept)).to.equal(true));
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
    it(`are not sent for ${accept?.slice(0, 50)}`, () => expect(prefersJwt(accept)).to.equal(false));
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
    expect(localesOf(METADATA)).to.deep.equal(['en', 'de', 'fr']);
  });

  it('leaves out what is written in others, unless nothing else is there', () => {
    const narrowed = narrowTo(METADATA, 'de');
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
});
