import { expect } from 'chai';
import {
  accessTokenPayload,
  readAccessTokenPayload,
  type WalletTokenClaims,
} from '../../../domain/oauth/access-token.ts';
import type { PublicId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';

const ISSUER = 'https://issuer.example/acme';
const NOW = new Date('2026-06-01T12:00:00Z');
const SECONDS = NOW.getTime() / 1000;

/** What every token of a wallet says. */
const BEARER: WalletTokenClaims = {
  issuer: ISSUER,
  audience: ISSUER,
  subject: 'public',
  publicId: 'public' as PublicId,
  grantId: 'grant',
  tokenId: 'token',
  issuedAtSeconds: SECONDS,
  expiresAtSeconds: SECONDS + 300,
  credentialConfigurationIds: ['card', 'pass'],
  identifiers: false,
};
const WHOLE: WalletTokenClaims = {
  ...BEARER,
  issuer: `${ISSUER}/chained-as`,
  scope: 'card pass',
  clientId: 'https://wallet.example',
  identifiers: true,
  actionsDone: ['mark'],
  keyThumbprint: 'thumb',
};

const read = (payload: JsonObject, now = NOW) => readAccessTokenPayload(payload, ISSUER, now);

describe('An access token of a wallet', () => {
  for (const [what, claims] of Object.entries({ 'with all there is': WHOLE, 'of a bearer': BEARER })) {
    it(`says what it was made of, ${what}, and nothing more`, () => {
      expect(read(accessTokenPayload(claims))).to.deep.equal(claims);
    });
  }

  it('has no member for what is not known', () => {
    const { grantId: _, ...foreign } = BEARER;
    expect(accessTokenPayload(foreign)).to.have.all.keys(
      ...['iss', 'aud', 'sub', 'jti', 'issuer_state', 'iat', 'exp', 'credential_configuration_ids'],
    );
  });

  it('counts until its end', () => {
    const payload = accessTokenPayload(BEARER);
    expect(read(payload, new Date(NOW.getTime() + 299_999))).to.not.equal(undefined);
    expect(read(payload, new Date(NOW.getTime() + 300_000))).to.equal(undefined);
  });

  it('is read past members that are of no use', () => {
    const odd = { scope: 7, client_id: null, actions_done: ['a', 1] };
    expect(read({ ...accessTokenPayload(BEARER), ...odd })).to.deep.equal(BEARER);
  });

  const refused: readonly [string, JsonObject][] = [
    ['another issuer', { iss: 'https://else.example' }],
    ['an issuer that is no text', { iss: [ISSUER] }],
    ['another audience', { aud: 'https://issuer.example/beta' }],
    ['a session that is no text', { issuer_state: 7 }],
    ['a grant that is no text', { grant_id: null }],
    ['a subject that is no text', { sub: 7 }],
    ['an identifier that is no text', { jti: 7 }],
    ['a time that is no number', { iat: 'now' }],
    ['an end that is no number', { exp: `${SECONDS + 300}` }],
    ['no configurations', { credential_configuration_ids: 'card' }],
    ['configurations that are no texts', { credential_configuration_ids: [7] }],
    ['details that are no objects', { authorization_details: ['card'] }],
    ['details of nothing', { authorization_details: [{}] }],
    ['a binding that is no key', { cnf: { jkt: 7 } }],
    ['a binding that is no object', { cnf: 'thumb' }],
  ];
  for (const [what, bend] of refused) {
    it(`is refused with ${what}`, () => {
      expect(read({ ...accessTokenPayload(BEARER), ...bend })).to.equal(undefined);
    });
  }
});
