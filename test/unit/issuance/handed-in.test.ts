import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { prepareMdoc, sealMdoc } from '../../../domain/formats/mdoc/issue.ts';
import { handedInFindings } from '../../../domain/issuance/handed-in.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { newKey } from '../../support/raw-wallet.ts';

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const sdJwt = (payload: object) =>
  `${part({ alg: 'ES256', typ: 'dc+sd-jwt' })}.${part(payload)}.${'A'.repeat(86)}~`;
const keys = [newKey(), newKey()].map(({ jwk }) => jwk as PublicJwk);
const [first, second] = keys as [PublicJwk, PublicJwk];
const stranger = newKey().jwk as PublicJwk;
const bound = (jwk: PublicJwk) => sdJwt({ vct: 'urn:card', cnf: { jwk } });
const mdoc = (holderKey: PublicJwk) => {
  const [signed, validUntil] = [new Date(), new Date(Date.now() + 86_400_000)];
  const prepared = prepareMdoc({
    docType: 'org.example.card',
    claimsByNamespace: { 'org.example.card': { name: 'Ada' } },
    holderKey,
    signer: { algorithm: 'ES256', chain: ['AAAA'] },
    validity: { signed, validFrom: signed, validUntil },
    randomBytes,
  });
  return sealMdoc(prepared, Buffer.alloc(64));
};

type Format = 'dc+sd-jwt' | 'mso_mdoc';
const told = (
  credentials: readonly string[],
  format: Format = 'dc+sd-jwt',
  keyBinding = true,
  proven: readonly PublicJwk[] = keys,
) =>
  handedInFindings(credentials, { config: { format }, keyBinding }, proven).map(
    ({ member, message }) => `${member}: ${message}`,
  );

describe('Credentials that a backend made itself', () => {
  it('are as the wallet takes them with one for each of its keys', () => {
    expect(told([bound(first), bound(second)])).to.deep.equal([]);
    expect(told([mdoc(second), mdoc(first)], 'mso_mdoc')).to.deep.equal([]);
    expect(told([sdJwt({ vct: 'urn:ticket' })], 'dc+sd-jwt', false, [])).to.deep.equal([]);
  });

  const foreign: readonly (readonly [string, Format, readonly string[], readonly string[]])[] = [
    ['fewer than keys', 'dc+sd-jwt', [bound(first)], ['credentials: the backend made 1 of 2 credentials']],
    [
      'a key of somebody else',
      'dc+sd-jwt',
      [bound(first), bound(stranger)],
      ['credentials.1: it is bound to a key that the wallet did not prove'],
    ],
    [
      'one key twice',
      'mso_mdoc',
      [mdoc(first), mdoc(first)],
      ['credentials.1: another one is bound to the same key'],
    ],
    [
      'no key',
      'dc+sd-jwt',
      [bound(first), sdJwt({ vct: 'urn:card' })],
      ['credentials.1: it is bound to no key'],
    ],
    [
      'another format',
      'mso_mdoc',
      [mdoc(first), bound(second)],
      ['credentials.1: it is no mso_mdoc (malformed: no base64url)'],
    ],
  ];
  for (const [what, format, credentials, expected] of foreign) {
    it(`are warned of with ${what}`, () => expect(told(credentials, format)).to.deep.equal(expected));
  }

  it('are warned of when they are none', () => {
    for (const text of ['abc', 'a.b.c~', mdoc(first)]) {
      expect(told([text], 'dc+sd-jwt', true, [first])[0], text).to.match(
        /^credentials\.0: it is no dc\+sd-jwt/,
      );
    }
    for (const text of ['abc', 'AAAA', Buffer.from('a0', 'hex').toString('base64url')]) {
      expect(told([text], 'mso_mdoc', true, [first])[0], text).to.match(/^credentials\.0: it is no mso_mdoc/);
    }
  });
});
