import type { Family } from '../core/case.ts';
import type { Issuer } from '../targets/issuer.ts';
import type { Verifier } from '../targets/verifier.ts';
import { accessTokens } from './access-tokens.ts';
import { authorization } from './authorization.ts';
import { authorizationCode, refreshTokens } from './authorization-code.ts';
import { clientAttestation } from './client-attestation.ts';
import { credentialRequests } from './credential-requests.ts';
import { deferred, notifications } from './deferred.ts';
import { disclosures } from './disclosures.ts';
import { dpopResource, dpopToken } from './dpop.ts';
import { encryption } from './encryption.ts';
import { issuerHttp, issuerRaces } from './issuer-http.ts';
import { issuerSsrf } from './issuer-ssrf.ts';
import { issuerTrust, status } from './issuer-trust.ts';
import { keyBinding } from './key-binding.ts';
import { mdoc } from './mdoc.ts';
import { metadata } from './metadata.ts';
import { offers } from './offers.ts';
import { par } from './par.ts';
import { preAuthorized, txCode } from './pre-authorized.ts';
import { nonces, proofs } from './proofs.ts';
import { requestObjects } from './request-objects.ts';
import { responseEncryption } from './response-encryption.ts';
import { responses } from './responses.ts';
import { tokenRequests } from './token-requests.ts';
import { verifierHttp, verifierRaces, verifierSsrf } from './verifier-more.ts';
import { vpTokens } from './vp-token.ts';

export const issuerFamilies: readonly Family<Issuer>[] = [
  metadata,
  offers,
  preAuthorized,
  txCode,
  tokenRequests,
  par,
  authorization,
  authorizationCode,
  refreshTokens,
  dpopToken,
  dpopResource,
  accessTokens,
  clientAttestation,
  nonces,
  proofs,
  credentialRequests,
  encryption,
  deferred,
  notifications,
  issuerHttp,
  issuerSsrf,
  issuerRaces,
];

export const verifierFamilies: readonly Family<Verifier>[] = [
  requestObjects,
  responses,
  responseEncryption,
  vpTokens,
  keyBinding,
  disclosures,
  issuerTrust,
  status,
  mdoc,
  verifierHttp,
  verifierSsrf,
  verifierRaces,
];
