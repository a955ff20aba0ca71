import type { Target } from './engine/target.ts';
import { CBOR } from './targets/cbor.ts';
import { DCQL } from './targets/dcql.ts';
import { DER } from './targets/der.ts';
import { ISSUANCE } from './targets/issuance.ts';
import { JOSE } from './targets/jose.ts';
import { JSON_TARGETS } from './targets/json.ts';
import { MDOC } from './targets/mdoc.ts';
import { OAUTH } from './targets/oauth.ts';
import { OAUTH_REQUESTS } from './targets/oauth-requests.ts';
import { RESPONSES } from './targets/responses.ts';
import { SD_JWT } from './targets/sd-jwt.ts';
import { STATUS_LISTS } from './targets/status-lists.ts';
import { TRUST } from './targets/trust.ts';
import { VERIFICATION } from './targets/verification.ts';

/** Every decoder of untrusted bytes. */
export const TARGETS: readonly Target[] = [
  ...JOSE,
  ...SD_JWT,
  ...CBOR,
  ...MDOC,
  ...DER,
  ...STATUS_LISTS,
  ...DCQL,
  ...VERIFICATION,
  ...RESPONSES,
  ...OAUTH,
  ...OAUTH_REQUESTS,
  ...ISSUANCE,
  ...TRUST,
  ...JSON_TARGETS,
];
