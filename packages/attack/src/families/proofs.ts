import { bad, type Family, held, open } from '../core/case.ts';
import { type Alteration, type Key, keyProof, newKey, now, symmetric, unsigned, withBrokenSignature } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { asAdvice, table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { issueCredential } from './common.ts';

type BuildProofs = (parts: { issuer: Issuer; key: Key; nonce: string | undefined }) => unknown;

/** A credential request with these proofs and a fresh nonce. */
const withProofs = (make: BuildProofs) => async (issuer: Issuer) => {
  const grant = await issuer.token();
  const proofs = await make({ issuer, key: newKey(), nonce: await issuer.nonce() });
  return issuer.credential(grant, { ...issuer.subject(grant), ...(proofs === undefined ? {} : { proofs }) });
};
const alteredProof = (alteration: Alteration | ((key: Key) => Alteration)) =>
  withProofs(({ issuer, key, nonce }) => ({
    jwt: [keyProof(key, issuer.id, nonce, typeof alteration === 'function' ? alteration(key) : alteration)],
  }));
const withProof = (change: (proof: string, key: Key) => string) =>
  withProofs(({ issuer, key, nonce }) => ({ jwt: [change(keyProof(key, issuer.id, nonce), key)] }));
const PROOF = bad('invalid_proof', 'invalid_credential_request');
const NONCE = bad('invalid_nonce', 'invalid_proof', 'invalid_credential_request');
const needsNonce = (issuer: Issuer) => issuer.endpoint('nonce_endpoint');

export const proofs: Family<Issuer> = {
  id: 'proofs',
  title: 'Proofs of possession of holder keys',
  control: issueCredential,
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 appendix F.1', why: 'a credential is bound to a key that the caller was seen to have', safe: PROOF },
      {
        'alg none': withProof(unsigned),
        'HS256 by the public key': withProof((proof, key) => symmetric(proof, JSON.stringify(key.jwk))),
        'a broken signature': withProof(withBrokenSignature),
        'a key that did not sign': alteredProof(() => ({ header: { jwk: newKey().jwk } })),
        'typ JWT': alteredProof({ header: { typ: 'JWT' } }),
        'no typ': alteredProof({ header: { typ: undefined } }),
        'an alg that was not offered': alteredProof({ header: { alg: 'RS1' } }),
        'a key and a kid': alteredProof({ header: { kid: 'did:example:1#key' } }),
        'no key at all': alteredProof({ header: { jwk: undefined } }),
        'a private key': alteredProof((key) => ({ header: { jwk: { ...key.jwk, d: key.privateKey.export({ format: 'jwk' }).d } } })),
        'a symmetric key': alteredProof({ header: { jwk: { kty: 'oct', k: 'AAAA' } } }),
        'a point that is not on the curve': alteredProof((key) => ({ header: { jwk: { ...key.jwk, y: key.jwk.x } } })),
        'an extension that nobody knows': alteredProof({ header: { crit: ['unknown'], unknown: 1 } }),
        'a certificate that is none': alteredProof({ header: { jwk: undefined, x5c: ['AAAA'] } }),
        'a key attestation that nobody signed': async (issuer) => {
          const { proof_types_supported: types } = issuer.configuration(issuer.source('pre').ids[0]);
          if (types?.jwt?.key_attestations_required === undefined) throw new Skip('nothing rests on key attestations');
          return alteredProof({ header: { key_attestation: 'eyJhbGciOiJub25lIn0.e30.' } })(issuer);
        },
      },
    ),
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 appendix F.4', why: 'a proof is for this issuer and for now', safe: PROOF },
      {
        'no aud': alteredProof({ payload: { aud: undefined } }),
        'aud of another issuer': alteredProof({ payload: { aud: 'https://other.example' } }),
        'aud with a slash more': withProofs(({ issuer, key, nonce }) => ({ jwt: [keyProof(key, `${issuer.id}/`, nonce)] })),
        'aud of the credential endpoint': withProofs(({ issuer, key, nonce }) => ({
          jwt: [keyProof(key, issuer.endpoint('credential_endpoint'), nonce)],
        })),
        'no iat': alteredProof({ payload: { iat: undefined } }),
        'an iat of yesterday': alteredProof({ payload: { iat: now() - 86_400 } }),
        'an iat of tomorrow': alteredProof({ payload: { iat: now() + 86_400 } }),
      },
    ),
    ...table<Issuer>(
      {
        section: 'OpenID4VCI 1.0 section 8.2',
        why: 'proofs have one shape',
        safe: { status: [400, 413], error: ['invalid_proof', 'invalid_credential_request'] },
      },
      {
        'no proofs': withProofs(() => undefined),
        'proofs of no type': withProofs(() => ({})),
        'an empty list of proofs': withProofs(() => ({ jwt: [] })),
        'proofs that are a text': withProofs(({ issuer, key, nonce }) => ({ jwt: keyProof(key, issuer.id, nonce) })),
        'an unknown type of proof': withProofs(() => ({ unknown: ['x'] })),
        'two types of proofs': withProofs(({ issuer, key, nonce }) => ({ jwt: [keyProof(key, issuer.id, nonce)], attestation: ['x'] })),
        'a number as a proof': withProofs(() => ({ jwt: [1] })),
        'a good proof and a bad one': withProofs(({ issuer, key, nonce }) => ({
          jwt: [keyProof(key, issuer.id, nonce), unsigned(keyProof(newKey(), issuer.id, nonce))],
        })),
        'a thousand proofs': withProofs(({ issuer, key, nonce }) => ({ jwt: Array(1000).fill(keyProof(key, issuer.id, nonce)) })),
      },
    ),
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 8.3', why: 'two credentials for one key are recognized as those of one holder', safe: PROOF },
      {
        'one key in two proofs': withProofs(({ issuer, key, nonce }) => ({
          jwt: [keyProof(key, issuer.id, nonce), keyProof(key, issuer.id, nonce, { payload: { iat: now() - 1 } })],
        })),
      },
    ).map(asAdvice),
    {
      name: 'an exp that is over',
      section: 'RFC 7519 section 4.1.4',
      why: 'what its maker says is over is not taken',
      safe: PROOF,
      run: alteredProof({ payload: { exp: now() - 3600 } }),
    },
  ],
};

export const nonces: Family<Issuer> = {
  id: 'nonces',
  title: 'Nonces of proofs',
  async control(issuer) {
    needsNonce(issuer);
    await issueCredential(issuer);
  },
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 8.3.1.2', why: 'a proof that was made earlier is a proof that was stolen', safe: NONCE },
      {
        'no nonce': withProofs(({ issuer, key }) => ({ jwt: [keyProof(key, issuer.id, undefined)] })),
        'a nonce that was never given': withProofs(({ issuer, key }) => ({ jwt: [keyProof(key, issuer.id, 'never-given')] })),
        'an empty nonce': withProofs(({ issuer, key }) => ({ jwt: [keyProof(key, issuer.id, '')] })),
        'a nonce that is a number': alteredProof({ payload: { nonce: 1 } }),
        'a nonce that is a list': withProofs(({ issuer, key, nonce }) => ({
          jwt: [keyProof(key, issuer.id, undefined, { payload: { nonce: [nonce] } })],
        })),
        'a nonce with a character more': withProofs(({ issuer, key, nonce }) => ({ jwt: [keyProof(key, issuer.id, `${nonce}x`)] })),
        'a nonce with a character changed': withProofs(({ issuer, key, nonce = '' }) => ({
          jwt: [keyProof(key, issuer.id, (nonce[0] === 'A' ? 'B' : 'A') + nonce.slice(1))],
        })),
        'two nonces in two proofs, one of them never given': withProofs(({ issuer, key, nonce }) => ({
          jwt: [keyProof(key, issuer.id, nonce), keyProof(newKey(), issuer.id, 'never-given')],
        })),
        'the nonce of another issuer': async (issuer) => {
          const otherIssuer = issuer.options['other-issuer'];
          if (otherIssuer === undefined) throw new Skip('no --other-issuer was given');
          const url = needsNonce(issuer).replace(issuer.id, otherIssuer);
          const { c_nonce: nonce } = (await issuer.http.call(url, { method: 'POST' })).json;
          return withProofs(({ key }) => ({ jwt: [keyProof(key, issuer.id, String(nonce))] }))(issuer);
        },
        'a nonce that was used': async (issuer) => {
          const nonce = await issuer.nonce();
          const make = withProofs(({ key }) => ({ jwt: [keyProof(key, issuer.id, nonce)] }));
          await make(issuer);
          return make(issuer);
        },
        'a whole request again': async (issuer) => {
          const grant = await issuer.token();
          const body = await issuer.goodBody(grant);
          await issuer.credential(grant, body);
          return issuer.credential(grant, body);
        },
      },
    ),
    {
      name: 'GET to the nonce endpoint',
      section: 'OpenID4VCI 1.0 section 7.1',
      why: 'what caches answer twice is no nonce',
      safe: { status: [404, 405] },
      run: (issuer) => issuer.http.call(needsNonce(issuer)),
    },
    {
      name: 'a nonce that caches may keep',
      section: 'OpenID4VCI 1.0 section 7.2',
      why: 'a nonce in a cache is given twice',
      safe: { status: [200] },
      async run(issuer) {
        const { headers } = await issuer.http.call(needsNonce(issuer), { method: 'POST' });
        const said = headers['cache-control'] ?? 'no Cache-Control';
        return /no-store/.test(said) ? held(said) : open(said);
      },
    },
  ],
};
