import { audit } from './audit.ts';
import { caches } from './caches.ts';
import { accessTokens, clients } from './clients.ts';
import type { Feature } from './feature.ts';
import { issuance } from './issuance.ts';
import { issuerMetadata } from './issuer-metadata.ts';
import { keys } from './keys.ts';
import { oauth } from './oauth.ts';
import { registrar } from './registrar.ts';
import { service } from './service.ts';
import { sessions } from './sessions.ts';
import { statusLists } from './status-lists.ts';
import { tenants } from './tenants.ts';
import { trustLists } from './trust-lists.ts';
import { verification } from './verification.ts';

/** Everything that the service does. Adapters are bound by `platform.ts`. */
export const FEATURES: readonly Feature[] = [
  ...[sessions, issuance, oauth, issuerMetadata, verification, statusLists],
  ...[accessTokens, service, tenants, clients, keys, registrar, trustLists, caches, audit],
];
