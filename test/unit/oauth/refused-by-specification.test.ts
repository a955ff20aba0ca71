import { expect } from 'chai';
import { renderFailure } from '../../../adapters/http/failures.ts';
import { readResponseEncryption } from '../../../domain/issuance/encryption.ts';
import { acceptJwtProof, openJwtProof } from '../../../domain/issuance/proof.ts';
import { acceptDpopProof, openDpopProof } from '../../../domain/oauth/dpop.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { codeOf } from '../../support/failure-code.ts';
import { dpopProof, keyProof, newKey, now } from '../../support/raw-wallet.ts';

const URL = 'https://issuer.example/acme/token';
const ISSUER = 'https://issuer.example/acme';

const judged = (payload: Record<string, unknown>) =>
  codeOf(() =>
    acceptDpopProof(openDpopProof([dpopProof(newKey(), URL, { payload })]), {
      ...{ method: 'POST', url: URL, now: new Date() },
    }),
  );

describe('The address of a DPoP proof', () => {
  it('is that of the request, however it is written', () => {
    // RFC 9449 section 4.3: without query and fragment
    for (const htu of [`${URL}?a=b#c`, 'HTTPS://Issuer.example:443/acme/x/../%74oken']) {
      expect(judged({ htu }), htu).to.equal('taken');
    }
    for (const htu of [`${URL}s`, 'nonsense']) expect(judged({ htu }), htu).to.equal('invalid_dpop_proof');
  });
});

describe('The times of a DPoP proof', () => {
  for (const [what, payload] of [
    ['an exp 61 seconds ago', () => ({ exp: now() - 61 })],
    ['an end that is a text', () => ({ exp: 'later' })],
    ['an end that is a number as a text', () => ({ exp: `${now() + 60}` })],
    ['a beginning in two minutes', () => ({ nbf: now() + 120 })],
    ['a beginning that is a text', () => ({ nbf: 'soon' })],
  ] as const) {
    it(`refuse ${what}`, () => {
      expect(judged(payload())).to.equal('invalid_dpop_proof');
    });
  }

  it('may have ended 50 seconds ago, since clocks differ', () => {
    expect(judged({ exp: now() - 50 })).to.equal('taken');
  });

  it('need not be there, and may be right', () => {
    expect(judged({})).to.equal('taken');
    expect(judged({ exp: now() + 60, nbf: now() })).to.equal('taken');
  });
});

describe('The time of a key proof', () => {
  const judged = (iat: number) =>
    codeOf(() =>
      acceptJwtProof(openJwtProof(keyProof(newKey(), ISSUER, 'nonce', { payload: { iat } })), {
        ...{ audience: ISSUER, clientId: undefined, now: new Date() },
      }),
    );

  it('lies in an acceptable window', () => {
    // OpenID4VCI 1.0 appendix F.4
    expect(judged(now() + 90)).to.equal('invalid_proof');
    expect(judged(now() - 330)).to.equal('invalid_proof');
    expect([judged(now() + 30), judged(now() - 270)]).to.deep.equal(['taken', 'taken']);
  });
});

describe('The key for an encrypted answer', () => {
  const judged = (changes: object) => {
    const jwk = { ...newKey().jwk, alg: 'ECDH-ES', ...changes };
    const body = { credential_response_encryption: { jwk, enc: 'A256GCM' } };
    return codeOf(() => readResponseEncryption(body, { use: 'optional', encrypted: true }));
  };

  it('is not one for signatures', () => {
    // RFC 7517 section 4.2
    expect(judged({ use: 'sig' })).to.equal('invalid_encryption_parameters');
    expect([judged({ use: 'enc' }), judged({})]).to.deep.equal(['taken', 'taken']);
  });
});

describe('What wallets are told of a failure', () => {
  for (const surface of ['oauth', 'vci', 'vp'] as const) {
    it(`has no character that ${surface} does not allow`, () => {
      // OpenID4VCI 1.0 section 8.3.1.2, RFC 6749 section 5.2
      const failure = new Failure('invalid_request', 'the "name" of Löwe\\Bär\n is 名');
      const { body } = renderFailure(failure, surface, 'id');
      const { error_description: description } = body as { error_description: string };
      expect(description).to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
      expect(description).to.include('name').and.include('is');
    });
  }
});
