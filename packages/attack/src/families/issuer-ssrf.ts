import type { Family } from '../core/case.ts';
import { keyProof, makeJwt, newKey, now } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { issueCredential } from './common.ts';

const proofHeader = (header: (address: string) => object) => (issuer: Issuer) =>
  issuer.canary.watch(async (address) => {
    const grant = await issuer.token();
    const proof = keyProof(newKey(), issuer.id, await issuer.nonce(), { header: header(address) });
    return issuer.credential(grant, { ...issuer.subject(grant), proofs: { jwt: [proof] } });
  });
const pushWithAddress = (fields: (address: string) => Record<string, string>) => (issuer: Issuer) =>
  issuer.canary.watch(async (address) => issuer.push({ ...(await issuer.authorization()), ...fields(address) }));
const authorizeWithAddress = (fields: (address: string) => Record<string, string>) => (issuer: Issuer) =>
  issuer.canary.watch((address) =>
    issuer.http.call(`${issuer.endpoint('authorization_endpoint')}?${new URLSearchParams(fields(address))}`),
  );

export const issuerSsrf: Family<Issuer> = {
  id: 'issuer-ssrf',
  title: 'Untrusted addresses that an issuer must not call',
  async control(issuer) {
    if (!issuer.http.mayRace(issuer.id)) throw new Skip('the listener is reached from this machine alone');
    await issueCredential(issuer);
  },
  cases: table<Issuer>(
    {
      section: 'RFC 8725 section 3.10',
      why: 'whoever can make a server call addresses stands inside its network',
      safe: { status: [400] },
    },
    {
      'a proof whose keys are elsewhere (jku)': proofHeader((jku) => ({ jwk: undefined, jku, kid: 'x' })),
      'a proof whose certificate is elsewhere (x5u)': proofHeader((x5u) => ({ jwk: undefined, x5u })),
      'a proof whose key is a document elsewhere (kid)': proofHeader((address) => ({ jwk: undefined, kid: `${address}#key` })),
      'a key attestation whose keys are elsewhere': proofHeader((jku) => ({
        key_attestation: makeJwt(
          newKey(),
          { typ: 'key-attestation+jwt', alg: 'ES256', jku, kid: 'x' },
          { iat: now(), exp: now() + 60, attested_keys: [newKey().jwk], iss: jku },
        ),
      })),
      'a DPoP proof whose keys are elsewhere': (issuer) =>
        issuer.canary.watch(async (address) => {
          const offer = await issuer.source('pre').next();
          return issuer.tokenRequest(issuer.redemption(offer), { key: newKey(), dpop: { header: { jku: address, x5u: address } } });
        }),
      'a request_uri at the authorization endpoint': authorizeWithAddress((address) => ({ client_id: 'x', request_uri: address })),
      'a client that is a document elsewhere': authorizeWithAddress((address) => ({
        client_id: address,
        response_type: 'code',
        redirect_uri: `${address}/cb`,
      })),
      'a request_uri in a pushed request': pushWithAddress((address) => ({ request_uri: address })),
      'a pushed request of a client that is a document elsewhere': pushWithAddress((address) => ({
        client_id: address,
        redirect_uri: `${address}/cb`,
      })),
      'a client assertion of a stranger': (issuer) =>
        issuer.canary.watch(async (address) => {
          const assertion = makeJwt(
            newKey(),
            { alg: 'ES256', jku: address, kid: 'x' },
            { iss: address, sub: address, aud: issuer.server.issuer, exp: now() + 60, jti: 'x' },
          );
          const offer = await issuer.source('pre').next();
          return issuer.tokenRequest({
            ...issuer.redemption(offer),
            client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
            client_assertion: assertion,
          });
        }),
      'an attestation of a wallet whose provider is elsewhere': (issuer) =>
        issuer.canary.watch(async (address) => {
          const instance = newKey();
          const attestation = makeJwt(
            newKey(),
            { typ: 'oauth-client-attestation+jwt', alg: 'ES256', jku: address, x5u: address },
            {
              iss: address,
              sub: 'https://wallet.example',
              iat: now(),
              exp: now() + 60,
              cnf: { jwk: instance.jwk },
              status: { status_list: { idx: 0, uri: address } },
            },
          );
          const pop = makeJwt(
            instance,
            { typ: 'oauth-client-attestation-pop+jwt', alg: 'ES256' },
            { aud: issuer.server.issuer, jti: 'x', iat: now() },
          );
          const offer = await issuer.source('pre').next();
          return issuer.tokenRequest(issuer.redemption(offer), {
            headers: { 'OAuth-Client-Attestation': attestation, 'OAuth-Client-Attestation-PoP': pop },
          });
        }),
      'an answer key that is elsewhere': (issuer) =>
        issuer.canary.watch(async (address) => {
          const grant = await issuer.token();
          const jwk = { ...newKey().jwk, alg: 'ECDH-ES', x5u: address };
          return issuer.credential(grant, {
            ...(await issuer.goodBody(grant)),
            credential_response_encryption: { jwk, enc: 'A256GCM', jku: address },
          });
        }),
    },
  ),
};
