import { expect } from 'chai';
import { checkIssuingPlace } from '../../../domain/formats/mdoc/driving-licence.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { certify } from '../../support/test-certificates.ts';

type Elements = Readonly<Record<string, unknown>>;

const outcomeOf = async (signer: string, authority: string | undefined, elements: Elements = {}) => {
  const root = await certify({ name: `Root${authority ?? ''}`, ca: true });
  const { certificate } = await certify({ name: `Signer${signer}`, by: root });
  const above = authority === undefined ? undefined : root.certificate;
  try {
    checkIssuingPlace({ certificate, authority: above }, { 'org.iso.18013.5.1': elements });
    return 'accepted';
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
};

describe('The place of a driving licence', () => {
  const good: readonly (readonly [string, string, string | undefined, Elements?])[] = [
    ['is that of signer and authority', ', C=DE', ', C=DE', { issuing_country: 'DE' }],
    ['need not be shown', ', C=DE', ', C=DE'],
    ['is compared with nothing where no certificate names one', '', '', { issuing_country: 'DE' }],
    ['is that of a signer who is trusted by itself', ', C=DE', undefined, { issuing_country: 'DE' }],
    ['is written in any letters', ', C=de', ', C=DE', { issuing_country: 'De' }],
    [
      'has the state of the signer',
      ', C=US, ST=US-CA',
      ', C=US',
      { issuing_country: 'US', issuing_jurisdiction: 'US-CA' },
    ],
    [
      'has the state of the signer without its country',
      ', C=US, ST=CA',
      ', C=US',
      { issuing_jurisdiction: 'US-CA' },
    ],
    ['need not show the state of the signer', ', C=US, ST=CA', ', C=US', { issuing_country: 'US' }],
    [
      'has the state of signer and authority',
      ', C=US, ST=CA',
      ', C=US, ST=CA',
      { issuing_jurisdiction: 'CA' },
    ],
    ['has any state where no certificate names one', ', C=US', ', C=US', { issuing_jurisdiction: 'US-NV' }],
  ];
  for (const [what, ...given] of good) {
    it(what, async () => expect(await outcomeOf(...given)).to.equal('accepted'));
  }

  const bad: readonly (readonly [string, RegExp, string, string | undefined, Elements?])[] = [
    [
      'another country than the signer',
      /issuing_country .* DE/,
      ', C=DE',
      ', C=DE',
      { issuing_country: 'FR' },
    ],
    ['no country as text', /issuing_country .* DE/, ', C=DE', ', C=DE', { issuing_country: 49 }],
    ['another country than a signer trusted by itself', /DE/, ', C=DE', undefined, { issuing_country: 'FR' }],
    ['a signer abroad', /signer is of DE, its authority of FR/, ', C=DE', ', C=FR'],
    ['a signer of no country', /signer is of no country, its authority of FR/, '', ', C=FR'],
    ['an authority of no country', /authority of no country/, ', C=DE', '', { issuing_country: 'DE' }],
    ['a signer of two countries', /DE and FR/, ', C=DE, C=FR', undefined, { issuing_country: 'FR' }],
    [
      'another state than the signer',
      /issuing_jurisdiction .* US-CA/,
      ', C=US, ST=US-CA',
      ', C=US',
      { issuing_jurisdiction: 'US-NV' },
    ],
    [
      'another state than the authority',
      /issuing_jurisdiction .* US-CA/,
      ', C=US',
      ', C=US, ST=US-CA',
      { issuing_jurisdiction: 'US-NV' },
    ],
    ['a signer of another state', /of US-NV, its authority of US-CA/, ', C=US, ST=US-NV', ', C=US, ST=US-CA'],
  ];
  for (const [what, detail, ...given] of bad) {
    it(`is refused with ${what}`, async () => {
      const outcome = await outcomeOf(...given);
      expect(outcome)
        .to.match(/^issuer_country_mismatch: /)
        .and.to.match(detail);
    });
  }
});
