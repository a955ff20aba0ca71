import type { Family } from '../core/case.ts';
import type { Issuer } from '../targets/issuer.ts';
import type { Verifier } from '../targets/verifier.ts';
import { accessTokens } from './access-tokens.ts';
import { authorization, authorizationCode, refreshTokens } from './authorization.ts';
import { clientAttestation } from './client-attestation.ts';
import { credentialRequests, encryption } from './credential-requests.ts';
import { deferred, notifications } from './deferred.ts';
import { dpopResource, dpopToken } from './dpop.ts';
import { issuerHttp, issuerRaces } from './issuer-http.ts';
import { issuerSsrf } from './issuer-ssrf.ts';
import { mdoc } from './mdoc.ts';
import { metadata } from './metadata.ts';
import { offers } from './offers.ts';
import { par } from './par.ts';
import { preAuthorized, txCode } from './pre-authorized.ts';
import { nonces, proofs } from './proofs.ts';
import { requestObjects } from './request-objects.ts';
import { responseEncryption, responses, vpTokens } from './responses.ts';
import { disclosures, issuerTrust, keyBinding, status } from './sd-jwt.ts';
import { tokenRequests } from './token-requests.ts';
import { verifierHttp, verifierRaces, verifierSsrf } from './verifier-more.ts';

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
