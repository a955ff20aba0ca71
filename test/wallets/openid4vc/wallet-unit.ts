import { randomUUID } from 'node:crypto';
import type { CallbackContext, ClientAuthenticationCallback, Jwk, JwtSigner } from '@openid4vc/oauth2';

/** The attestation of a wallet instance by its provider. */
export type WalletUnit = {
  readonly clientId: string;
  /** Says who made the wallet that holds this key. */
  attestation(instance: Jwk): string;
  /** Says where these keys live (OpenID4VCI 1.0 appendix D.1). */
  keyAttestation(keys: readonly Jwk[], nonce: string): string;
};

/**
 * Proves at each request who made this wallet. The packages make a proof without the challenge that a server gives out
 * (attestation-based client authentication section 6.1), so it is made here.
 * @param instanceKey of this installation.
 */
export function makeAttestedWallet(
  unit: WalletUnit,
  instanceKey: () => Promise<Jwk>,
  { signJwt }: Pick<CallbackContext, 'signJwt'>,
): ClientAuthenticationCallback {
  return async ({ headers, authorizationServerMetadata }) => {
    const publicJwk = await instanceKey();
    const { issuer, challenge_endpoint: endpoint } = authorizationServerMetadata as { issuer: string; challenge_endpoint?: string };
    const payload = {
      ...{ iss: unit.clientId, aud: issuer, jti: randomUUID(), iat: Math.floor(Date.now() / 1000) },
      ...(endpoint !== undefined && { challenge: await fetchChallenge(endpoint) }),
    };
    const signer: JwtSigner = { method: 'jwk', alg: 'ES256', publicJwk };
    const header = { alg: 'ES256', typ: 'oauth-client-attestation-pop+jwt' };
    const { jwt } = await signJwt(signer, { header, payload });
    headers.set('OAuth-Client-Attestation', unit.attestation(publicJwk));
    headers.set('OAuth-Client-Attestation-PoP', jwt);
  };
}

async function fetchChallenge(endpoint: string): Promise<string> {
  const answer = await fetch(endpoint, { method: 'POST' });
  const { attestation_challenge: challenge } = (await answer.json()) as { attestation_challenge: string };
  return challenge;
}
