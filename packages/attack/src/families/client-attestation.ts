import { randomUUID } from 'node:crypto';
import { bad, denied, type Family } from '../core/case.ts';
import { type Alteration, type Key, makeJwt, newKey, now, unsigned } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { obtainToken } from './common.ts';

type AttestationChanges = {
  readonly attestation?: Alteration;
  readonly pop?: Alteration;
  readonly popKey?: Key;
  readonly change?: (jwt: string) => string;
};

/** Headers of a wallet whose provider is not trusted. */
async function headers(issuer: Issuer, changes: AttestationChanges = {}): Promise<Record<string, string>> {
  const clientId = issuer.options['wallet-client-id'];
  const instance = newKey();
  const attestation = makeJwt(
    newKey(),
    { typ: 'oauth-client-attestation+jwt', alg: 'ES256', kid: 'provider', ...changes.attestation?.header },
    {
      iss: 'https://provider.example',
      sub: clientId,
      iat: now(),
      exp: now() + 3600,
      cnf: { jwk: instance.jwk },
      ...changes.attestation?.payload,
    },
  );
  const { challenge_endpoint: url } = issuer.server;
  const challenge = url === undefined ? undefined : (await issuer.http.call(url, { method: 'POST' })).json.attestation_challenge;
  const pop = makeJwt(
    changes.popKey ?? instance,
    { typ: 'oauth-client-attestation-pop+jwt', alg: 'ES256', ...changes.pop?.header },
    {
      iss: clientId,
      aud: issuer.server.issuer,
      jti: randomUUID(),
      iat: now(),
      ...(challenge === undefined ? {} : { challenge }),
      ...changes.pop?.payload,
    },
  );
  return { 'OAuth-Client-Attestation': changes.change?.(attestation) ?? attestation, 'OAuth-Client-Attestation-PoP': pop };
}
const send = (make: (issuer: Issuer) => Promise<Record<string, string | readonly string[]>>) => async (issuer: Issuer) => {
  const offer = await issuer.source('pre').next();
  const fields = { ...issuer.redemption(offer), client_id: issuer.options['wallet-client-id'] };
  return issuer.tokenRequest(fields, { headers: await make(issuer) });
};
const SAFE = denied('invalid_client_attestation', 'invalid_client', 'use_attestation_challenge', 'invalid_request');

export const clientAttestation: Family<Issuer> = {
  id: 'client-attestation',
  title: 'Attestations of wallets',
  async control(issuer) {
    const methods = issuer.server.token_endpoint_auth_methods_supported ?? [];
    if (!methods.includes('attest_jwt_client_auth')) throw new Skip('the server takes no attestations of wallets');
    await obtainToken(issuer);
  },
  cases: [
    ...table<Issuer>(
      { section: 'Attestation-based client authentication section 7', why: 'nobody is a wallet by its own word', safe: SAFE },
      {
        'an attestation of a provider that nobody trusts': send((issuer) => headers(issuer)),
        'an attestation without a signature': send((issuer) => headers(issuer, { change: unsigned })),
        'an attestation with the key in its header': send((issuer) => headers(issuer, { attestation: { header: { jwk: newKey().jwk } } })),
        'an attestation that expired': send((issuer) => headers(issuer, { attestation: { payload: { exp: now() - 3600 } } })),
        'an attestation of no key': send((issuer) => headers(issuer, { attestation: { payload: { cnf: undefined } } })),
        'an attestation of no client': send((issuer) => headers(issuer, { attestation: { payload: { sub: undefined } } })),
        'an attestation of the type JWT': send((issuer) => headers(issuer, { attestation: { header: { typ: 'JWT' } } })),
        'a proof by another key': send((issuer) => headers(issuer, { popKey: newKey() })),
        'a proof for another server': send((issuer) => headers(issuer, { pop: { payload: { aud: 'https://other.example' } } })),
        'a proof of yesterday': send((issuer) => headers(issuer, { pop: { payload: { iat: now() - 86_400 } } })),
        'an attestation that is no JWT': send(async () => ({ 'OAuth-Client-Attestation': 'x', 'OAuth-Client-Attestation-PoP': 'y' })),
        'two attestations': send(async (issuer) => {
          const { 'OAuth-Client-Attestation': attestation = '', ...otherHeaders } = await headers(issuer);
          return { ...otherHeaders, 'OAuth-Client-Attestation': [attestation, attestation] };
        }),
        'an attestation without a proof': send(async (issuer) => {
          const { 'OAuth-Client-Attestation': attestation = '' } = await headers(issuer);
          return { 'OAuth-Client-Attestation': attestation };
        }),
      },
    ),
    {
      name: 'a challenge that was never given',
      section: 'Attestation-based client authentication section 7.4',
      why: 'a proof that was made ahead is a proof that was stolen ahead',
      safe: bad('use_attestation_challenge', 'invalid_client_attestation', 'invalid_client'),
      run: send((issuer) => headers(issuer, { pop: { payload: { challenge: 'never-given' } } })),
    },
  ],
};
