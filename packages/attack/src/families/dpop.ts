import { denied, type Family, type Safe } from '../core/case.ts';
import { type Alteration, type Key, makeJwt, newKey, now, sha256, symmetric, unsigned, withBrokenSignature } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer, Sending } from '../targets/issuer.ts';
import { issueCredential, obtainToken } from './common.ts';

/** Errors of a proof, at any endpoint. */
const FORMS: Readonly<Record<string, (key: Key) => Sending>> = {
  'typ JWT': () => ({ dpop: { header: { typ: 'JWT' } } }),
  'no typ': () => ({ dpop: { header: { typ: undefined } } }),
  'alg none': () => ({ proof: unsigned }),
  'HS256 by the public key': (key) => ({ proof: (good) => symmetric(good, JSON.stringify(key.jwk)) }),
  'a symmetric key in its header': () => ({ dpop: { header: { jwk: { kty: 'oct', k: 'AAAA' } } } }),
  'its private key in the header': (key) => ({ dpop: { header: { jwk: { ...key.jwk, d: key.privateKey.export({ format: 'jwk' }).d } } } }),
  'no key': () => ({ dpop: { header: { jwk: undefined } } }),
  'a key that did not sign': () => ({ dpop: { header: { jwk: newKey().jwk } } }),
  'a broken signature': () => ({ proof: withBrokenSignature }),
  'no signature': () => ({ proof: (good) => good.slice(0, good.lastIndexOf('.') + 1) }),
  'an extension that nobody knows': () => ({ dpop: { header: { crit: ['unknown'], unknown: 1 } } }),
  'no htm': () => ({ dpop: { payload: { htm: undefined } } }),
  'htm GET': () => ({ dpop: { payload: { htm: 'GET' } } }),
  'no htu': () => ({ dpop: { payload: { htu: undefined } } }),
  'htu of another host': () => ({ dpop: { payload: { htu: 'https://other.example/token' } } }),
  'no iat': () => ({ dpop: { payload: { iat: undefined } } }),
  'an iat of an hour ago': () => ({ dpop: { payload: { iat: now() - 3600 } } }),
  'an iat of an hour ahead': () => ({ dpop: { payload: { iat: now() + 3600 } } }),
  'an iat that is a text': () => ({ dpop: { payload: { iat: String(now()) } } }),
  'no jti': () => ({ dpop: { payload: { jti: undefined } } }),
  'a jti of a megabyte': () => ({ dpop: { payload: { jti: 'x'.repeat(100_000) } } }),
  'text that is no JWT': () => ({ proof: () => 'nonsense' }),
  'itself twice': () => ({ proof: (good) => [good, good] }),
};
/** Captures the last proof, with its nonce, and sends it again. */
function proofRecorder(): { once: (good: string) => string; replay: () => string } {
  let lastProof = '';
  const once = (good: string) => {
    lastProof = good;
    return good;
  };
  return { once, replay: () => lastProof };
}

const AT_TOKEN: Safe = { status: [400, 401, 413, 431], error: ['invalid_dpop_proof', 'invalid_request'] };

export const dpopToken: Family<Issuer> = {
  id: 'dpop-token',
  title: 'DPoP proofs at the token endpoint',
  async control(issuer) {
    if (!issuer.boundTokens) throw new Skip('the server knows no DPoP');
    await obtainToken(issuer);
  },
  cases: [
    ...table<Issuer>(
      { section: 'RFC 9449 section 4.3', why: 'only a whole, fresh proof for this call binds a token', safe: AT_TOKEN },
      Object.fromEntries(
        Object.entries(FORMS).map(([what, alteration]) => [
          `a proof with ${what}`,
          async (issuer: Issuer) => {
            const key = newKey();
            const offer = await issuer.source('pre').next();
            const answer = await issuer.tokenRequest(issuer.redemption(offer), { ...alteration(key), key });
            // A header that no server parses is rejected before it is processed.
            return answer.status === 431 ? { ...answer, json: { error: 'invalid_request' } } : answer;
          },
        ]),
      ),
    ),
    {
      name: 'a proof that was used',
      section: 'RFC 9449 section 11.1',
      why: 'a proof that somebody saw must not work again',
      safe: denied('invalid_dpop_proof', 'use_dpop_nonce'),
      async run(issuer) {
        const key = newKey();
        const { once, replay } = proofRecorder();
        await issuer.tokenRequest(issuer.redemption(await issuer.source('pre').next()), { key, proof: once });
        return issuer.tokenRequest(issuer.redemption(await issuer.source('pre').next()), { key, proof: replay });
      },
    },
  ],
};

const AT_RESOURCE: Safe = { status: [400, 401, 413, 431], error: ['invalid_dpop_proof', 'invalid_token', 'invalid_request'] };
const sendWith = (sending: (key: Key, token: string, issuer: Issuer) => Sending) => async (issuer: Issuer) => {
  const grant = await issuer.token();
  const answer = await issuer.credential(grant, await issuer.goodBody(grant), sending(grant.key, grant.accessToken, issuer));
  return answer.status === 431 ? { ...answer, json: { error: 'invalid_request' } } : answer;
};
const payload = (alteration: Alteration['payload']) => sendWith(() => ({ dpop: { payload: alteration ?? {} } }));

export const dpopResource: Family<Issuer> = {
  id: 'dpop-resource',
  title: 'DPoP proofs at the credential endpoint',
  async control(issuer) {
    if (!issuer.boundTokens) throw new Skip('the server knows no DPoP');
    await issueCredential(issuer);
  },
  cases: [
    ...table<Issuer>(
      { section: 'RFC 9449 section 4.3', why: 'only a whole, fresh proof for this call shows who holds the token', safe: AT_RESOURCE },
      Object.fromEntries(Object.entries(FORMS).map(([what, alteration]) => [`a proof with ${what}`, sendWith(alteration)])),
    ),
    ...table<Issuer>(
      {
        section: 'RFC 9449 section 7',
        why: 'a token works with a proof by its own key, for itself',
        safe: { status: [401], error: ['invalid_dpop_proof', 'invalid_token', 'use_dpop_nonce'] },
      },
      {
        'no ath': payload({ ath: undefined }),
        'ath of another token': payload({ ath: sha256('another') }),
        'htu of the token endpoint': sendWith((_key, _token, issuer) => ({
          dpop: { payload: { htu: issuer.endpoint('token_endpoint') } },
        })),
        'a proof by another key': sendWith(() => ({ key: newKey() })),
        'no proof': sendWith(() => ({ dpop: false })),
        'the token as Bearer, without a proof': sendWith(() => ({ scheme: 'Bearer', dpop: false })),
        'the token as Bearer, with its proof': sendWith(() => ({ scheme: 'Bearer' })),
        'a nonce that was never given': async (issuer) => {
          const answer = await payload({ nonce: 'never-given' })(issuer);
          if (answer.status < 300 && !issuer.givesNonces(issuer.endpoint('credential_endpoint')))
            throw new Skip('the server gives no nonces for DPoP proofs');
          return answer;
        },
        'a proof of the key under another name': sendWith((key) => ({
          proof: (good) => {
            const [head = '', content = ''] = good.split('.').map((part) => Buffer.from(part, 'base64url').toString());
            return makeJwt(newKey(), { ...JSON.parse(head), jwk: key.jwk }, JSON.parse(content));
          },
        })),
      },
    ),
    {
      name: 'a proof that was used',
      section: 'RFC 9449 section 11.1',
      why: 'a proof that somebody saw must not work again',
      safe: { status: [401], error: ['invalid_dpop_proof', 'use_dpop_nonce'] },
      async run(issuer) {
        const grant = await issuer.token();
        const { once, replay } = proofRecorder();
        await issuer.credential(grant, await issuer.goodBody(grant), { proof: once });
        return issuer.credential(grant, await issuer.goodBody(grant), { proof: replay });
      },
    },
  ],
};
