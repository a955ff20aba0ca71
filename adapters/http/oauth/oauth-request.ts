import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { headerValues } from '../header-values.ts';
import type { RawRequest } from '../route.ts';

/** What a wallet sends to an authorization server: the form and every field of the headers that say who it is. */
export function oauthRequest(form: Readonly<Record<string, string>>, request: RawRequest): OAuthRequest {
  return {
    form,
    dpop: headerValues(request, 'dpop'),
    attestation: headerValues(request, 'oauth-client-attestation'),
    attestationPop: headerValues(request, 'oauth-client-attestation-pop'),
  };
}

/** RFC 9449 section 8.2: the nonce for the next proof. */
export function dpopNonceHeader(nonce: string | undefined): Record<string, string> {
  return nonce === undefined ? {} : { 'DPoP-Nonce': nonce };
}
